package pytext

import (
	"math"
	"regexp"
	"strconv"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
)

var (
	stepsArgument = regexp.MustCompile(`(?:\.learn\(\s*(?:total_timesteps\s*=\s*)?|(?:(?:total|n|num|max)[_-](?:agent[_-]|env[_-]|train(?:ing)?[_-]|environment[_-])?(?:(?:time)?steps|frames)|\btrain(?:ing)?[_-](?:time)?steps|--timesteps|timesteps_total|\bTOTAL_(?:TIME|ENV_|TRAIN_)?STEPS)["']?\s*(?::\s*int\s*=\s*|:\s*(?:!!float\s+)?|=\s*|,(?:[^\n()]*\n){0,3}[^\n()]*default\s*=\s*)|DEFINE_\w+\(\s*["'](?:total|n|num|max)[_-](?:env[_-]|train(?:ing)?[_-])?(?:(?:time)?steps|frames)["'],\s*|(?i:\btimesteps)\s*=\s*)(?:int\()?\s*([\w.()*+/\["'\] -]{1,200})`)
	// ofTraining is how the steps of a whole training are named.
	ofTraining = regexp.MustCompile(`(?i)\.learn\(|total|timesteps|^train`)
	// ofOwnLearner are the arguments of a learner that is no library's: a batch, and not steps.
	ofOwnLearner = regexp.MustCompile(`^\.learn\(\s*[\w.]*(?i:batch|gamma|buffer|memory|experience|trans|rate\b|sample)`)
	// ofEpisode may be the steps of one episode, where a program counts episodes.
	ofEpisode = regexp.MustCompile(`^max[_-]?(?:time)?steps`)
	// ofRollout may be the steps of one rollout, where a program counts epochs.
	ofRollout      = regexp.MustCompile(`^(?i)timesteps\b[^\n]*?=\s*[0-9]{1,4}[\s)]*$`)
	countsEpisodes = regexp.MustCompile(`\b(?:train|n|num|max|total)_(?:train_)?episodes\b|\bn?episodes["']?[ \t]*[:=]`)
	// helped is an argument with a default number and its help.
	helped  = regexp.MustCompile(`add_argument\([^\n]*?default\s*=\s*(?:int\()?([0-9][\w.+*]*)[^\n]*?help\s*=\s*["']([^"'\n]+)["']`)
	ofAll   = regexp.MustCompile(`(?i)^(?:the )?(?:total |max(?:imum)? )?(?:number of )?(?:total |training |environment |env )*(?:time)?(?:steps|frames)\b`)
	ofAPart = regexp.MustCompile(`(?i)between|before|after|every|each|\bper\b|interval|warm|rollout|until|episode|bootstrap|n-step|gradient`)
	// perEpoch and epochs are the factors of the steps of a training in some libraries.
	perEpoch = regexp.MustCompile(`\b(?:steps?[_-]per[_-]epoch|epoch[_-]num[_-]steps)["']?\s*(?::\s*int\s*)?(?:=\s*|,[^\n()]*default\s*=\s*)([0-9][\w.]*|[A-Z][A-Z0-9_]*)\b`)
	epochs   = regexp.MustCompile(`["'\s(,](?:--)?(?:n[_-]|num[_-]|max[_-])?epochs?["']?\s*(?::\s*int\s*)?(?:=\s*|,[^\n()]*default\s*=\s*)([0-9][0-9_]*|[A-Z][A-Z0-9_]*)\b`)
	constant = regexp.MustCompile(`(?m)^[ \t]*([A-Za-z_]\w*)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([\w.()*+/ -]{1,200}?)[ \t\r]*(?:#[^\n]*)?$`)
)

// maxMatches bounds what is taken of one file.
const maxMatches = 1000

// minSteps and maxSteps bound the steps that could be those of a training.
const minSteps, maxSteps = 1000, 1e12

// minClear is what is enough where nothing else can be meant.
const minClear = 100

func digits(x float64) string { return strconv.FormatInt(int64(x), 10) }

// Steps is a number of steps that could be that of a training.
type Steps struct {
	Number  string // digits
	Clearly bool   // else it may be that of a rollout or a callback
}

// StepsOf returns the numbers of a program, or of a file of settings, that could be the steps of a training. It computes
// those that are products of the program's constants.
func StepsOf(text []byte) []Steps {
	var out []Steps
	add := func(x float64, clearly bool) {
		if (x >= minSteps || clearly && x >= minClear) && x <= maxSteps {
			out = append(out, Steps{digits(x), clearly})
		}
	}
	var known constants
	for _, m := range stepsArgument.FindAllSubmatch(text, maxMatches) {
		if ofOwnLearner.Match(m[0]) {
			continue
		}
		if known.text == nil {
			known = constantsOf(text)
		}
		clearly := ofTraining.Match(m[0])
		if ofRollout.Match(m[0]) && epochs.Match(text) { // those of each epoch
			continue
		}
		if !clearly && ofEpisode.Match(m[0]) && countsEpisodes.Match(text) {
			continue
		}
		add(known.number(string(m[1])), clearly)
	}
	for _, m := range helped.FindAllSubmatch(text, maxMatches) {
		if ofAll.Match(m[2]) && !ofAPart.Match(m[2]) {
			add(known.number(string(m[1])), true)
		}
	}
	if each, n := perEpoch.FindSubmatch(text), epochs.FindSubmatch(text); each != nil && n != nil {
		if known.text == nil {
			known = constantsOf(text)
		}
		add(known.number(string(each[1]))*known.number(string(n[1])), true)
	}
	return out
}

// constants are what the names of a program are first set to, and the values of those that were needed: each is computed
// once, or what a hostile program costs would grow with a power of its size.
type constants struct {
	text  map[string]string
	value map[string]float64
}

func constantsOf(text []byte) constants {
	c := constants{map[string]string{}, map[string]float64{}}
	for _, m := range constant.FindAllSubmatch(text, maxMatches) {
		if name := string(m[1]); c.text[name] == "" {
			c.text[name] = string(m[2])
		}
	}
	return c
}

// number returns the value of the expression that a text begins with, not a number if it is not of numbers and constants
// alone.
func (c constants) number(text string) float64 {
	return literals.NumberOf(text, func(name string) (literals.Value, bool) {
		x := c.named(name)
		return literals.Value{Kind: literals.Float, Number: x}, !math.IsNaN(x)
	})
}

func (c constants) named(name string) float64 {
	x, ok := c.value[name]
	if text := c.text[name]; !ok && text != "" {
		c.value[name] = math.NaN() // also if it is made of itself
		x = c.number(text)
		c.value[name] = x
		return x
	}
	if !ok {
		return math.NaN()
	}
	return x
}

// TotalOf returns the steps of the whole training that a program has by names, as digits, "" for none. Names returns the
// values of the names at a place of the program.
func TotalOf(text string, names func(at int) literals.Names) string {
	for _, m := range stepsArgument.FindAllStringSubmatchIndex(text, maxMatches) {
		if ofOwnLearner.MatchString(text[m[0]:m[1]]) {
			continue
		}
		if x := literals.NumberOf(text[m[2]:m[3]], names(m[0])); ofTraining.MatchString(text[m[0]:m[1]]) && x >= minSteps && x <= maxSteps {
			return digits(x)
		}
	}
	return ""
}
