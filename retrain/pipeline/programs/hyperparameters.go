package programs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
)

// Hyperparameter is an argument of an algorithm in the code of a training.
type Hyperparameter struct {
	Name  string
	Value string // in YAML, "" for one that only the program can compute
	Code  string // for a person, if only the program can compute it
}

// Hyperparameters are the arguments of an algorithm, and the file that gives them to it.
type Hyperparameters struct {
	File string
	All  []Hyperparameter
}

// maxHyperparameters bounds those of an algorithm.
const maxHyperparameters = 50

// maxShown bounds the code that is shown to a person, in bytes.
const maxShown = 80

// notOfAlgorithm are the arguments of an algorithm that the generated scripts set, or that are about where and how it is
// run and logged.
var notOfAlgorithm = []string{"policy", "env", "verbose", "tensorboard_log", "device", "monitor_wrapper", "create_eval_env", "full_tensorboard_log", "_init_setup_model"}

// Hyperparameters returns the arguments that the best training, a file that it imports, or the one that names the
// algorithm gives to it, and the file.
func (f *Finder) Hyperparameters(algorithm, file string) Hyperparameters {
	if len(f.trained) == 0 {
		return Hyperparameters{}
	}
	l := f.lookup()
	for _, of := range append(f.withImports(l.program), file) {
		text := f.text[of]
		for _, at := range callsOf(text, algorithm) {
			l.take(of, at, call(text, at))
		}
		if len(l.hyperparameters) > 0 {
			return Hyperparameters{of, l.hyperparameters}
		}
	}
	return Hyperparameters{}
}

// callsOf returns where the parentheses are of the first call that makes an algorithm of Stable-Baselines3, and of all
// that set hyperparameters of one of RLlib.
func callsOf(text, algorithm string) []int {
	var out []int
	if regexp.MustCompile(`\b` + algorithm + `Config\b`).MatchString(text) {
		for _, m := range ofRLlib.FindAllStringIndex(text, maxHyperparameters) {
			out = append(out, m[1]-1)
		}
		return out
	}
	for _, m := range regexp.MustCompile(`\b`+algorithm+`\(`).FindAllStringIndex(text, maxHyperparameters) {
		a := call(text, m[1]-1)
		if len(a) > 1 && (a[0].key == "" || given(a, "policy", -1) != "") {
			return []int{m[1] - 1}
		}
	}
	return nil
}

var ofRLlib = regexp.MustCompile(`\.training\(`)

// take takes the arguments of a call.
func (l *lookup) take(file string, at int, arguments []argument) {
	names := l.names(file, at)
	for _, a := range arguments {
		all, several := strings.CutPrefix(a.text, "**")
		switch {
		case a.key != "":
			v, ok := literals.Of(a.text, names)
			l.set(a.key, v, ok, a.key+"="+a.text)
		case several:
			v, ok := literals.Of(all, names)
			for i, key := range v.Keys {
				l.set(key, v.Items[i], ok, "")
			}
			if !ok {
				l.set(a.text, v, false, a.text)
			}
		}
	}
}

// set adds a hyperparameter, or replaces the one of its name.
func (l *lookup) set(argument string, v literals.Value, known bool, code string) {
	if slices.Contains(notOfAlgorithm, argument) || len(l.hyperparameters) >= maxHyperparameters {
		return
	}
	h := Hyperparameter{Name: argument, Code: strings.Join(strings.Fields(code), " ")}
	if known && name.MatchString(argument) {
		h.Value, _ = v.YAML()
	}
	if len(h.Code) > maxShown {
		h.Code = argument[:min(len(argument), maxShown)] + "=..."
	}
	i := slices.IndexFunc(l.hyperparameters, func(x Hyperparameter) bool { return x.Name == argument })
	if i >= 0 {
		l.hyperparameters[i] = h
		return
	}
	l.hyperparameters = append(l.hyperparameters, h)
}
