package programs

import (
	"bytes"
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/headless"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// Placeholder stands in a command for what only a person knows.
const Placeholder = "CHANGE-ME"

// The names of files that are shared with the rest of a proposal.
var (
	guarded  = pattern.MustCompile(`(?m)^if[ \t(]*(?:__name__[ \t]*==[ \t]*["']__main__["']|["']__main__["'][ \t]*==[ \t]*__name__)`)
	ofParts  = pattern.MustCompile(`(^|/)(env|environment|wrapper|util|plot)s?(/|$)`)
	settings = pattern.MustCompile(`(^|/)(conf|config|configs|params|cfg)[^/]*(/|\.ya?ml$)`)
)

// Finder finds the programs of a repository that train and evaluate, by reading alone. It is large because each step of
// the search needs what all files say.
type Finder struct {
	modules.Files
	repository fs.FS
	scripts    map[string]string // console scripts, as MODULE:FUNCTION
	said       said
	yaml       []string                 // files
	speaks     map[string]bool          // of training, also in comments
	seen       map[string]pytext.Seeing // what settings say, by file

	composed map[string][]Setting // by program
	mainOf   map[string]*mainBlock

	late    func() bool // whether to stop reading
	stopped bool

	code  traits.Known
	exist map[string]bool // which files do

	trained, evaluated []program // ranked
	refused            []string  // why programs do not evaluate, for a person

	notebooks    strings.Builder // their code
	targets      map[string]bool // modules that settings name
	namedModules map[string]bool
	dropped      bool // whether some code was not kept

	copied  place  // where the training runs, if that is in a copy of the project
	env     string // the environment that the repository speaks of most
	project string

	used map[string]map[string]bool // arguments that programs use, by their files
	off  map[string]bool            // whether code is kept from training
}

// New returns a finder of the programs of a repository, which must take its files. It looks for no more of them once
// late returns true.
func New(repository fs.FS, late func() bool) *Finder {
	return &Finder{
		Files: modules.NewFiles(), repository: repository, late: late, scripts: map[string]string{}, said: said{by: map[string][]int{}}, speaks: map[string]bool{}, seen: map[string]pytext.Seeing{},
		composed: map[string][]Setting{}, mainOf: map[string]*mainBlock{}, code: traits.Known{}, exist: map[string]bool{},
		targets: map[string]bool{}, namedModules: map[string]bool{}, used: map[string]map[string]bool{}, off: map[string]bool{},
	}
}

// Stopped reports whether the finder did not look for all programs, as it was late.
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

// Take takes a file. Code is that of a Python file without comments.
func (f *Finder) Take(file string, text, code []byte) {
	f.console(file, string(text))
	if isYAML(file) && modules.Printable(file) {
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
	if guarded.Match(code) {
		f.adviceIn(file, string(text), 15, nil)
	}
}

func isYAML(file string) bool {
	return strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml")
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// program is a command that could train, or evaluate.
type program struct {
	file  string   // that has its code
	start []string // words of Python
	path  []string // of the sub-command
	text  string   // of its code
	flags []modules.Option
	args  []string // that a page names for it; nil for none
	page  string
	from  string // what says so, for a person
	score int
	model string // the name of the argument for the model, "" if its name has to say so
	said  int    // the place of the page that names it first, among all that are named
}

// name is what the program is called by.
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

// names are what the program is called by: each word of a sub-command has a meaning.
func (p program) names() []string {
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
	// loadsWeights and stepsAny are what a script does that evaluates a model; one that is named for its training steps too.
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
		for _, p := range f.expand(file, start) {
			if len(p.path) == 0 {
				p.path = nil
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
		if notOwn.MatchString(file) || !modules.Printable(file) || !guarded.MatchString(text) && !alone {
			continue
		}
		for _, p := range f.expand(file, f.Words(file)) {
			p.from = file
			add(p)
		}
	}
	return out
}

// runsAtTop reports whether a file trains or evaluates when it is imported, outside of functions and classes, as scripts
// without a main block do.
func (f *Finder) runsAtTop(file string) bool {
	top := pytext.TopLevel(f.Text[file])
	return doesIt.MatchString(top) || loadsWeights.MatchString(top) && (stepsAny.MatchString(top) || collects.MatchString(top)) || stepsAny.MatchString(top) && runName.MatchString(path.Base(file))
}

func (f *Finder) isLate() bool {
	f.stopped = f.stopped || f.late()
	return f.stopped
}

// expand returns a program, or its sub-commands if it has any.
func (f *Finder) expand(file string, start []string) []program {
	var out []program
	for _, c := range f.SubCommands(file) {
		p := program{file: c.File, start: start, path: c.Path, text: cmp.Or(c.Text, f.Text[c.File]), flags: c.Flags}
		if len(c.Path) == 0 && c.File != file { // it is a program elsewhere
			continue
		}
		out = append(out, p)
	}
	if !slices.ContainsFunc(out, func(p program) bool { return len(p.path) > 0 }) && len(out) != 1 {
		p := program{file: file, start: start, text: f.Text[file], flags: f.Flags(file)}
		if settings := f.hydraFlags(file); len(settings) > 0 {
			p.flags = settings
		}
		out = []program{p}
	}
	return out
}

var asidePath = pattern.MustCompile(`(^|/)(tests?|docs?|benchmarks?|ci|\.github|unit_?tests?|debug|deprecated|archived?|legacy|obsolete|scratch|sandbox|playground|backups?)(/|$)|(^|/)(test_|conftest)[^/]*$`)

// onlyShows is a program that may show anything: a model, or a picture.
var onlyShows = pattern.MustCompile(`render|show|visuali|watch`)

// needsScreen reports whether a program opens a window that no argument of it forbids, and no environment variable. Env is
// its environment.
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

// demonstrates reports whether a program only shows what is there: it loads a model or makes an environment, and
// renders or plots what happens then, and nothing of it speaks of training.
func (f *Finder) demonstrates(p *program, whole *traits.Facts) bool {
	if f.testsItself(p) {
		return true
	}
	return whole.Shows && (whole.Loads || f.mainBlock(p.file).steps) && !whole.Trains && !whole.Learns
}

// testsItself reports whether a file defines an environment, and its main block only tries it out.
func (f *Finder) testsItself(p *program) bool { return len(p.path) == 0 && f.mainBlock(p.file).tries }

// forPeople reports whether a program is for a person at a screen: it asks for keys or has windows, or it shows an
// environment, and neither loads nor asks a model. Main is what it does when it is run.
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
	steps bool // an environment
	tries bool // an environment that the file defines, and no more
}

// mainBlock returns what a file does when it is run. A file can have thousands of programs, so it is read once.
func (f *Finder) mainBlock(file string) *mainBlock {
	found := f.mainOf[file]
	if found == nil {
		text := f.Text[file]
		block := ""
		if at := guarded.FindStringIndex(text); at != nil {
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

// common is what counts for a program whatever it is for.
func (f *Finder) common(p *program, env string) int {
	score := -3 * strings.Count(p.file, "/")
	switch dir := path.Dir(p.file); {
	case asidePath.MatchString(p.file) && !f.triesModel(p.file):
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
		score += 5 // it is the one of several that the project is named after
	}
	return score
}

// suggestion returns how much pages count for a program, and the arguments that they name, by what is right for them.
func (f *Finder) suggestion(p *program, right func(args []string) bool) (int, []string, string) {
	most, other := advice{}, advice{}
	named := 0
	beside := func(a advice) int {
		return a.weight + 25*boolean(path.Dir(p.file) != "." && path.Dir(a.file) == path.Dir(p.file))
	}
	for _, a := range f.said.aboutProgram(p) {
		rest, ok := f.speaksOf(a, p)
		if !ok {
			continue
		}
		named = max(named, a.weight)
		if rest == nil || !right(rest) || positions(p, rest) < p.needed() {
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
	if most.weight == 0 && other.weight >= ofReadme { // a source distribution leaves out its files
		most = other
	}
	return named, most.args, most.file
}

// needed returns how many arguments a program does not run without, of those that are given by their places.
func (p *program) needed() int {
	n := 0
	for _, x := range p.flags {
		n += boolean(x.Position && x.Required)
	}
	return n
}

// speaksOf reports whether a piece of advice is about a program, and returns the arguments after those that choose it.
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

// available reports whether the files that arguments name are in the repository.
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

// isSettings reports whether a path is that of a file of settings.
func isSettings(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".toml", ".cfg"}, modules.Extension(file))
}

// minScore is what a program must count to be proposed.
const minScore = 5

// training ranks the programs that could train, the best first.
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
		if !f.speaks[p.file] && !strings.Contains(p.file+strings.Join(p.path, " "), "train") && !f.code.Of(p.text).Learns && !f.code.Of(p.text).Descends {
			p.score -= 40
		}
		p.score += 6*boolean(f.hasCounterpart(p.file)) - 70*boolean(f.isOff(p.text))
		named, args, page := f.suggestion(&p, func(args []string) bool {
			return !slices.ContainsFunc(args, traits.Evaluating) && !evaluatesBy(&p, args)
		})
		p.args, p.page, p.said = args, page, f.firstNamed(&p)
		p.score += named + 40*boolean(slices.ContainsFunc(args, func(a string) bool { return idInArgument.MatchString(a) }))
		if len(args) > 0 && len(p.path) == 0 && args[0] == "train" { // what is a sub-command elsewhere
			p.score += 45
		}
		if p.score >= minScore {
			out = append(out, p)
		}
	}
	f.preferFirst(out)
	if len(out) == 0 {
		out = f.absent(env)
	}
	if len(out) == 0 {
		out = f.byCode(all)
	}
	return ranked(out)
}

// absent returns the programs that pages name as the training, but that are not in the repository, as source
// distributions leave them out.
func (f *Finder) absent(env string) []program {
	var out []program
	for _, a := range f.said.all {
		if !f.isAbsent(a) {
			continue
		}
		p := program{file: a.target, start: []string{a.target}, args: a.args, from: a.file}
		trained := slices.ContainsFunc(a.args, func(x string) bool { return x == "--train" || x == "train" || x == "--mode=train" })
		p.score = traits.Weigh(p.names(), traits.Training) + 60*boolean(trained) + 25*boolean(traits.Mentions(strings.Join(a.args, " "), env)) + 20*boolean(slices.ContainsFunc(a.args, f.exists))
		if p.score > 60 && !slices.ContainsFunc(a.args, traits.Evaluating) {
			out = append(out, p)
		}
	}
	return out
}

// isAbsent reports whether a page names a program with its arguments, and the repository does not have it. Settings may
// be left out with it.
func (f *Finder) isAbsent(a advice) bool {
	return a.weight >= 25 && strings.HasSuffix(a.target, ".py") && !f.Has(a.target) && a.args != nil && (f.available(a.args) || a.weight >= ofReadme)
}

// absentEvaluation returns the program that a page names as the evaluation beside an absent training.
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

var idInArgument = pattern.MustCompile(`^(?:[\w-]+=)?((?:[\w.-]+/)?[A-Za-z][\w.]*-v[0-9]+)$`)

func ranked(out []program) []program {
	slices.SortStableFunc(out, func(a, b program) int {
		return cmp.Or(b.score-a.score, a.said-b.said, strings.Count(a.file, "/")-strings.Count(b.file, "/"), len(a.file)-len(b.file))
	})
	return out
}

// evaluation ranks the programs that could evaluate what a training program makes.
func (f *Finder) evaluation(all []program, training *program, env string) []program {
	var out []program
	for _, p := range all {
		called := traits.Weigh(p.names(), traits.Evaluation)
		p.score = called + f.common(&p, env)
		if called <= 0 && (f.code.Of(p.text).Trains || f.code.Of(p.text).Descends) { // another training
			p.score -= 40
		}
		if f.testsItself(&p) || forPeople(f.code, &p, f.Text[p.file], f.mainBlock(p.file)) {
			p.score -= 100
			f.refuse(&p, called, "is interactive, or only tests an environment")
		}
		if onlyShows.MatchString(p.name()) && !f.code.Of(f.Text[p.file]).Handles() {
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

// goesWith returns how much a program is beside that of the training.
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

// byItself returns the evaluation that the training's own program has by an argument.
func (f *Finder) byItself(training *program) (program, bool) {
	for _, a := range f.said.aboutProgram(training) {
		if rest, ok := f.speaksOf(a, training); ok && rest != nil && slices.ContainsFunc(rest, traits.Evaluating) && positions(training, rest) >= training.needed() && (f.available(rest) || a.weight >= ofReadme) {
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
		p.args, p.score = slices.DeleteFunc(slices.Clone(training.args), func(a string) bool { return has([]string{a}, *x) }), 45
		return p, true
	}
	meant := cmp.Or(traits.ModeIn(training.text), traits.ModeIn(f.Text[training.file]))
	for _, x := range training.flags {
		p := *training
		p.args = slices.DeleteFunc(slices.Clone(training.args), func(a string) bool { return a == "--train" })
		p.score = 45
		mode := ""
		if traits.ModeFlag.MatchString(x.Key()) && len(x.Choices) == 0 && !x.Boolean { // choices are sub-commands already
			mode = meant
		}
		switch {
		case mode != "":
			p.args = setFlag(p.args, x, mode)
			return p, true
		case x.Boolean && traits.Evaluating(x.Name) && (x.Key() != "test" || f.code.Of(f.Text[p.file]).Loads || f.code.Of(p.text).Loads): // else it may be a smoke test
			p.args = append(append(p.args, x.On()), notTraining(training.flags)...)
			return p, true
		case x.Value == "False" && !x.Boolean && !x.Position && traits.Evaluating(x.Name):
			p.args = append(p.args, x.Words("True")...)
			return p, true
		}
	}
	return program{}, false
}

// notTraining returns the settings that keep a program of hydra from training, which others turn on.
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

// Program is one that could train, or evaluate.
type Program struct {
	Name string // its file and the words of its sub-command
	File string
}

// maxPrograms bounds the programs of a proposal.
const maxPrograms = 10

// Rank returns the programs that could train, and those that could evaluate what the first of them trains, the best
// first. Env is the environment that the repository speaks of most, and project its name.
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

// Mentions reports whether the best training, or the arguments that a page names for it, speak of an environment.
func (f *Finder) Mentions(env string) bool {
	return len(f.trained) > 0 && traits.Mentions(f.trained[0].file+" "+strings.Join(f.trained[0].args, " "), env)
}

// Commands returns the commands of the best programs, without words if there is none.
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
