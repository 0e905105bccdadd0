package programs

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

var (
	stepsArgument = regexp.MustCompile(`(?:\.learn\(\s*(?:total_timesteps\s*=\s*)?|(?:(?:total|n|num|max)[_-](?:env[_-]|train(?:ing)?[_-]|environment[_-])?(?:(?:time)?steps|frames)|--timesteps|timesteps_total)["']?\s*(?::\s*int\s*=\s*|:\s*(?:!!float\s+)?|=\s*|,(?:[^\n()]*\n){0,3}[^\n()]*default\s*=\s*)|DEFINE_\w+\(\s*["'](?:total|n|num|max)[_-](?:env[_-]|train(?:ing)?[_-])?(?:(?:time)?steps|frames)["'],\s*|(?i:\btimesteps)\s*=\s*)(?:int\()?\s*([\w.()*+/ -]{1,200})`)
	// ofTraining is how the steps of a whole training are named.
	ofTraining = regexp.MustCompile(`(?i)\.learn\(|total|timesteps`)
	// helped is an argument with a default number and its help.
	helped  = regexp.MustCompile(`add_argument\([^\n]*?default\s*=\s*(?:int\()?([0-9][\w.+*]*)[^\n]*?help\s*=\s*["']([^"'\n]+)["']`)
	ofAll   = regexp.MustCompile(`(?i)^(?:the )?(?:total |max(?:imum)? )?(?:number of )?(?:total |training |environment |env )*(?:time)?(?:steps|frames)\b`)
	ofAPart = regexp.MustCompile(`(?i)between|before|after|every|each|\bper\b|interval|warm|rollout|until|episode|bootstrap|n-step|gradient`)
	// perEpoch and epochs are the factors of the steps of a training in some libraries.
	perEpoch = regexp.MustCompile(`\b(?:steps?[_-]per[_-]epoch|epoch[_-]num[_-]steps)["']?\s*(?::\s*int\s*)?(?:=\s*|,[^\n()]*default\s*=\s*)([0-9][\w.]*)`)
	epochs   = regexp.MustCompile(`["'\s(,](?:--)?(?:n[_-]|num[_-]|max[_-])?epochs?["']?\s*(?::\s*int\s*)?(?:=\s*|,[^\n()]*default\s*=\s*)([0-9][0-9_]*)\b`)
	constant = regexp.MustCompile(`(?m)^[ \t]*([A-Za-z_]\w*)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([\w.()*+/ -]{1,200}?)[ \t\r]*(?:#[^\n]*)?$`)
	factors  = regexp.MustCompile(`\*\*|//|[A-Za-z_]\w*|[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+]?[0-9]+)?|[()*/+-]`)
)

// maxFactors bounds the words of an expression.
const maxFactors = 100

// minSteps is the least number of steps that could be that of a training.
const minSteps = 1000

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
		if x >= minSteps && x <= 1e12 {
			out = append(out, Steps{strconv.FormatInt(int64(x), 10), clearly})
		}
	}
	var known constants
	for _, m := range stepsArgument.FindAllSubmatch(text, maxMatches) {
		if known.text == nil {
			known = constantsOf(text)
		}
		add(known.number(string(m[1])), ofTraining.Match(m[0]))
	}
	for _, m := range helped.FindAllSubmatch(text, maxMatches) {
		if ofAll.Match(m[2]) && !ofAPart.Match(m[2]) {
			add(known.number(string(m[1])), true)
		}
	}
	if each, n := perEpoch.FindSubmatch(text), epochs.FindSubmatch(text); each != nil && n != nil {
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
	e := expression{words: factors.FindAllString(text, maxFactors), of: c}
	return e.sum()
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

// expression is one of numbers, names, operators and parentheses.
type expression struct {
	words []string
	of    constants
}

func (e *expression) next(words ...string) string {
	for _, w := range words {
		if len(e.words) > 0 && e.words[0] == w {
			e.words = e.words[1:]
			return w
		}
	}
	return ""
}

func (e *expression) sum() float64 {
	x := e.product()
	for {
		switch e.next("+", "-") {
		case "+":
			x += e.product()
		case "-":
			x -= e.product()
		default:
			return x
		}
	}
}

func (e *expression) product() float64 {
	x := e.power()
	for {
		switch e.next("*", "//", "/") {
		case "*":
			x *= e.power()
		case "//":
			x = math.Floor(x / e.power())
		case "/":
			x /= e.power()
		default:
			return x
		}
	}
}

func (e *expression) power() float64 {
	x := e.single()
	if e.next("**") != "" {
		return math.Pow(x, e.power())
	}
	return x
}

func (e *expression) single() float64 {
	if len(e.words) == 0 {
		return math.NaN()
	}
	if e.next("(") != "" {
		x := e.sum()
		e.next(")")
		return x
	}
	word := e.words[0]
	e.words = e.words[1:]
	if x, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64); err == nil {
		return x
	}
	return e.of.named(word)
}
