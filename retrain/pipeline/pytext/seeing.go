package pytext

import (
	"bytes"
	"cmp"
	"iter"
	"strconv"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Seeing is what a file says about how Stable-Baselines3 networks process observations.
type Seeing struct {
	Policy string // "" if the file does not say
	Own    string // class of a policy that the program defines itself
	Open   string // policies between which a condition decides, for output
	Frames int    // number of stacked frames, 0 if they are not stacked
	Atari  bool   // whether the environments use Atari preprocessing
}

// Or returns s, completed by what another file says. A policy in s excludes those in the other file.
func (s Seeing) Or(other Seeing) Seeing {
	if s.Own != "" || s.Open != "" {
		other.Policy = ""
	}
	if s.Policy != "" || s.Open != "" {
		other.Own = ""
	}
	if s.Policy != "" || s.Own != "" {
		other.Open = ""
	}
	return Seeing{cmp.Or(s.Policy, other.Policy), cmp.Or(s.Own, other.Own), cmp.Or(s.Open, other.Open), cmp.Or(s.Frames, other.Frames), s.Atari || other.Atari}
}

// Agreed combines what several files say, and drops what they contradict each other in.
func Agreed(all iter.Seq[Seeing]) Seeing {
	var out Seeing
	policies, frames := map[string]bool{}, map[int]bool{}
	for s := range all {
		out = out.Or(s)
		if policy := cmp.Or(s.Policy, s.Own, s.Open); policy != "" {
			policies[policy] = true
		}
		if s.Frames > 0 {
			frames[s.Frames] = true
		}
	}
	if len(policies) > 1 {
		out.Policy, out.Own, out.Open = "", "", ""
	}
	if len(frames) > 1 {
		out.Frames = 0
	}
	return out
}

var (
	namedPolicy   = pattern.MustCompile(`\b(?:ActorCritic)?(Mlp|Cnn|MultiInput)Policy\b`)
	defaultPolicy = pattern.MustCompile(`default\s*=\s*["'](Mlp|Cnn|MultiInput)Policy["']`)
	givenPolicy   = pattern.MustCompile(`\b(?:A2C|DDPG|DQN|PPO|SAC|TD3)\(\s*(?:policy\s*=\s*)?["']?(?:ActorCritic)?(?:(Mlp|Cnn|MultiInput)Policy\b|([A-Z]\w*Policy)\s*,)`)
	eitherPolicy  = pattern.MustCompile(`["']((?:Mlp|Cnn|MultiInput)Policy)["']\s+if\b[^\n]*?(?:\n[^\n]*?)?\belse\s+["']((?:Mlp|Cnn|MultiInput)Policy)["']`)
	setPolicy     = pattern.MustCompile(`(?m)\bpolicy\w*["']?\s*[:=]\s*["']?(Mlp|Cnn|MultiInput)Policy\b`)
	stacks        = pattern.MustCompile(`\b(?:Vec)?FrameStack(?:Observation)?\(`)
	stackedLast   = pattern.MustCompile(`\b(?:Vec)?FrameStack(?:Observation)?\([^\n]*,\s*([0-9]+)\s*\)`)
	stacked       = pattern.MustCompile(`\b(?:n[_-]stack|num[_-]stack|stack[_-]size|frame[_-]stack|n[_-]frames)["']?\s*(?:,[^\n]*default\s*=\s*|:\s*int\s*=\s*|[:=]\s*)([0-9]+)`)
	setsFrames    = pattern.MustCompile(`(?m)^\s*frame_stack\s*:`)
	ofAtari       = pattern.MustCompile(`\bmake_atari_env\(|\bAtariWrapper\(|\bAtariPreprocessing\(|(?m)^\s*(?:-|env_wrapper:)\s*[\w.]*\.AtariWrapper\b`)
)

// usualFrames is the usual number of stacked Atari frames, and maxFrames the largest number that a pipeline accepts.
const usualFrames, maxFrames = 4, 64

// SeeingOf reads a program without comments, or a settings file.
func SeeingOf(text []byte) Seeing {
	if !bytes.Contains(text, []byte("Policy")) && !bytes.Contains(text, []byte("tari")) && !bytes.Contains(text, []byte("rame")) {
		return Seeing{} // a fast path for most files
	}
	s := Seeing{Atari: ofAtari.Match(text)}
	if m := eitherPolicy.FindSubmatch(text); m != nil && string(m[1]) != string(m[2]) {
		s.Open = string(m[1]) + " or " + string(m[2])
	} else {
		s.Policy, s.Own = policyOf(text)
	}
	if stacks.Match(text) || setsFrames.Match(text) {
		s.Frames = usualFrames
		for _, re := range []*pattern.Pattern{stackedLast, stacked} { // a named value takes precedence
			if m := re.FindSubmatch(text); m != nil {
				n, err := strconv.Atoi(string(m[1]))
				if err == nil && n >= 1 && n <= maxFrames {
					s.Frames = n
				}
			}
		}
	}
	return s
}

// policyOf returns the policy that is passed to an algorithm, is a default, or is assigned, or else the only one that
// is mentioned.
func policyOf(text []byte) (policy, own string) {
	if m := givenPolicy.FindSubmatch(text); m != nil {
		if len(m[1]) > 0 {
			return string(m[1]) + "Policy", ""
		}
		return "", string(m[2])
	}
	for _, re := range []*pattern.Pattern{defaultPolicy, setPolicy} {
		if m := re.FindSubmatch(text); m != nil {
			return string(m[1]) + "Policy", ""
		}
	}
	for _, m := range namedPolicy.FindAllSubmatch(text, -1) {
		name := string(m[1]) + "Policy"
		if policy != "" && policy != name {
			return "", ""
		}
		policy = name
	}
	return policy, ""
}
