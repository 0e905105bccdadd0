package programs

import (
	"cmp"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/headless"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/saves"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// Flags with a known meaning, the clearest first.
var (
	savesTo     = pattern.MustCompile(`^(save_path|save_dir|saved_path|saved_dir|saved_models?_path|saved_models?_dir|save_to|model_save_path|save_model_path|model_save_dir|save_folder|model_dir|model_path|output_model|model_out|out_model|checkpoint_dir|ckpt_dir|checkpoint_path|ckpt_path|checkpoints?_folder|output_dir|output_path|out_dir|outdir|output_folder|output|out|results?_dir|results?_path|train_dir|experiment_dir|exp_dir|run_dir|runs_dir|workdir|work_dir|save|log_dir|logdir|log_path|log_folder|logs_dir|logs|log_root|root_dir|base_dir|default_root_dir|save_file|save_name)$`)
	firstOf     = []string{"save", "model", "checkpoint", "ckpt", "out", "result", "train_dir", "exp", "run", "work", "root", "base", "log", "default"}
	readsFrom   = pattern.MustCompile(`^(model_path|models?|model_file|model_dir|checkpoint|checkpoint_path|checkpoint_dir|checkpoint_file|chkpt(?:_dir|_path|_file)?|ckpt|ckpt_path|ckpt_dir|load|load_path|load_model|load_dir|load_from|load_checkpoint|load_run|policy|policy_path|agent|agent_path|weights|weights_path|model_weights|restore|restore_path|trained_agent|trained_model|resume|resume_path|resume_from|results?_dir|train_dir|experiment_dir|exp_dir|run_dir|log_dir|logdir|folder|fpath|snapshot|actor_path|params_path|save_dir|save_path|saved_path|saved_dir|saved_models?_path|saved_models?_dir|path)$`)
	readsFirst  = []string{"model_path", "model", "checkpoint", "chkpt", "ckpt", "load", "policy", "agent", "weights", "restore", "trained", "resume", "fpath", "actor", "params", "snapshot", "result", "train_dir", "exp", "run", "folder", "save", "log", "path"}
	envFlag     = pattern.MustCompile(`^(env|env_id|env_name|environment|environment_id|environment_name|gym_id|gym_env|task|task_name|task_id|game|domain|scenario)$`)
	algoFlag    = pattern.MustCompile(`^(algo|algorithm|alg|algo_name|agent_name|agent_type)$`)
	stepsFlag   = pattern.MustCompile(`^(total_(time|env_|train_)?steps|n_timesteps|num_timesteps|timesteps|max_(time)?steps|num_(env_)?steps|steps|train_for_env_steps|num_env_steps|training_steps|n_steps)$`)
	configFlag  = pattern.MustCompile(`^(config|config_path|config_file|cfg|cfg_path|cfg_file|conf|file|config_name|settings|yaml|params_file|recipe|experiment_config|exp_config)$`)
	nameFlag    = pattern.MustCompile(`^(exp|exp_name|experiment|experiment_name|run_name|name|run|run_id|tag)$`)
	seedFlag    = pattern.MustCompile(`^(seed|random_seed)$`)
	noDisplay   = pattern.MustCompile(`^(no_render|no_rendering|headless|no_display|no_gui|no_show|no_viewer|no_video|norender)$`)
	loggingFlag = pattern.MustCompile(`^--?(track|wandb.*|with_wandb.*|use_wandb.*|push.*|capture-video|capture_video|render|live|gui|display|save[-_]video|video|upload.*)(=.*)?$`)
	writtenName = pattern.MustCompile(`["']([\w./-]+\.(?:pth?|zip|ckpt|pkl|h5|onnx|npz|safetensors|msgpack|cleanrl_model))["']`)
)

// Known are the known values for arguments of programs.
type Known struct{ Project, Environment, Algorithm, Steps string }

// Command is a proposed command with its source.
type Command struct {
	Words []string `json:"words"`
	From  string   `json:"from"`
	Notes []string `json:"notes,omitempty"` // about the arguments, for the user
}

// trainingCommand returns the command that trains, the place where it leaves the model, "" if that is unknown, and the
// arguments.
func (f *Finder) trainingCommand(p *program, k Known) (Command, string, []string) {
	if path.Ext(p.file) == ".ipynb" {
		f.copied = commandline.Place{Copied: true, Dir: path.Dir(p.file)}
		return f.executed(p), f.left(p, f.copied), nil
	}
	args, model := p.base(), ""
	out := f.output(p)
	nothing := f.savesNothing(p)
	saving := saves.Turns(f.reached(p), nothing)
	if nothing && len(f.usedArguments(p)) >= enoughUsed && !slices.ContainsFunc(p.flags, saving) { // the argument is only for files that are not read again
		out = nil
	}
	if out != nil {
		model = commandline.Work + "model" + modules.Extension(cmp.Or(p.flags.Given(args, *out), out.Value))
		args = commandline.Set(args, *out, model)
	}
	args = f.madeInWork(p, out, f.withoutScreen(p, onProcessor(p, f.require(p, args, k, model, false))))
	for _, x := range p.flags {
		switch {
		case out != nil || !saving(x) || commandline.Has(args, x):
		case x.Boolean && !x.IsOn():
			args = append(args, x.On())
		case slices.Equal(x.Choices, []string{"0", "1"}) && x.Value != "1":
			args = append(args, x.Words("1")...)
		}
	}
	if ofHydra := hydra.Uses(f.Text[p.file]); ofHydra && parsesToo.MatchString(f.Text[p.file]) {
		args = nil // each of the two rejects the arguments of the other
	} else if ofHydra {
		args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "hydra.run.dir=") })
		args = append(args, "hydra.run.dir="+commandline.Work+"model")
		if name := f.namedModel(p); written(f.Text[p.file]) == "" && name != "" {
			model = cmp.Or(model, commandline.LastModel+"/"+name)
		}
		model = cmp.Or(model, savedByHydra(f.Text[p.file]))
	}
	if x, _ := trainsBy(p); x != nil && !commandline.Has(args, *x) {
		args = append(args, x.On())
	}
	at := f.besideIfNeeded(p, f.placeOf(p, out == nil))
	if f.place = at; at.Copied {
		f.copied = at
	}
	if model == "" {
		model = f.left(p, at)
	}
	c := f.proposed(p, args, at, true)
	c.Notes = append(c.Notes, f.asides(p, args, nothing)...)
	return c, model, args
}

// parsesToo matches an argument parser in addition to hydra.
var parsesToo = pattern.MustCompile(`\bArgumentParser\(`)

// left returns where a program without an argument for it leaves its model, or "" if that is unknown.
func (f *Finder) left(p *program, at commandline.Place) string {
	if file := written(f.Text[p.file]); file != "" {
		return at.Directory() + file
	}
	if name := f.namedModel(p); name != "" {
		return commandline.LastModel + "/" + name
	}
	return f.checkpoint(p)
}

// base returns the arguments that a page recommends, without those that need a screen, an account or a GPU.
func (p *program) base() []string {
	var out []string
	for i := 0; i < len(p.args); i++ {
		a := p.args[i]
		if loggingFlag.MatchString(a) {
			if i+1 < len(p.args) && !strings.HasPrefix(p.args[i+1], "-") && !strings.Contains(a, "=") && !p.flags.IsBoolean(a) {
				i++
			}
			continue
		}
		if p.turnsGPUOn(i) || p.lacksValue(i) {
			continue
		}
		a = p.ofAbsl(a)
		if strings.HasPrefix(a, "cuda") || strings.HasSuffix(a, "=cuda") || strings.HasSuffix(a, "=cuda:0") {
			a = strings.ReplaceAll(strings.ReplaceAll(a, "cuda:0", "cpu"), "cuda", "cpu")
		}
		out = append(out, a)
	}
	return out
}

// lacksValue reports whether the argument at an index needs a value that the page omits.
func (p *program) lacksValue(i int) bool {
	alone := strings.HasPrefix(p.args[i], "--") && !strings.Contains(p.args[i], "=") && (i+1 == len(p.args) || strings.HasPrefix(p.args[i+1], "--"))
	return alone && slices.ContainsFunc(p.flags, func(x modules.Option) bool {
		return x.Is(p.args[i]) && !x.Boolean && !x.Alone && !x.Position && !x.Joined
	})
}

// ofAbsl replaces an abbreviated argument by the only one that begins with its name. Unlike argparse, absl rejects
// abbreviations.
func (p *program) ofAbsl(argument string) string {
	name, value, joined := strings.Cut(argument, "=")
	if !joined || !strings.HasPrefix(name, "--") || len(p.flags) == 0 || slices.ContainsFunc(p.flags, func(x modules.Option) bool {
		return !x.Joined || !strings.HasPrefix(x.Name, "--") || x.Name == name
	}) {
		return argument
	}
	longer := ""
	for _, x := range p.flags {
		switch {
		case !strings.HasPrefix(x.Name, name+"_"):
		case longer != "":
			return argument
		default:
			longer = x.Name
		}
	}
	if longer == "" {
		return argument
	}
	return longer + "=" + value
}

// output returns the argument of a training for the place of its model, or nil.
func (f *Finder) output(p *program) *modules.Option {
	saved := saves.Places(p.text)
	for i, x := range p.flags {
		if !x.Boolean && !x.Position && saved[x.Key()] && readsFrom.MatchString(x.Key()) {
			return &p.flags[i]
		}
	}
	best, at := -1, len(firstOf)
	for i, x := range p.flags {
		if x.Boolean || !savesTo.MatchString(x.Key()) || f.unused(p, x) || strings.HasPrefix(x.Key(), "model_path") && !f.code.Of(p.text).Saves && !f.code.Of(f.Text[p.file]).Saves {
			continue
		}
		if strings.HasPrefix(x.Key(), "model_path") && saves.OnlyLoads(p.text, x.Key()) {
			continue
		}
		if x.OfHydra() && x.Value == "" && !x.Required && !commandline.Has(p.args, x) && !saves.By(p.text, x.Name) { // it may be the model to continue from
			continue
		}
		j := slices.IndexFunc(firstOf, func(word string) bool { return strings.HasPrefix(x.Key(), word) })
		if j >= 0 && j < at {
			best, at = i, j
		}
	}
	if best < 0 {
		return nil
	}
	return &p.flags[best]
}

// passesAll matches code that passes on all arguments of argparse.
var passesAll = pattern.MustCompile(`\*\*[ \t]*(?:vars\(|\w*(?:args|opt|config)\b)|=[ \t]*vars\(|__dict__|\bgetattr\(|_get_kwargs`)

// unused reports whether none of the code of a program uses an argument that it defines with argparse, although it uses
// others.
func (f *Finder) unused(p *program, x modules.Option) bool {
	used := f.usedArguments(p)
	return len(used) >= enoughUsed && !used[x.Key()]
}

// enoughUsed is the number of arguments that the code must use before the others count as unused.
const enoughUsed = 3

// usedArguments returns the keys of the arguments that the code of a program with argparse uses, or nil if it may use
// any.
func (f *Finder) usedArguments(p *program) map[string]bool {
	if known, ok := f.used[p.file]; ok {
		return known
	}
	f.used[p.file] = nil
	texts := f.reached(p)
	if !slices.ContainsFunc(texts, addsArgument.MatchString) || slices.ContainsFunc(texts, passesAll.MatchString) {
		return nil
	}
	keys, out := map[string]bool{}, map[string]bool{}
	for _, x := range p.flags {
		keys[x.Key()] = true
	}
	for _, text := range texts {
		for _, m := range attribute.FindAllStringSubmatch(addsArgument.ReplaceAllString(text, ""), modules.MaxMatches) {
			if key := strings.ToLower(m[1] + m[2]); keys[key] {
				out[key] = true
			}
		}
	}
	f.used[p.file] = out
	return out
}

// attribute matches an attribute or a string key.
var attribute = pattern.MustCompile(`\w\.([A-Za-z_]\w*)|\[["'](\w+)["']\]`)

// addsArgument matches the definition of an argparse argument, up to the end of its first line.
var addsArgument = pattern.MustCompile(`\badd_argument\([^\n]*`)

// written returns the relative path of the model that a program without an argument for it writes, or "" if the program
// composes the path.
func written(text string) string {
	for _, m := range traits.Saving.FindAllStringIndex(text, 100) {
		arguments := modules.ArgumentsOf(text, m[1]-1)
		if len(arguments) > 1 && text[m[0]:m[1]] == ".save(" && modules.Literal(arguments[0].Text) == "" && !savesObject.MatchString(text[max(0, m[0]-20):m[0]]) {
			continue
		}
		for _, a := range arguments {
			if w := writtenName.FindStringSubmatch(a.Text); w != nil && !strings.HasPrefix(w[1], "/") && modules.Literal(a.Text) != "" {
				return strings.TrimPrefix(w[1], "./")
			}
		}
	}
	return ""
}

// evaluationCommand returns the command that evaluates the model at a place.
func (f *Finder) evaluationCommand(p *program, k Known, model string, trained []string) Command {
	args := p.base()
	if !f.Has(p.file) {
		args = newestModel(args, trained)
	}
	if p.args == nil && f.isItself(p) {
		args = f.trained[0].base()
	}
	at := cmp.Or(f.input(p), saves.LoadedBy(f.reached(p), p.flags))
	place := commandline.Work + "model"
	if at != nil {
		example := p.flags.Given(args, *at)
		directory := ofDirectory.MatchString(at.Key()) && !saves.LoadsFile(p.text, at.Key())
		place = f.newest(p, cmp.Or(example, at.Value))
		if after, ok := strings.CutPrefix(place, commandline.LastModel); ok && directory && modules.Extension(cmp.Or(example, at.Value)) == "" {
			place = commandline.LastDir + after
		}
		if strings.HasPrefix(place, commandline.LastModel) && f.leavesDirectory() && !directory {
			model = place
		}
		if strings.HasPrefix(model, commandline.LastModel) && directory { // the argument is for a directory
			model = ""
		}
		model = f.below(*at, model)
		inParts := false
		args, inParts = f.inParts(p, *at, args, model)
		missing := example == "" && (!at.Position && at.Required || at.Value == "" && !at.Required || !at.Position && f.committed(p, *at)) // otherwise, the default is where the training leaves the model
		if !inParts && (model != "" && (example != "" || !at.Position || !at.Required) || missing || f.isExample(example)) {
			args = p.flags.Give(args, *at, cmp.Or(model, place))
		}
	}
	for _, a := range trained { // a page uses the same place in both commands
		if name, value, ok := strings.Cut(a, "="); ok && strings.HasPrefix(value, commandline.Work) && commandline.Has(args, modules.Option{Name: name}) {
			args = commandline.Set(args, modules.Option{Name: name, Joined: true}, value)
		}
	}
	args = f.resultsInWork(p, at, f.ofTraining(p, at, f.asTrained(p, at, args, trained)))
	args = f.madeInWork(p, at, f.withoutScreen(p, onProcessor(p, f.require(p, args, k, cmp.Or(model, place), true))))
	for _, x := range p.flags {
		switch {
		case commandline.Has(args, x):
		case x.Boolean && noDisplay.MatchString(x.Key()) && !x.IsOn():
			args = append(args, x.On())
		case !x.Position && x.Value == "human" && (len(x.Choices) == 0 || slices.Contains(x.Choices, "rgb_array")): // opens a window
			args = append(args, x.Words("rgb_array")...)
		}
	}
	if hydra.Uses(f.Text[p.file]) && slices.ContainsFunc(args, commandline.Expands) {
		args = append(args, "hydra.run.dir="+commandline.Work+"evaluation")
	}
	c := f.proposed(p, args, f.placeOfEvaluation(p, args), false)
	c.Notes = append(c.Notes, saves.OnlyThere(f.withImports(p), f.Text, p.flags)...)
	return c
}

// newestModel replaces the path of a model in the arguments of a program whose flags are unknown, because the repository
// does not contain it. A path that contains an argument of the training is where the training leaves its model.
func newestModel(args, trained []string) []string {
	for i := 1; i < len(args); i++ {
		of := func(a string) bool { return len(a) > 3 && strings.Contains(args[i], a) }
		if forModel(args[i-1]) && ofModel.MatchString(args[i]) && !slices.ContainsFunc(trained, of) {
			args[i] = commandline.LastModel + modules.Extension(args[i])
		}
	}
	return args
}

// below returns the directory of the model below the one that is passed to the training, if the defaults of both
// programs show that the training creates it.
func (f *Finder) below(at modules.Option, model string) string {
	if len(f.trained) == 0 || at.Value == "" || !strings.HasPrefix(model, commandline.Work) {
		return model
	}
	out := f.output(&f.trained[0])
	if out == nil || out.Value == "" {
		return model
	}
	rest, ok := strings.CutPrefix(path.Clean(at.Value), path.Clean(out.Value)+"/")
	if !ok || modules.Extension(rest) != "" || !modules.Printable(rest) || commandline.Expands(rest) {
		return model
	}
	return model + "/" + rest
}

// placeOfEvaluation returns where an evaluation runs. If it is the program of the training, it is the same place.
func (f *Finder) placeOfEvaluation(p *program, args []string) commandline.Place {
	if f.isItself(p) && (f.place.Work || f.place.Copied) {
		return f.place
	}
	same := len(f.trained) > 0 && f.trained[0].file == p.file && f.output(&f.trained[0]) == nil
	at := f.placeOf(p, same || !slices.ContainsFunc(args, commandline.Expands) || pytext.MakesDirectories(f.Text[p.file]))
	switch {
	case f.copied.Copied && (f.copied.Dir == "." || f.copied.Dir == path.Dir(p.file)) && !slices.ContainsFunc(args, commandline.Expands) && f.readsWritten(p):
		return f.copied
	case f.copied.Copied:
		return f.besideIfNeeded(p, at)
	case at.Copied: // there is no copy
		return commandline.Place{}
	}
	return at
}

var ofModel = pattern.MustCompile(`\.(?:pth?|zip|ckpt|pkl|pickle|h5|hdf5|onnx|npz|nn|safetensors|msgpack|d3|tar|keras|weights|model|cleanrl_model)$`)

// isExample reports whether the path of a model in a page is one that the training does not write: a file of another
// machine or of the repository, or a file that the training does not mention.
func (f *Finder) isExample(place string) bool {
	switch {
	case place == "" || commandline.Expands(place) || noModel.MatchString(place):
		return false
	case strings.HasPrefix(place, "/") || strings.HasPrefix(place, "~") || f.exists(path.Clean(place)):
		return true
	}
	return ofModel.MatchString(place) && (len(f.trained) == 0 || !strings.Contains(f.Text[f.trained[0].file], path.Base(place)))
}

// newest returns the newest model file, for a training whose model has no known place. Its extension is that of the
// example, or else one that the programs mention.
func (f *Finder) newest(p *program, example string) string {
	extension := modules.Extension(example)
	if len(f.trained) > 0 && extension == "" {
		for _, file := range append(f.withImports(&f.trained[0]), p.file) {
			if m := modelExtension.FindStringSubmatch(f.Text[file]); m != nil {
				extension = m[1]
				break
			}
		}
	}
	if extension == "" && len(f.trained) > 0 && savesZip.MatchString(f.Text[f.trained[0].file]) && f.output(&f.trained[0]) == nil {
		extension = ".zip"
	}
	if extension == "" {
		return commandline.Work + "model"
	}
	return commandline.LastModel + extension
}

// savesZip matches imports of the libraries whose models have the extension .zip, which programs need not mention.
var savesZip = pattern.MustCompile(`(?m)^from stable_baselines3\b|^from sb3_contrib\b`)

// ofDirectory matches arguments for a directory, as opposed to a file in it.
var ofDirectory = pattern.MustCompile(`dir|folder|root|^logs?$|^runs?$|_run$|^exp|log_path`)

// leavesDirectory reports whether an argument of the training sets the directory of its model instead of the file.
func (f *Finder) leavesDirectory() bool {
	if len(f.trained) == 0 {
		return false
	}
	out := f.output(&f.trained[0])
	return out != nil && ofDirectory.MatchString(out.Key())
}

var (
	deviceFlag  = pattern.MustCompile(`^(device|cuda_device|torch_device|train_device|accelerator)$`)
	comparesCPU = pattern.MustCompile(`==[ \t]*["']cpu["']`)
	ofCUDA      = pattern.MustCompile(`^cuda(:[0-9]+)?$`)
	numberGPU   = pattern.MustCompile(`^(gpu|gpus|gpu_id|gpu_ids|gpu_index|cuda|device)$`)
	noGPU       = pattern.MustCompile(`(?i)(?:-1\b.{0,40}\b(?:cpu|no gpu|without)|(?:cpu|no gpu|without).{0,40}-1\b)`)
)

// onProcessor adds the arguments without which a program fails if there is no GPU.
func onProcessor(p *program, args []string) []string {
	for _, x := range p.flags {
		onGPU := ofCUDA.MatchString(x.Value) || x.Value == "gpu" && (slices.Contains(x.Choices, "cpu") || comparesCPU.MatchString(p.text))
		if !x.Boolean && !x.Position && deviceFlag.MatchString(x.Key()) && onGPU && !commandline.Has(args, x) {
			args = append(args, x.Words("cpu")...)
		}
		if x.Boolean && x.IsOn() && x.Joined && !x.OfHydra() && ofGPU.MatchString(x.Key()) && !commandline.Has(args, x) { // a flag of absl
			args = append(args, x.Words("false")...)
		}
		if !x.Boolean && !x.Position && numberGPU.MatchString(x.Key()) && x.Value != "" && x.Value != "-1" && noGPU.MatchString(x.Help) && !commandline.Has(args, x) {
			args = append(args, x.Words("-1")...)
		}
	}
	return args
}

var modelExtension = pattern.MustCompile(`["'(\w}](\.(?:pth?|zip|ckpt|h5|safetensors|msgpack|cleanrl_model))["']`)

// whichModel matches defaults of arguments that select one of the models in a directory.
var whichModel = pattern.MustCompile(`^(last|latest|newest|best|final|-?[0-9]+)$`)

// input returns the argument of an evaluation for the model, or nil: one that a page uses, or else the clearest.
func (f *Finder) input(p *program) *modules.Option {
	if i := slices.IndexFunc(p.flags, func(x modules.Option) bool { return x.Name == p.model }); i >= 0 && p.model != "" {
		return &p.flags[i]
	}
	for _, a := range f.said.aboutProgram(p) {
		if !f.names(a, p.file) {
			continue
		}
		for i, x := range p.flags {
			if !x.Boolean && !x.Position && readsFrom.MatchString(x.Key()) && !whichModel.MatchString(x.Value) && !namesAlgorithm(x, p.flags.Given(a.words, x)) && slices.ContainsFunc(a.words, x.Is) {
				return &p.flags[i]
			}
		}
	}
	best, at := -1, len(readsFirst)
	for i, x := range p.flags {
		if x.Boolean || !readsFrom.MatchString(x.Key()) || len(x.Choices) > 0 || whichModel.MatchString(x.Value) || namesAlgorithm(x, p.flags.Given(p.args, x)) {
			continue
		}
		j := slices.IndexFunc(readsFirst, func(word string) bool { return strings.HasPrefix(x.Key(), word) })
		if j >= 0 && j < at {
			best, at = i, j
		}
	}
	if best < 0 {
		return nil
	}
	return &p.flags[best]
}

// require adds the arguments that a program requires.
func (f *Finder) require(p *program, args []string, k Known, model string, evaluation bool) []string {
	places := p.flags.Positions(args)
	var ordered []string
	for _, x := range p.flags {
		wanted := x.Required || x.Value == "" && !x.Boolean && configFlag.MatchString(x.Key()) && x.Position
		if x.Boolean || !wanted && !opensAlways(p.text, x) || !x.Position && commandline.Has(args, x) {
			continue
		}
		if x.Position && places > 0 { // a page has given it
			places--
			continue
		}
		value := f.value(p, x, k, model, evaluation)
		if x.Position {
			ordered = append(ordered, value)
		} else {
			args = append(args, x.Words(value)...)
		}
	}
	return append(ordered, args...)
}

// opensAlways reports whether a program always opens the settings file in an argument without a default, without
// testing whether the argument is given.
func opensAlways(text string, x modules.Option) bool {
	if x.Value != "" || x.Code != "" || x.Position || x.Boolean || !configFlag.MatchString(x.Key()) {
		return false
	}
	key := `\.` + regexp.QuoteMeta(x.Key()) + `\b`
	return pattern.MustCompile(`\b(?:open|load\w*|read\w*|Path|join)\([^()\n]*`+key).MatchString(text) && !pattern.MustCompile(`\b(?:if|or)\b[^\n]*`+key).MatchString(text)
}

// value returns what to pass for an argument that a program requires.
func (f *Finder) value(p *program, x modules.Option, k Known, model string, evaluation bool) string {
	key := x.Key()
	switch {
	case x.Value != "":
		return x.Value
	case envFlag.MatchString(key) && k.Environment != "":
		return k.Environment
	case algoFlag.MatchString(key) && k.Algorithm != "":
		if i := slices.IndexFunc(x.Choices, func(c string) bool { return strings.EqualFold(c, k.Algorithm) }); i >= 0 || len(x.Choices) > 0 {
			return x.Choices[max(i, 0)]
		}
		return k.Algorithm
	case evaluation && readsFrom.MatchString(key), !evaluation && savesTo.MatchString(key):
		if model == "" {
			model = commandline.Work + "model"
		}
		return model
	case configFlag.MatchString(key):
		if c := configuration(f.yaml, p); c != "" {
			if rest, ok := strings.CutPrefix(c, saves.DirectoryBefore(p.text, key)); ok && rest != c {
				return rest
			}
			return commandline.Project + c
		}
	case savesTo.MatchString(key):
		return commandline.Work + "evaluation"
	case stepsFlag.MatchString(key) && k.Steps != "":
		return k.Steps
	case nameFlag.MatchString(key) && traits.AsksForFile(x.Help):
	case nameFlag.MatchString(key):
		return k.Project
	case seedFlag.MatchString(key):
		return "1"
	case len(x.Choices) > 0:
		return x.Choices[0]
	}
	return strict.Placeholder
}

// configuration returns the YAML file that best fits a program, or "".
func configuration(yaml []string, p *program) string {
	best, most := "", 0
	for _, c := range yaml {
		score := 0
		dir, base := path.Dir(c), strings.ToLower(path.Base(c))
		switch {
		case strings.HasPrefix(c, ".") || asidePath.MatchString(c) || strings.Contains(base, "docker") || strings.Contains(base, "environment") || strings.HasPrefix(base, "mkdocs") || strings.HasPrefix(base, "."):
			continue
		case hydra.IsNamed(c):
			score += 10
		case dir == path.Dir(p.file):
			score += 10
		case strings.Contains(dir, "example"):
			score += 8
		default:
			continue
		}
		score += 5*boolean(strings.Contains(base, "train")) + 4*boolean(strings.Contains(base, "default")) + 3*boolean(strings.Contains(base, "example") || strings.Contains(base, "own")) - 2*strings.Count(c, "/")
		score += 4 * boolean(dir == path.Dir(p.file))
		if best == "" || score > most {
			best, most = c, score
		}
	}
	return best
}

// proposed returns the command that runs a program at a place.
func (f *Finder) proposed(p *program, args []string, at commandline.Place, training bool) Command {
	start := slices.Clone(p.start)
	all := append(slices.Clone(p.path), args...)
	for _, x := range p.flags { // relative defaults do not refer to $WORK
		if x.Position || commandline.Has(args, x) {
			continue
		}
		switch beside := path.Join(path.Dir(p.file), x.Value); {
		case at.Work && f.isFile(x.Value):
			all = append(all, x.Words(x.Value)...)
		case !f.isFile(x.Value) && beside != x.Value && f.isFile(beside) && !at.Copied: // its pages are for another directory
			all = append(all, x.Words(beside)...)
		}
	}
	if at.Work {
		all = f.inputs(p, all)
	}
	omitted := besideOmitted(all)
	for i, a := range all {
		all[i] = f.fromPlace(p, a, at, omitted)
	}
	switch {
	case at.Work && strings.HasSuffix(start[0], ".py"):
		start[0] = commandline.Project + start[0]
	case at.Copied && at.Dir != ".":
		start[0] = path.Base(start[0])
	}
	words := f.withVariables(p, slices.Concat([]string{"python"}, start, all))
	from := p.file
	if p.from != "" && p.from != p.file {
		from = p.from
	}
	if at == (commandline.Place{}) && !slices.ContainsFunc(words, commandline.Expands) && f.nestedPaths(p, at) == "" && f.home(p) == "" {
		return Command{words, from, p.notes(args)}
	}
	at.Source = f.importsSource(p)
	before := at.Enter(training) + f.forgets(p, at, training) + f.home(p) + f.nestedPaths(p, at) + f.makes(p, at)
	return Command{commandline.Shell(before, words), from, p.notes(args)}
}

// notes returns remarks on the arguments of a command: the page that recommends them, and the GPU that the program
// would use.
func (p *program) notes(args []string) []string {
	var out []string
	if len(p.args) > 0 && p.page != "" && p.page != p.file {
		out = append(out, "arguments: "+p.page)
	}
	for i, a := range p.args {
		if p.turnsGPUOn(i) {
			out = append(out, cmp.Or(p.page, "the README")+" passes "+a+", which requires training.gpu")
		}
	}
	for _, x := range p.flags {
		if gpu := cmp.Or(p.flags.Given(p.args, x), x.Value); !x.Boolean && (gpu == "gpu" || ofCUDA.MatchString(gpu)) && strings.HasPrefix(p.flags.Given(args, x), "cpu") {
			out = append(out, x.Name+" is "+gpu+" in the project, which requires training.gpu")
		}
	}
	return out
}

// ofScreen matches arguments that open a window.
var ofScreen = pattern.MustCompile(`^(?:gui|use_gui|show_gui|display|viewer)$`)

// parsesBool matches a call that parses a truth value of an argument.
var parsesBool = pattern.MustCompile(`\b(?:str\w*bool\w*|to_?bool|parse_?bool\w*|(?:literal_)?eval)\([ \t]*\w+\.(\w+)[ \t]*\)`)

// withoutScreen sets the arguments that take a truth value, and that open a window by default. Where Python would take
// every word for True, the value is empty.
func (f *Finder) withoutScreen(p *program, args []string) []string {
	for _, x := range p.flags {
		if x.Boolean || x.Position || !ofScreen.MatchString(x.Key()) || commandline.Has(args, x) {
			continue
		}
		v, _ := literals.Of(cmp.Or(x.Value, x.Code), f.lookup(p).Names(p.file, len(f.Text[p.file])))
		if v.Kind == literals.Bool && v.Number == 1 {
			value := "False"
			if x.Truthy && !slices.ContainsFunc(parsesBool.FindAllStringSubmatch(p.text, modules.MaxMatches), func(m []string) bool { return m[1] == x.Key() }) {
				value = ""
			}
			args = append(args, x.Words(value)...)
		}
	}
	return args
}

// ofInputs matches arguments for directories that a program reads.
var ofInputs = pattern.MustCompile(`(?:^|_)(?:data|datasets?|demos?|inputs?|assets|maps?|scenarios?|dir|directory|path|folder|root)(?:_|$)`)

// inputs sets the arguments for input directories of the repository to their paths in the project.
func (f *Finder) inputs(p *program, args []string) []string {
	for _, x := range p.flags {
		dir := strings.TrimPrefix(path.Clean(cmp.Or(p.flags.Given(args, x), x.Value)), "./")
		if x.Boolean || x.Position || dir == "." || !ofInputs.MatchString(x.Key()) || pytext.OfResults.MatchString(x.Key()+" "+dir) || !f.isDirectory(dir) {
			continue
		}
		args = commandline.Set(args, x, commandline.Project+dir)
	}
	return args
}

// besideOmitted returns the directories, at the root, of settings files that a command names and the repository lacks.
func besideOmitted(args []string) []string {
	var out []string
	for _, a := range args {
		if top, _, _ := strings.Cut(a, "/"); leftOut(a) && !slices.Contains(out, top) {
			out = append(out, top)
		}
	}
	return out
}

// fromPlace returns an argument with the path of a repository file adapted to the place where the program runs. omitted
// are directories at the root that the repository lacks.
func (f *Finder) fromPlace(p *program, argument string, at commandline.Place, omitted []string) string {
	name, value, ok := strings.Cut(argument, "=")
	if !ok {
		name, value = "", argument
	}
	plain := strings.TrimPrefix(value, commandline.Project)
	if at.Copied && at.Dir != "." && f.exists(path.Join(at.Dir, plain)) {
		return argument
	}
	if beside := path.Join(path.Dir(p.file), plain); !f.exists(path.Clean(plain)) && fs.ValidPath(beside) && f.isFile(beside) {
		plain = beside
	}
	switch {
	case !f.exists(path.Clean(plain)) && !leftOut(plain) && !slices.Contains(omitted, plain[:max(0, strings.IndexByte(plain, '/'))]):
		return argument
	case at.Work:
		plain = commandline.Project + path.Clean(plain)
	case at.Copied && at.Dir != ".":
		plain = commandline.Copy + path.Clean(plain)
	}
	if ok {
		return name + "=" + plain
	}
	return plain
}

var (
	startsRun = pattern.MustCompile(`\bwandb\.init\(|\bWandb(?:Logger\w*|Callback)\(`)
	ofTracker = pattern.MustCompile(`^(track|(?:\w+_)?wandb|wandb_?log|wandb_(?:enabled?|track))$`)
	withoutIt = pattern.MustCompile(`^(?:offline|disabled)$`)
)

// tracks reports whether a program starts a Weights & Biases run unless an argument disables it. The run would fail
// without an account.
func (f *Finder) tracks(p *program) bool {
	for _, x := range p.flags {
		if x.Boolean && ofTracker.MatchString(x.Key()) && !strings.HasPrefix(x.Key(), "no_") && !x.IsOn() || withoutIt.MatchString(x.Value) {
			return false
		}
	}
	return slices.ContainsFunc(f.textsOf(p), startsRun.MatchString)
}

// withVariables adds the environment variables with which a program needs neither an account nor a screen.
func (f *Finder) withVariables(p *program, words []string) []string {
	var variables []string
	if f.tracks(p) {
		variables = append(variables, "WANDB_MODE=offline")
	}
	variables = append(variables, headless.Variables(f.reached(p), f.env)...)
	if len(variables) == 0 {
		return words
	}
	return slices.Concat([]string{"env"}, variables, words)
}

// leftOut reports whether an argument names a settings file, which a source distribution may omit.
func leftOut(value string) bool {
	return strings.Contains(value, "/") && !strings.HasPrefix(value, "/") && !strings.Contains(value, "..") && modules.PlainWord.MatchString(value) && isSettings(value)
}

// isFile reports whether a text is the path of a file, relative to the root of the repository.
func (f *Finder) isFile(text string) bool {
	return strings.Contains(text, ".") && f.exists(path.Clean(text))
}
