package pytext

import (
	"math"
	"strconv"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	stepsArgument = pattern.MustCompile(`(?:\.learn\(\s*(?:total_timesteps\s*=\s*)?|(?:(?:total|n|num|max)[_-](?:agent[_-]|env[_-]|train(?:ing)?[_-]|environment[_-])?(?:(?:time)?steps|frames)|\btrain(?:ing)?[_-](?:time)?steps|--timesteps|timesteps_total|\bTOTAL_(?:TIME|ENV_|TRAIN_)?STEPS)["']?\s*(?::\s*int\s*=\s*|:\s*(?:!!float\s+)?|=\s*|,(?:[^\n()]*\n){0,3}[^\n()]*default\s*=\s*)|DEFINE_\w+\(\s*["'](?:total|n|num|max)[_-](?:env[_-]|train(?:ing)?[_-])?(?:(?:time)?steps|frames)["'],\s*|(?i:\btimesteps)\s*=\s*)(?:int\()?\s*([\w.()*+/\["'\] -]{1,200})`)
	// ofTraining matches names for the steps of a whole training.
	ofTraining = pattern.MustCompile(`(?i)\.learn\(|total|timesteps|^train`)
	// ofOwnLearner matches the arguments of a learner that does not belong to a library: learn then takes a batch
	// instead of steps.
	ofOwnLearner = pattern.MustCompile(`^\.learn\(\s*[\w.]*(?i:batch|gamma|buffer|memory|experience|trans|rate\b|sample)`)
	// ofEpisode matches names that may mean the steps of one episode in a program that counts episodes.
	ofEpisode = pattern.MustCompile(`^max[_-]?(?:time)?steps`)
	// ofRollout matches numbers that may be the steps of one rollout in a program that counts epochs.
	ofRollout      = pattern.MustCompile(`^(?i)timesteps\b[^\n]*?=\s*[0-9]{1,4}[\s)]*$`)
	countsEpisodes = pattern.MustCompile(`\b(?:train|n|num|max|total)_(?:train_)?episodes\b|\bn?episodes["']?[ \t]*[:=]`)
	// helped matches an argument with a numeric default and a help text.
	helped  = pattern.MustCompile(`add_argument\([^\n]*?default\s*=\s*(?:int\()?([0-9][\w.+*]*)[^\n]*?help\s*=\s*["']([^"'\n]+)["']`)
	ofAll   = pattern.MustCompile(`(?i)^(?:the )?(?:total |max(?:imum)? )?(?:number of )?(?:total |training |environment |env )*(?:time)?(?:steps|frames)\b`)
	ofAPart = pattern.MustCompile(`(?i)between|before|after|every|each|\bper\b|interval|warm|rollout|until|episode|bootstrap|n-step|gradient`)
	// perEpoch and epochs match two numbers whose product is the steps of a training in some libraries.
	perEpoch = pattern.MustCompile(`\b(?:steps?[_-]per[_-]epoch|epoch[_-]num[_-]steps)["']?\s*(?::\s*int\s*)?(?:=\s*|,[^\n()]*default\s*=\s*)([0-9][\w.]*|[A-Z][A-Z0-9_]*)\b`)
	epochs   = pattern.MustCompile(`["'\s(,](?:--)?(?:n[_-]|num[_-]|max[_-])?epochs?["']?\s*(?::\s*int\s*)?(?:=\s*|,[^\n()]*default\s*=\s*)([0-9][0-9_]*|[A-Z][A-Z0-9_]*)\b`)
	constant = pattern.MustCompile(`(?m)^[ \t]*([A-Za-z_]\w*)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([\w.()*+/ -]{1,200}?)[ \t\r]*(?:#[^\n]*)?$`)
)

// maxMatches bounds the number of matches per file.
const maxMatches = 1000

// minSteps and maxSteps bound plausible numbers of steps of a training.
const minSteps, maxSteps = 1000, 1e12

// minClear is the lower bound if the number cannot mean anything else.
const minClear = 100

func digits(x float64) string { return strconv.FormatInt(int64(x), 10) }

// Steps is a number that may be the steps of a training.
type Steps struct {
	Number  string // decimal digits
	Clearly bool   // if false, the number may also belong to a rollout or a callback
}

// StepsOf returns the numbers in a program or settings file that may be the steps of a training. It computes products
// of the program's constants.
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
		if ofRollout.Match(m[0]) && epochs.Match(text) { // the steps of each epoch
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

// constants are the first values of a program's names, as source and, once needed, as numbers. Each is computed only
// once, or the time for a hostile program would grow with a power of its size.
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

// number evaluates the expression at the beginning of a text. It returns NaN unless the expression contains only
// numbers and constants.
func (c constants) number(text string) float64 {
	return literals.NumberOf(text, func(name string) (literals.Value, bool) {
		x := c.named(name)
		return literals.Value{Kind: literals.Float, Number: x}, !math.IsNaN(x)
	})
}

func (c constants) named(name string) float64 {
	x, ok := c.value[name]
	if text := c.text[name]; !ok && text != "" {
		c.value[name] = math.NaN() // in case it depends on itself
		x = c.number(text)
		c.value[name] = x
		return x
	}
	if !ok {
		return math.NaN()
	}
	return x
}

// TotalOf returns the steps of the whole training, which a program may express through names, as decimal digits, or "".
// names returns the values of names at a place in the program.
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
