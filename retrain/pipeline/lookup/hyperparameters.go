package lookup

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Hyperparameter is an argument of an algorithm in the code of a training.
type Hyperparameter struct {
	Name  string
	Value string // in YAML, "" if only the program can compute it
	Code  string // shown to the user if only the program can compute the value
	From  string // file with the value, "" for the file of the call
}

// Hyperparameters are the arguments of an algorithm, with the file that sets them.
type Hyperparameters struct {
	File string
	All  []Hyperparameter
}

// Others returns the other files with values of the hyperparameters.
func (h Hyperparameters) Others() []string {
	var out []string
	for _, x := range h.All {
		if x.From != "" && x.From != h.File && !slices.Contains(out, x.From) {
			out = append(out, x.From)
		}
	}
	return out
}

// maxHyperparameters bounds the hyperparameters of an algorithm.
const maxHyperparameters = 50

// MaxShown bounds the code that is shown to the user, in bytes.
const MaxShown = 80

// notOfAlgorithm are arguments that the generated scripts set themselves, or that concern where an algorithm runs and
// logs.
var notOfAlgorithm = []string{"policy", "env", "verbose", "tensorboard_log", "device", "monitor_wrapper", "create_eval_env", "full_tensorboard_log", "_init_setup_model"}

// Hyperparameters returns the arguments that an algorithm has in the first of the given files that sets any. imported are
// the files that the program imports.
func (l *Lookup) Hyperparameters(algorithm string, files, imported []string) Hyperparameters {
	l.imported = imported
	for _, of := range files {
		l.calls(of, algorithm)
		l.attributes(of, algorithm)
		if len(l.hyperparameters) > 0 {
			return Hyperparameters{of, l.hyperparameters}
		}
	}
	return Hyperparameters{}
}

// Call returns the hyperparameters that a call sets, given the position of its opening parenthesis.
func (l *Lookup) Call(file string, at int) []Hyperparameter {
	l.take(file, at, 1)
	return l.hyperparameters
}

// calls records the arguments of the calls that set hyperparameters. For RLlib, these are all such calls in order. For
// Stable-Baselines3, they are the values that all calls agree on, considering calls that may run only if none certainly
// runs.
func (l *Lookup) calls(file, algorithm string) {
	text := l.files.Text[file]
	byRuns := map[int][]int{}
	for _, at := range CallsOf(text, algorithm) {
		runs := l.Runs(file, at)
		if usesRLlib(text, algorithm) {
			l.take(file, at, runs)
			continue
		}
		byRuns[runs] = append(byRuns[runs], at)
	}
	runs := 1
	if len(byRuns[1]) == 0 {
		runs = 0
	}
	var all [][]Hyperparameter
	for _, at := range byRuns[runs] {
		l.hyperparameters = nil
		l.take(file, at, 1)
		all = append(all, l.hyperparameters)
	}
	if len(all) > 0 {
		l.hyperparameters = agreed(all)
	}
}

// agreed returns the hyperparameters of several calls. A value that differs between them is unknown.
func agreed(all [][]Hyperparameter) []Hyperparameter {
	out := slices.Clone(all[0])
	for _, other := range all[1:] {
		for _, h := range slices.Concat(out, other) {
			same := func(x Hyperparameter) bool { return x.Name == h.Name }
			i, j := slices.IndexFunc(out, same), slices.IndexFunc(other, same)
			if i < 0 && len(out) < maxHyperparameters {
				i, out = len(out), append(out, h)
				out[i].Value = ""
			}
			if i >= 0 && (j < 0 || out[i].Value != other[j].Value) {
				out[i].Value = ""
			}
		}
	}
	return out
}

// CallsOf returns the positions of the opening parentheses of calls that construct an algorithm of Stable-Baselines3,
// or set hyperparameters of one of RLlib.
func CallsOf(text, algorithm string) []int {
	var out []int
	if usesRLlib(text, algorithm) {
		for _, m := range ofRLlib.FindAllStringIndex(text, maxHyperparameters) {
			out = append(out, m[1]-1)
		}
		return out
	}
	for _, m := range pattern.MustCompile(`\b`+algorithm+`\(`).FindAllStringIndex(text, maxHyperparameters) {
		a := modules.ArgumentsOf(text, m[1]-1)
		if len(a) > 1 && (a[0].Key == "" || modules.Given(a, "policy", -1) != "") {
			out = append(out, m[1]-1)
		}
	}
	if at := CallByTable(text); at >= 0 && len(out) == 0 {
		out = append(out, at)
	}
	return out
}

func usesRLlib(text, algorithm string) bool { return pytext.Calls(text, algorithm+"Config") }

// byTable matches the construction of a Stable-Baselines3 algorithm whose class is in a variable or table.
var byTable = pattern.MustCompile(`(?:\]|\b[a-z_]\w*)\(\s*(?:(?:policy\s*=\s*)?["'](?:Mlp|Cnn|MultiInput)Policy["']|policy\s*=)`)

// CallByTable returns the position of the opening parenthesis of a call that constructs a Stable-Baselines3 algorithm
// whose class is in a variable or table, or -1. Without a known policy, the call must have the arguments policy and env.
func CallByTable(text string) int {
	for _, m := range byTable.FindAllStringIndex(text, maxHyperparameters) {
		at := m[0] + strings.IndexByte(text[m[0]:], '(')
		if a := modules.ArgumentsOf(text, at); !strings.HasSuffix(text[:m[1]], "=") || modules.Given(a, "env", -1) != "" {
			return at
		}
	}
	return -1
}

// setsAttribute matches an assignment of a hyperparameter to an attribute of an RLlib config.
var setsAttribute = pattern.MustCompile(`(?m)^[ \t]*(\w+)\.(adam_epsilon|burn_in_len|clip_param|double_q|dueling|entropy_coeff|epsilon|gamma|grad_clip|grad_clip_by|hiddens|kl_coeff|kl_target|lambda_|lr|minibatch_size|n_step|noisy|num_atoms|num_epochs|num_sgd_iter|num_steps_sampled_before_learning_starts|sgd_minibatch_size|sigma0|target_network_update_freq|tau|train_batch_size|train_batch_size_per_learner|training_intensity|twin_q|use_critic|use_gae|use_kl_loss|v_max|v_min|vf_clip_param|vf_loss_coeff)[ \t]*=[ \t]*`)

// attributes records the hyperparameters that a file assigns to attributes of an RLlib config.
func (l *Lookup) attributes(file, algorithm string) {
	text := l.files.Text[file]
	if !usesRLlib(text, algorithm) {
		return
	}
	for _, m := range setsAttribute.FindAllStringSubmatchIndex(text, maxHyperparameters) {
		s := l.scopes(file, "", text)
		if code := s.Rest(m[1]); !strings.HasPrefix(code, "=") && l.isConfig(use{file, m[0]}, text[m[2]:m[3]], algorithm) {
			v, known := literals.Of(code, l.Names(file, m[0]))
			l.set(text[m[4]:m[5]], v, known, text[m[4]:m[5]]+"="+code, s.Runs(l.at(use{file, m[0]})))
		}
	}
}

// isConfig reports whether the value of a name is a config of an RLlib algorithm, possibly returned by the config's own
// methods.
func (l *Lookup) isConfig(u use, name, algorithm string) bool {
	for range maxHyperparameters {
		v, _ := l.assigned(u, name)
		if !strings.HasPrefix(v.Code, name+".") {
			return strings.Contains(v.Code, algorithm+"Config(")
		}
		u.at = v.At
	}
	return false
}

var ofRLlib = pattern.MustCompile(`\.training\(`)

// take records the arguments of a call. runs is 1 if the call runs, 0 if this is unknown, and -1 if it does not run.
func (l *Lookup) take(file string, at, runs int) {
	names := l.Names(file, at)
	for _, a := range modules.ArgumentsOf(l.files.Text[file], at) {
		all, several := strings.CutPrefix(a.Text, "**")
		switch {
		case a.Key != "":
			l.Source = file
			v, ok := literals.Of(a.Text, names)
			l.set(a.Key, v, ok, a.Key+"="+a.Text, runs)
			l.from(a.Key, file)
			l.noteField(a)
		case several:
			l.Source = file
			v, ok := literals.Of(all, names)
			from := l.Source
			for i, key := range v.Keys {
				l.set(key, v.Items[i], ok, key+"=...", runs)
				l.Source = from
				l.from(key, file)
			}
			if !ok {
				l.set(a.Text, v, false, a.Text, runs)
			}
		}
	}
}

// from records the file with the value of a hyperparameter if it is not the file of the call.
func (l *Lookup) from(argument, file string) {
	i := slices.IndexFunc(l.hyperparameters, func(x Hyperparameter) bool { return x.Name == argument })
	if i >= 0 && l.Source != file {
		l.hyperparameters[i].From = l.Source
	}
}

// set adds or replaces a hyperparameter, depending on whether the code runs. If this is unknown, the value is known
// only if the code does not change it.
func (l *Lookup) set(argument string, v literals.Value, known bool, code string, runs int) {
	if argument == "device" && strings.Contains(code+v.Text, "cuda") && runs >= 0 { // the image has no GPU
		l.hyperparameters = append(l.hyperparameters, Hyperparameter{Name: argument, Code: strings.Join(strings.Fields(code), " ") + " requires training.gpu"})
	}
	if runs < 0 || slices.Contains(notOfAlgorithm, argument) || len(l.hyperparameters) >= maxHyperparameters {
		return
	}
	h := Hyperparameter{Name: argument, Code: strings.Join(strings.Fields(code), " ")}
	if known && pytext.Identifier.MatchString(argument) {
		h.Value, _ = v.YAML()
	}
	if len(h.Code) > MaxShown {
		h.Code = argument[:min(len(argument), MaxShown)] + "=..."
	}
	i := slices.IndexFunc(l.hyperparameters, func(x Hyperparameter) bool { return x.Name == argument })
	if runs == 0 && (i < 0 || l.hyperparameters[i].Value != h.Value) {
		h.Value = ""
	}
	if i >= 0 {
		l.hyperparameters[i] = h
		return
	}
	l.hyperparameters = append(l.hyperparameters, h)
}

// noteField adds the value of the only field with the same name to a hyperparameter that only the program can compute.
func (l *Lookup) noteField(a modules.Argument) {
	i := slices.IndexFunc(l.hyperparameters, func(x Hyperparameter) bool { return x.Name == a.Key && x.Value == "" })
	if _, field, dotted := strings.Cut(a.Text, "."); i >= 0 && dotted && alias.MatchString(field) {
		for _, file := range l.imported {
			if values := pytext.Fields(l.files.Text[file], field); len(values) == 1 {
				l.hyperparameters[i].Code += " (" + values[0] + " in " + file + ")"
				return
			}
		}
	}
}
