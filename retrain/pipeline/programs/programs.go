package programs

import (
	"bytes"
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/commandline"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/headless"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// Patterns that several files use.
var (
	ofParts = pattern.MustCompile(`(^|/)(env|environment|wrapper|util|plot)s?(/|$)`)
)

// Finder determines which programs of a repository train and evaluate, by reading files. It is large because each step
// of the search needs the contents of all files.
type Finder struct {
	modules.Files
	repository fs.FS
	scripts    map[string]string // console scripts, as MODULE:FUNCTION
	said       said
	yaml       []string                 // whether a file mentions training, also in comments
	speaks     map[string]bool          // of training, also in comments
	seen       map[string]pytext.Seeing // by settings file

	hydra  hydra.Reader
	mainOf map[string]*mainBlock

	late    func() bool // whether to stop reading
	stopped bool

	code  traits.Known
	exist map[string]bool // whether files and directories exist

	trained, evaluated []program // ranked
	refused            []string  // why programs do not evaluate, for output

	notebooks    strings.Builder // their code
	targets      map[string]bool // modules that settings mention
	namedModules map[string]bool
	dropped      bool // whether some code was not kept

	place   commandline.Place // where the training runs
	copied  commandline.Place // the same, if that is a copy of the project
	env     string            // the environment that the repository mentions most
	project string

	used map[string]map[string]bool // arguments that programs use, by file
	off  map[string]bool            // whether code is kept from training
}

// New returns a finder for the programs of a repository. The caller must pass the files to Take. The finder stops
// searching once late returns true.
func New(repository fs.FS, late func() bool) *Finder {
	return &Finder{
		Files: modules.NewFiles(), repository: repository, late: late, scripts: map[string]string{}, said: said{by: map[string][]int{}}, speaks: map[string]bool{}, seen: map[string]pytext.Seeing{},
		hydra: hydra.NewReader(repository), mainOf: map[string]*mainBlock{}, code: traits.Known{}, exist: map[string]bool{},
		targets: map[string]bool{}, namedModules: map[string]bool{}, used: map[string]map[string]bool{}, off: map[string]bool{},
	}
}

// Stopped reports whether the search ended early because it was late.
func (f *Finder) Stopped() bool { return f.stopped }

func (f *Finder) exists(file string) bool {
	known, ok := f.exist[file]
	if !ok {
		info, err := fs.Stat(f.repository, file)
		known = err == nil && info.Mode().IsRegular()
		f.exist[file] = known
	}
	return known
}

func (f *Finder) isDirectory(dir string) bool {
	known, ok := f.exist[dir+"/"]
	if !ok {
		info, err := fs.Stat(f.repository, dir)
		known = err == nil && info.IsDir()
		f.exist[dir+"/"] = known
	}
	return known
}

// Take records a file. code is the source of a Python file or notebook without comments.
func (f *Finder) Take(file string, text, code []byte) {
	f.console(file, string(text))
	if hydra.IsYAML(file) && modules.Printable(file) {
		f.yaml = append(f.yaml, file)
		for _, m := range targetOf.FindAllSubmatch(text, modules.MaxMatches) {
			f.targets[string(m[1])] = true
		}
		f.sees(file, text)
	}
	if path.Ext(file) == ".ipynb" {
		f.sees(file, code)
		f.notebook(code)
		if f.Kept+len(code) <= modules.MaxKept {
			f.Kept += len(code)
			f.Text[file] = string(code)
		}
	}
	if path.Ext(file) != ".py" {
		return
	}
	if f.Kept+len(text) > modules.MaxKept {
		f.dropped = true
		return
	}
	f.Kept += len(text)
	f.Text[file] = string(code)
	f.speaks[file] = bytes.Contains(bytes.ToLower(text), []byte("train"))
	f.Order = append(f.Order, file)
	if modules.MainBlock.Match(code) {
		f.adviceIn(file, string(text), 15, nil)
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// program is a command that may train or evaluate.
type program struct {
	file  string   // the file with its code
	start []string // arguments of Python that start it
	path  []string // words of the subcommand
	text  string   // its code
	flags commandline.Flags
	args  []string // recommended by a page; nil for none
	page  string
	from  string // source of the program, for output
	score int
	model string // name of the argument for the model, "" if it must be derived from the names
	said  int    // index of the first advice about it
}

// name returns the name by which the program is weighed.
func (p program) name() string {
	words := append([]string{strings.TrimSuffix(p.file, ".py")}, p.path...)
	if len(p.path) > 0 {
		words = p.path
	}
	last := path.Base(words[len(words)-1])
	if last == "__main__" {
		last = path.Base(path.Dir(p.file))
	}
	return strings.ToLower(strings.Trim(last, "-"))
}

// names returns the names by which the program is weighed. Each word of a subcommand has a meaning of its own.
func (p program) names() []string {
	if script, ok := strings.CutPrefix(p.from, "console script "); ok && len(p.path) == 0 && p.start[0] == "-c" { // its file may contain several
		return []string{p.name(), strings.ToLower(script)}
	}
	if len(p.path) < 2 || strings.HasPrefix(p.path[0], "-") {
		return []string{p.name()}
	}
	out := make([]string, len(p.path))
	for i, word := range p.path {
		out[i] = strings.ToLower(word)
	}
	return out
}

var (
	anyCall = pattern.MustCompile(`(?m)^(?:[a-z_][\w., ]*=[ \t]*)?[A-Za-z_]\w*(?:\.\w+)*\(`)
	topCall = pattern.MustCompile(`(?m)^(?:\w[\w., ]*=\s*)?[\w.]*(?:learn|train|fit|run|main|evaluate|evaluate_policy|test|play)\(`)
	doesIt  = pattern.MustCompile(`\.(?:learn|fit|backward)\(|\.train\(\w*\)|_trainer\(|Trainer\(|evaluate_policy\(|\.predict\(`)
	// loadsWeights, stepsAny and collects match what scripts do that evaluate a model.
	loadsWeights = pattern.MustCompile(`\b(?:load_state_dict|load_model|load_weights|torch\.load|pickle\.load)\(`)
	stepsAny     = pattern.MustCompile(`\w\.step\(`)
	collects     = pattern.MustCompile(`\.collect\(|\bevaluate\w*\(|\brollout\w*\(`)
	runName      = pattern.MustCompile(`^(train|main|run|eval|evaluate|enjoy|test|play|learn)([_-][\w-]*)?\.py$`)
	notOwn       = pattern.MustCompile(`(^|/)(setup|conftest|conf|noxfile|versioneer|fabfile|tasks|__init__|dodo)\.py$`)
)

// candidates returns the programs of a repository.
func (f *Finder) candidates() []program {
	var out []program
	seen := map[string]bool{}
	add := func(p program) {
		if key := strings.Join(append(slices.Clone(p.start), p.path...), " "); !seen[key] && len(out) < maxAdvice {
			seen[key] = true
			out = append(out, p)
		}
	}
	names := make([]string, 0, len(f.scripts))
	for name := range f.scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if f.isLate() {
			break
		}
		start, file, function := f.started(f.scripts[name])
		if start == nil {
			continue
		}
		all := f.expand(file, start)
		if own := f.FlagsIn(file, function); start[0] == "-c" && strings.Contains(f.Body(file, function), "ArgumentParser(") && len(own) > 0 && !slices.ContainsFunc(own, func(x modules.Option) bool { return len(x.Choices) > 0 }) { // the file contains other programs
			all = []program{{file: file, start: start, flags: own}}
		}
		for _, p := range all {
			if len(p.path) == 0 {
				p.text = cmp.Or(p.text, f.Body(file, function))
			}
			p.from = "console script " + name
			add(p)
		}
	}
	for _, file := range f.Order {
		if f.isLate() {
			break
		}
		text := f.Text[file]
		named := slices.ContainsFunc(f.said.about(file), func(a advice) bool { return f.names(a, file) })
		alone := named && anyCall.MatchString(text) || !f.InPackage(file) && (topCall.MatchString(text) && runName.MatchString(path.Base(file)) || f.runsAtTop(file))
		if notOwn.MatchString(file) || !modules.Printable(file) || !modules.MainBlock.MatchString(text) && !alone {
			continue
		}
		for _, p := range f.expand(file, f.Words(file)) {
			p.from = file
			add(p)
		}
	}
	return out
}

// runsAtTop reports whether a file trains or evaluates outside of functions and classes, as scripts without a main
// block do.
func (f *Finder) runsAtTop(file string) bool {
	top := pytext.TopLevel(f.Text[file])
	return doesIt.MatchString(top) || loadsWeights.MatchString(top) && (stepsAny.MatchString(top) || collects.MatchString(top)) || stepsAny.MatchString(top) && runName.MatchString(path.Base(file))
}

func (f *Finder) isLate() bool {
	f.stopped = f.stopped || f.late()
	return f.stopped
}

// expand returns a program, or its subcommands if it has any.
func (f *Finder) expand(file string, start []string) []program {
	var out []program
	for _, c := range f.SubCommands(file) {
		p := program{file: c.File, start: start, path: c.Path, text: cmp.Or(c.Text, f.Text[c.File]), flags: c.Flags}
		if len(c.Path) == 0 && c.File != file { // it is a separate program
			continue
		}
		out = append(out, p)
	}
	if !slices.ContainsFunc(out, func(p program) bool { return len(p.path) > 0 }) && len(out) != 1 {
		p := program{file: file, start: start, text: f.Text[file], flags: f.Flags(file)}
		if settings := f.hydra.Flags(file, f.Text[file], f.assigns(file)); len(settings) > 0 {
			p.flags = settings
		}
		out = []program{p}
	}
	return out
}

var asidePath = pattern.MustCompile(`(^|/)(tests?|docs?|benchmarks?|vendor|vendored|third_?party|ci|\.github|unit_?tests?|debug|deprecated|archived?|legacy|obsolete|scratch|sandbox|playground|backups?)(/|$)|(^|/)(test_|conftest)[^/]*$`)

// onlyShows matches names of programs that show something, which may be a model or just a picture.
var onlyShows = pattern.MustCompile(`render|show|visuali|watch`)

// needsScreen reports whether a program opens a window that neither an argument nor an environment variable can
// prevent. env is its environment.
func (f *Finder) needsScreen(p *program, env string) bool {
	human := headless.Human(p.text) && !headless.DrawnByPygame(env)
	return (human || f.code.Of(p.text).Screen || f.showsByImport(p)) && !slices.ContainsFunc(p.flags, func(x modules.Option) bool {
		return noDisplay.MatchString(x.Key()) || strings.Contains(x.Key(), "render")
	})
}

var (
	steps   = pattern.MustCompile(`\benv\w*\.(?:step|reset|render)\(|\.action_space\.sample\(`)
	ofGym   = pattern.MustCompile(`(?m)^class \w+\((?:[\w., ]*\b)?(?:gym|gymnasium|pettingzoo)?\.?(?:\w*Env|Environment)\)`)
	noWords = pattern.MustCompile(`(?i)train|learn|optimi[sz]e|\bfit\(|backward|run|main\(|launch|start`)
)

// demonstrates reports whether a program only shows something: it loads a model or makes an environment, renders or
// plots it, and contains no training.
func (f *Finder) demonstrates(p *program, whole *traits.Facts) bool {
	if f.testsItself(p) {
		return true
	}
	return whole.Shows && (whole.Loads || f.mainBlock(p.file).steps) && !whole.Trains && !whole.Learns
}

// testsItself reports whether a file defines an environment, and its main block only tests it.
func (f *Finder) testsItself(p *program) bool { return len(p.path) == 0 && f.mainBlock(p.file).tries }

// forPeople reports whether a program is interactive: it reads keys, opens windows or shows an environment, and neither
// loads nor queries a model. main is what the file does when it is run.
func forPeople(k traits.Known, p *program, file string, main *mainBlock) bool {
	own, whole := k.Of(p.text), k.Of(file)
	if own.Loads || own.Decides || whole.Loads || whole.Decides {
		return false
	}
	return whole.Asks || whole.Shows || main.steps || ofOwnTests.MatchString(file) || !main.known && steps.MatchString(p.text)
}

// mainBlock is what a file does when it is run as a program.
type mainBlock struct {
	known bool
	steps bool // whether it steps an environment
	tries bool // whether it only tests an environment that the file defines
}

// mainBlock returns what a file does when it is run. Results are cached, because a file can have thousands of programs.
func (f *Finder) mainBlock(file string) *mainBlock {
	found := f.mainOf[file]
	if found == nil {
		text := f.Text[file]
		block := ""
		if at := modules.MainBlock.FindStringIndex(text); at != nil {
			block = text[at[1]:]
		} else if f.runsAtTop(file) {
			block = pytext.TopLevel(text)
		}
		found = &mainBlock{known: block != "", steps: steps.MatchString(block)}
		found.tries = found.known && ofGym.MatchString(text) && !noWords.MatchString(block)
		f.mainOf[file] = found
	}
	return found
}

// common returns the score of a program that does not depend on its purpose.
func (f *Finder) common(p *program, env string) int {
	score := -3 * strings.Count(p.file, "/")
	switch dir := path.Dir(p.file); {
	case asidePath.MatchString(p.file) && !f.triesModel(p.file) && !f.isBenchmark(p):
		score -= 90
	case ofParts.MatchString(dir):
		score -= 60
	case strings.Contains(dir+"/", "experiments/"), strings.Contains(dir+"/", "example"):
		score -= 10
	}
	if len(p.path) > 0 || strings.HasPrefix(p.from, "console script") {
		score += 15
	}
	if f.code.Of(p.text).Windows || f.code.Of(f.Text[p.file]).Windows {
		score -= 60
	}
	if f.code.Of(f.Text[p.file]).RL {
		score += 8
	}
	if traits.Mentions(p.file+" "+strings.Join(p.path, " "), env) {
		score += 25
	}
	score += 30 * boolean(traits.NamedFor(p.file, f.project))
	if slices.ContainsFunc(strings.Split(path.Dir(p.file), "/"), func(dir string) bool { return f.project != "" && plainName(dir) == plainName(f.project) }) {
		score += 5 // of several programs, it is the one that the project is named after
	}
	return score
}

// suggestion returns the weight of the pages that mention a program, the best arguments that they recommend and that
// are right, and their page.
func (f *Finder) suggestion(p *program, right func(args []string) bool) (int, []string, string) {
	most, other := advice{}, advice{}
	named := 0
	beside := func(a advice) int {
		named := slices.ContainsFunc(a.args, idInArgument.MatchString) // what it trains is known
		return a.weight + boolean(named) + 25*boolean(path.Dir(p.file) != "." && path.Dir(a.file) == path.Dir(p.file))
	}
	for _, a := range f.said.aboutProgram(p) {
		rest, ok := f.speaksOf(a, p)
		if !ok {
			continue
		}
		named = max(named, a.weight)
		if rest == nil || !right(rest) || p.flags.Positions(rest) < p.needed() {
			continue
		}
		to := &most
		if !f.available(rest) {
			to = &other
		}
		if to.weight == 0 || beside(a) > beside(*to) {
			*to = a
			to.args = rest
		}
	}
	if most.weight == 0 && other.weight >= ofReadme { // a source distribution omits its files
		most = other
	}
	return named, most.args, most.file
}

// needed returns the number of positional arguments that a program requires.
func (p *program) needed() int {
	n := 0
	for _, x := range p.flags {
		n += boolean(x.Position && x.Required)
	}
	return n
}

// speaksOf reports whether advice is about a program, and returns the arguments after the subcommand.
func (f *Finder) speaksOf(a advice, p *program) ([]string, bool) {
	script, console := strings.CutPrefix(p.from, "console script ")
	started := console && (a.target == script || len(p.start) == 2 && p.start[0] == "-m" && a.target == "-m "+p.start[1])
	if !started && !f.names(a, p.file) || len(p.path) > 0 && !started && p.from != p.file && !f.names(a, p.from) {
		return nil, false
	}
	if len(p.path) == 0 {
		return p.known(a.args), true
	}
	if len(a.words) < len(p.path) || !slices.Equal(a.words[:len(p.path)], p.path) {
		return nil, false
	}
	if a.args == nil {
		return nil, true
	}
	return a.args[len(p.path):], true
}

// available reports whether the settings files in args exist in the repository.
func (f *Finder) available(args []string) bool {
	for _, a := range args {
		_, value, ok := strings.Cut(a, "=")
		if !ok {
			value = a
		}
		if isSettings(value) && !f.exists(path.Clean(value)) {
			return false
		}
	}
	return true
}

// isSettings reports whether a path is that of a settings file.
func isSettings(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".toml", ".cfg"}, modules.Extension(file))
}

// minScore is the lowest score with which a program is proposed.
const minScore = 5

// training ranks the programs that may train, the best first.
func (f *Finder) training(all []program, env string) []program {
	var out []program
	for _, p := range all {
		p.score = traits.Weigh(p.names(), traits.Training) + f.common(&p, env)
		if f.code.Of(p.text).Trains {
			p.score += 15
		}
		if f.demonstrates(&p, f.code.Of(p.text)) {
			p.score -= 70
		}
		if !f.speaks[p.file] && !strings.Contains(p.file+strings.Join(p.path, " "), "train") && !f.code.Of(p.text).Learns && !f.code.Of(p.text).Descends && !f.importsTraining(&p) {
			p.score -= 40
		}
		if code := f.code.Of(p.text); code.Asks && !code.Trains && !code.Learns && !code.Descends { // for a person
			p.score -= 70
		}
		p.score += 6*boolean(f.hasCounterpart(p.file)) - 70*boolean(f.isOff(p.text))
		named, args, page := f.suggestion(&p, func(args []string) bool {
			return !slices.ContainsFunc(args, traits.Evaluating) && !evaluatesBy(&p, args)
		})
		p.args, p.page, p.said = args, page, f.firstNamed(&p)
		p.score += named + 40*boolean(slices.ContainsFunc(args, func(a string) bool { return idInArgument.MatchString(a) }))
		if len(args) > 0 && len(p.path) == 0 && args[0] == "train" { // a subcommand that the program reads itself
			p.score += 45
		}
		if p.score >= minScore {
			out = append(out, p)
		}
	}
	f.preferFirst(out)
	if out = ranked(out); len(out) == 0 || !f.learns(&out[0]) {
		if absent := f.absent(env); len(absent) > 0 {
			out = absent
		}
	}
	if len(out) == 0 {
		out = f.byCode(all)
	}
	return ranked(out)
}

// isBenchmark reports whether a program in a directory of benchmarks is one that the README recommends.
func (f *Finder) isBenchmark(p *program) bool {
	return ofBenchmarks.MatchString(p.file) && !asidePath.MatchString(ofBenchmarks.ReplaceAllString(p.file, "/")) && f.firstNamed(p) < len(f.said.all)
}

var ofBenchmarks = pattern.MustCompile(`(?:^|/)benchmarks?/`)

// importsTraining reports whether a program named like a main program imports a file that certainly trains.
func (f *Finder) importsTraining(p *program) bool {
	return len(p.path) == 0 && runName.MatchString(path.Base(p.file)) && slices.ContainsFunc(f.textsOf(p), surelyTrains.MatchString)
}

// learns reports whether a program is named for training, or its code trains.
func (f *Finder) learns(p *program) bool {
	return traits.Weigh(p.names(), traits.Training) > 0 || slices.ContainsFunc(f.reached(p), surelyTrains.MatchString)
}

var surelyTrains = pattern.MustCompile(`\.(?:learn|train|fit|backward)\(|(?:_t|T)rainer\(|Learner\(|\bvalue_and_grad\(|\bGradientTape\(|\.apply_gradients\(`)

// minAbsent is the score above which a missing program trains.
const minAbsent = 40

// absent returns the programs that pages recommend for training but that are missing, because source distributions omit
// them.
func (f *Finder) absent(env string) []program {
	var out []program
	for _, a := range f.said.all {
		if !f.isAbsent(a) {
			continue
		}
		p := program{file: a.target, start: []string{a.target}, args: a.args, from: a.file}
		trained := slices.ContainsFunc(a.args, func(x string) bool { return x == "--train" || x == "train" || x == "--mode=train" })
		p.score = traits.Weigh(p.names(), traits.Training) + 60*boolean(trained) + 25*boolean(traits.Mentions(strings.Join(a.args, " "), env)) + 20*boolean(slices.ContainsFunc(a.args, f.exists))
		if p.score > minAbsent && !slices.ContainsFunc(a.args, traits.Evaluating) {
			out = append(out, p)
		}
	}
	return out
}

// isAbsent reports whether a page recommends a program with arguments that is not in the repository. Its settings may
// be missing, too.
func (f *Finder) isAbsent(a advice) bool {
	return a.weight >= 25 && strings.HasSuffix(a.target, ".py") && !f.Has(a.target) && a.args != nil && (f.available(a.args) || a.weight >= ofReadme)
}

// Absent reports whether the best training is a program that the repository does not contain.
func (f *Finder) Absent() bool {
	return len(f.trained) > 0 && !f.Has(f.trained[0].file) && path.Ext(f.trained[0].file) == ".py"
}

// absentEvaluation returns the program that a page recommends for evaluating, in addition to an absent training.
func (f *Finder) absentEvaluation(training *program) []program {
	if f.Has(training.file) {
		return nil
	}
	for _, a := range f.said.all {
		p := program{file: a.target, start: []string{a.target}, args: a.args, from: a.file}
		p.score = traits.Weigh(p.names(), traits.Evaluation)
		if f.isAbsent(a) && p.score >= 55 && goesWith(&p, training) > 0 {
			return []program{p}
		}
	}
	return nil
}

var idInArgument = pattern.MustCompile(`^(?:[\w.-]+=)?((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)$`)

func ranked(out []program) []program {
	slices.SortStableFunc(out, func(a, b program) int {
		return cmp.Or(b.score-a.score, a.said-b.said, strings.Count(a.file, "/")-strings.Count(b.file, "/"), len(a.file)-len(b.file))
	})
	return out
}

// evaluation ranks the programs that may evaluate the model of a training program.
func (f *Finder) evaluation(all []program, training *program, env string) []program {
	var out []program
	for _, p := range all {
		called := traits.Weigh(p.names(), traits.Evaluation)
		p.score = called + f.common(&p, env)
		if training != nil && called <= 0 && p.choosesOtherwise(training) {
			continue
		}
		if called <= 0 && (f.code.Of(p.text).Trains || f.code.Of(p.text).Descends) { // another training
			p.score -= 40
		}
		if f.testsItself(&p) || forPeople(f.code, &p, f.Text[p.file], f.mainBlock(p.file)) {
			p.score -= 100
			f.refuse(&p, called, "is interactive, or only tests an environment")
		}
		if onlyShows.MatchString(p.name()) && !f.code.Of(f.Text[p.file]).Loads {
			p.score -= 100
		}
		if f.needsScreen(&p, env) {
			f.refuse(&p, called, "opens a window")
			continue
		}
		if headless.Endless(p.text) {
			f.refuse(&p, called, "runs until interrupted")
			continue
		}
		if training != nil && called > 0 {
			if name := f.otherModel(&p, training); name != "" {
				f.refuse(&p, called, "tests "+name+", not the model of the training command")
				continue
			}
		}
		if f.code.Of(p.text).Evaluates {
			p.score += 10
		}
		if f.code.Of(p.text).Loads {
			p.score += 10
		}
		if training != nil {
			if f.hasSibling(&p, training) {
				continue
			}
			p.score += goesWith(&p, training)
		}
		named, args, page := f.suggestion(&p, func(args []string) bool { return !slices.ContainsFunc(args, traits.Listing.MatchString) })
		p.args, p.page = args, page
		p.score += named / 2
		if p.score >= minScore+30 {
			out = append(out, p)
		}
	}
	if training != nil {
		if p, ok := f.byItself(training); ok {
			out = append(out, p)
		}
	}
	if training != nil && len(out) == 0 {
		out = f.absentEvaluation(training)
	}
	return ranked(out)
}

// choosesOtherwise reports whether a program is the training with another value of an argument.
func (p *program) choosesOtherwise(training *program) bool {
	return len(p.path) > 0 && strings.HasPrefix(p.path[0], "-") && slices.Equal(p.start, training.start)
}

// goesWith returns the score of a program for its similarity to the training program.
func goesWith(p, training *program) int {
	if slices.Equal(p.start, training.start) && slices.Equal(p.path, training.path) {
		return -1000
	}
	_, of, _ := strings.Cut(training.name(), "train")
	score := 15*boolean(path.Dir(p.file) == path.Dir(training.file)) + 15*boolean(of != "" && strings.HasSuffix(p.name(), of))
	if len(p.path) > 0 && slices.Equal(p.start, training.start) && len(p.path) == len(training.path) && slices.Equal(p.path[:len(p.path)-1], training.path[:len(p.path)-1]) {
		score += 25
	}
	return score
}

// byItself returns the evaluation that the training program performs with certain arguments.
func (f *Finder) byItself(training *program) (program, bool) {
	for _, a := range f.said.aboutProgram(training) {
		if rest, ok := f.speaksOf(a, training); ok && rest != nil && slices.ContainsFunc(rest, traits.Evaluating) && training.flags.Positions(rest) >= training.needed() && (f.available(rest) || a.weight >= ofReadme) {
			p := *training
			p.args, p.score = rest, 75+a.weight/2
			return p, true
		}
	}
	if x := chooser(training); x != nil {
		p := *training
		p.model, p.score = x.Name, 45
		return p, true
	}
	if x, evaluates := trainsBy(training); evaluates {
		p := *training
		p.args, p.score = slices.DeleteFunc(slices.Clone(training.args), func(a string) bool { return commandline.Has([]string{a}, *x) }), 45
		return p, true
	}
	meant := cmp.Or(traits.ModeIn(training.text), traits.ModeIn(f.Text[training.file]))
	for _, x := range training.flags {
		p := *training
		p.args = slices.DeleteFunc(slices.Clone(training.args), func(a string) bool { return a == "--train" })
		p.score = 45
		mode := ""
		if traits.ModeFlag.MatchString(x.Key()) && len(x.Choices) == 0 && !x.Boolean { // choices are subcommands already
			mode = meant
		}
		switch {
		case mode != "":
			p.args = commandline.Set(p.args, x, mode)
			return p, true
		case x.Boolean && traits.Evaluating(x.Name) && (x.Key() != "test" || f.code.Of(f.Text[p.file]).Loads || f.code.Of(p.text).Loads): // otherwise, it may be a smoke test
			p.args = append(append(p.args, x.On()), notTraining(training.flags)...)
			return p, true
		case x.Value == "False" && !x.Boolean && !x.Position && traits.Evaluating(x.Name):
			p.args = append(p.args, x.Words("True")...)
			return p, true
		}
	}
	return program{}, false
}

// notTraining returns the settings that disable a hydra program's training.
func notTraining(flags []modules.Option) []string {
	var out []string
	for _, x := range flags {
		if x.OfHydra() && x.Boolean && x.IsOn() && trainsToo.MatchString(x.Key()) {
			out = append(out, x.Name+"=false")
		}
	}
	return out
}

var trainsToo = pattern.MustCompile(`^(?:do_|run_|is_)?train(?:ing)?$`)

// Program is a program that may train or evaluate.
type Program struct {
	Name string // its file and subcommand
	File string
}

// maxPrograms bounds the programs of a proposal.
const maxPrograms = 10

// Rank returns the programs that may train, and those that may evaluate the model of the first of them, the best first.
// env is the environment that the repository mentions most, and project its name.
func (f *Finder) Rank(env, project string) (training, evaluation []Program) {
	f.env, f.project = env, project
	f.nest()
	f.advise()
	all := f.candidates()
	f.trained = f.training(all, env)
	var first *program
	if len(f.trained) > 0 {
		first = &f.trained[0]
	}
	f.evaluated = f.evaluation(all, first, env)
	return listed(f.trained), listed(f.evaluated)
}

func listed(all []program) []Program {
	out := make([]Program, min(len(all), maxPrograms))
	for i := range out {
		out[i] = Program{Name: strings.Join(append([]string{all[i].file}, all[i].path...), " "), File: all[i].file}
	}
	return out
}

// Mentions reports whether the best training, or the arguments that a page recommends for it, mention an environment.
func (f *Finder) Mentions(env string) bool {
	return len(f.trained) > 0 && traits.Mentions(f.trained[0].file+" "+strings.Join(f.trained[0].args, " "), env)
}

// Commands returns the commands of the best programs. A command without words means that there is no program.
func (f *Finder) Commands(k Known) (training, evaluation Command) {
	model, args := "", []string(nil)
	if len(f.trained) > 0 {
		training, model, args = f.trainingCommand(&f.trained[0], k)
		if others := f.equals(); others != "" {
			training.Notes = append(training.Notes, "other candidates: "+others)
		}
	}
	if len(f.evaluated) > 0 {
		return training, f.evaluationCommand(&f.evaluated[0], k, model, args)
	}
	if len(f.refused) == 0 {
		return training, Command{Notes: []string{"no program evaluates a saved model: add one that reads it from $WORK"}}
	}
	return training, Command{Notes: f.refused}
}
