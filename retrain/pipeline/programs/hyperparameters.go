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
		l.attributes(of, algorithm)
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
	if usesRLlib(text, algorithm) {
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
	if m := byTable.FindStringIndex(text); m != nil {
		return []int{strings.LastIndexByte(text[:m[1]], '(')}
	}
	return nil
}

func usesRLlib(text, algorithm string) bool { return calls(text, algorithm+"Config") }

// byTable is how a program makes an algorithm of Stable-Baselines3 whose class is the value of a name or of a table.
var byTable = regexp.MustCompile(`(?:\]|\b[a-z_]\w*)\(\s*(?:policy\s*=\s*)?["'](?:Mlp|Cnn|MultiInput)Policy["']`)

// ofSB3 is a call of a class of Stable-Baselines3.
var ofSB3 = regexp.MustCompile(`\b(?:A2C|DDPG|DQN|PPO|SAC|TD3)\(`)

// ComputesAgent reports whether a program makes an algorithm of Stable-Baselines3 by a table of classes, with arguments
// that only it can compute: what it trains is then not in its code.
func (f *Finder) ComputesAgent(aside func(file string) bool) bool {
	if len(f.trained) == 0 {
		return false
	}
	computes := false
	for _, file := range f.order {
		text := f.text[file]
		if aside(file) || !strings.Contains(text, "Policy") && !strings.Contains(text, "stable_baselines3") {
			continue
		}
		if ofSB3.MatchString(text) {
			return false
		}
		if m := byTable.FindStringIndex(text); m != nil {
			l := f.lookup()
			at := strings.LastIndexByte(text[:m[1]], '(')
			l.take(file, at, call(text, at))
			computes = computes || slices.ContainsFunc(l.hyperparameters, func(h Hyperparameter) bool { return strings.HasPrefix(h.Name, "**") })
		}
	}
	return computes
}

// setsAttribute is how a program sets a hyperparameter of RLlib by an attribute of its config.
var setsAttribute = regexp.MustCompile(`(?m)^[ \t]*(\w+)\.(adam_epsilon|burn_in_len|clip_param|double_q|dueling|entropy_coeff|epsilon|gamma|grad_clip|grad_clip_by|hiddens|kl_coeff|kl_target|lambda_|lr|minibatch_size|n_step|noisy|num_atoms|num_epochs|num_sgd_iter|num_steps_sampled_before_learning_starts|sgd_minibatch_size|sigma0|target_network_update_freq|tau|train_batch_size|train_batch_size_per_learner|training_intensity|twin_q|use_critic|use_gae|use_kl_loss|v_max|v_min|vf_clip_param|vf_loss_coeff)[ \t]*=[ \t]*`)

// attributes takes the hyperparameters that a file sets by attributes of a config of RLlib.
func (l *lookup) attributes(file, algorithm string) {
	text := l.text[file]
	if !usesRLlib(text, algorithm) {
		return
	}
	for _, m := range setsAttribute.FindAllStringSubmatchIndex(text, maxHyperparameters) {
		names := l.names(file, m[0])
		made, ok := l.assigned(file, text, text[m[2]:m[3]])
		if code := expressionAt(text, m[1]); ok && !strings.HasPrefix(code, "=") && strings.Contains(made, algorithm+"Config(") {
			v, known := literals.Of(code, names)
			l.set(text[m[4]:m[5]], v, known, text[m[4]:m[5]]+"="+code)
		}
	}
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
