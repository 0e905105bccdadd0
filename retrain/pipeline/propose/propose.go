package propose

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"index/suffixarray"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/lookup"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/reading"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

var (
	namedEnvironment   = pattern.MustCompile(`["']((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)["']`)
	madeEnvironment    = pattern.MustCompile(`(?:\bmake|\bmake_vec|make_vec_env|make_atari_env|\.environment|\bPPO|\bDQN|\bSAC|\bA2C|\bTD3|\bDDPG)\((?:\s*["']\w+Policy["'],)?\s*(?:env(?:_id)?\s*=\s*)?["']([^"'\n]+-v[0-9]+)["']`)
	defaultEnvironment = pattern.MustCompile(`(?:env|\bgym)[_-]?(?:id|name)?["']?\s*(?:,[^\n]*default\s*=|:\s*str\s*=|=)\s*["']([^"'\n]+-v[0-9]+)["']`)
	yamlEnvironment    = pattern.MustCompile(`(?m)^\s*(?:-\s+)?["']?(?:env|env_id|env_name|environment|gym_id)["']?:\s*["']?((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)["']?\s*(?:#.*)?$`)
	yamlKey            = pattern.MustCompile(`(?m)^["']?((?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)["']?:`)
	registered         = pattern.MustCompile(`\bregister\(\s*(?:id\s*=\s*)?["']([^"'\n:]+-v[0-9]+)["']|["']([^"'\n:]+-v[0-9]+)["']\s*:\s*\{\s*["']entry_point["']`)
	classOfSB3         = pattern.MustCompile(`(?m)^\s*from stable_baselines3(?:\.\w+)? import \(?([\w, \n]+)`)
	calledClass        = pattern.MustCompile(`\b([A-Z0-9]+)\(`)
	calledSB3          = pattern.MustCompile(`\b(?:stable_baselines3|sb3)\.([A-Z0-9]+)\b`)
	configOfRLlib      = pattern.MustCompile(`\b(APPO|DQN|IMPALA|PPO|SAC)(?:Config)?\s*\(|["'](APPO|DQN|IMPALA|PPO|SAC)["']`)
	yamlRun            = pattern.MustCompile(`(?m)^\s*run:\s*["']?(APPO|DQN|IMPALA|PPO|SAC)["']?\s*$`)
	defaultAlgorithm   = pattern.MustCompile(`algo(?:rithm)?["']?\s*(?:,[^\n]*default\s*=|:\s*str\s*=|=|:)\s*["']?([A-Za-z0-9]+)["']?`)
	asideName          = pattern.MustCompile(`(^|/)(tests?|docs?|examples?|benchmarks?|debug|deprecated|archived?|legacy|obsolete|scratch|sandbox|playground|backups?)(/|$)|(^|/)(test_|conftest)[^/]*$`)
	settingsName       = pattern.MustCompile(`(^|/)(conf|config|configs|params|cfg)[^/]*(/|\.ya?ml$)`)
	otherName          = pattern.MustCompile(`(eval|enjoy|play|push|record|plot|render|bench)[^/]*$`)
	describedAs        = pattern.MustCompile(`(?m)^\s*description\s*=\s*"([^"\n]+)"`)
	namedAs            = pattern.MustCompile(`(?m)^\s*name\s*=\s*["']([^"'\n]+)["']`)
	setupNamedAs       = pattern.MustCompile(`\bsetup\(\s*(?:#[^\n]*\n\s*)*(?:[^()]*?,\s*)??name\s*=\s*["']([^"'\n]+)["']`)
	cfgNamedAs         = pattern.MustCompile(`(?m)^name\s*=[ \t]*([\w.-]+)[ \t]*$`)
	cfgDescribedAs     = pattern.MustCompile(`(?m)^description[ \t]*=[ \t]*([^\s#:][^\n:]*?)[ \t\r]*$`) // not file: README.md
	releaseName        = pattern.MustCompile(`[-_]v?[0-9]+(?:\.[0-9]+)+(?:[-.]?[a-z]+[0-9]*)?$`)
	partOfName         = pattern.MustCompile(`\.(?:replace|startswith|endswith|removeprefix|removesuffix|r?split|r?partition)\(\s*$`)
)

// Finding is a value that Repository found in a repository.
type Finding struct {
	Value string `json:"value"`
	File  string `json:"file"`

	clear int // how clearly it is stated: the highest weight
	times int // number of occurrences
}

// Proposal is what a repository reveals about its project. The best findings are first. It is large because each kind
// of finding is a field.
type Proposal struct {
	dependencies

	Project      string    `json:"project"`
	Description  string    `json:"description"`
	Environments []Finding `json:"environments"`
	Others       []Finding `json:"others"`  // environments that are also mentioned
	Classes      []Finding `json:"classes"` // classes of environments
	Library      string    `json:"library"`
	Unsuited     string    `json:"unsuited,omitempty"` // why the generated scripts cannot be used, for output
	Algorithms   []Finding `json:"algorithms"`
	Steps        []Finding `json:"steps"`
	Programs     []Finding `json:"programs"`    // programs that may train
	Evaluations  []Finding `json:"evaluations"` // programs that may evaluate

	Training   programs.Command `json:"training"`   // without words if there is no program
	Evaluation programs.Command `json:"evaluation"` // the same

	Seeing pytext.Seeing `json:"seeing"` // how the agent observes the environment

	Hyperparameters lookup.Hyperparameters `json:"hyperparameters"`

	Unread []string `json:"unread,omitempty"` // files that were not read, and why, for output

	named     string                        // name in the packaging
	inside    map[string]bool               // normalized names of packages in the repository
	rllib     []Finding                     // algorithms of RLlib
	chosen    []Finding                     // defaults of arguments and settings for an algorithm
	defaults  map[string]string             // environment that is the default of an argument, by file
	modules   map[string]string             // files that register an environment, by its id
	ids       map[string]bool               // strings that are used as environment ids
	reexports map[string]map[string]bool    // names that packages import, by their directory
	roots     map[string]bool               // directories of packages
	known     map[*[]Finding]map[string]int // indices of values in lists of findings
	own       map[string]bool               // files that the first program imports, and environments that they mention; nil if unknown
	numbers   map[string]bool               // numbers of steps that these files mention
	finder    *programs.Finder
}

// Repository reads a repository, and proposes a pipeline file. It extracts only facts: names of environments,
// algorithms and packages.
func Repository(name string, repository fs.FS) (*Proposal, error) {
	return propose(name, repository, reading.Usual)
}

func propose(name string, repository fs.FS, l reading.Limits) (*Proposal, error) {
	r := reading.New(l)
	p := &Proposal{Project: projectOf(releaseName.ReplaceAllString(name, "")), dependencies: dependencies{imported: map[string]int{}, kernels: map[string]string{}, locked: map[string]string{}, limits: map[string]string{}, merged: map[string]int{}, aside: map[string]string{}}, defaults: map[string]string{}, modules: map[string]string{}, ids: map[string]bool{}, reexports: map[string]map[string]bool{}, roots: map[string]bool{}, inside: map[string]bool{}, known: map[*[]Finding]map[string]int{}, finder: programs.New(repository, r.Late)}
	err := r.Walk(repository, p.take)
	p.Unread = r.Unread()
	p.choose()
	if p.finder.Stopped() {
		p.Unread = append(p.Unread, fmt.Sprintf("the commands of some programs because the time limit of %v was reached", r.Time))
	}
	return p, err
}

// aside reports whether a file is secondary, such as a test. What it mentions is proposed only if no other file
// mentions anything.
func aside(file string) bool {
	return asideName.MatchString(file)
}

// The weights of a finding, by how it is stated.
const (
	use       = 10  // it is constructed or called; 0 if it is only mentioned
	preferred = 20  // it is the default of an argument
	main      = 100 // the file is not secondary
)

// maxEnvironments bounds the environments of a proposal. Libraries mention hundreds, but a project trains in few.
const maxEnvironments = 5

// choose selects the most likely values: the clearest findings and the program named for training come first, with few
// environments, and versions for all packages.
func (p *Proposal) choose() {
	p.rankPrograms()
	p.finder.Led(p.calls.Take)
	p.prefer()
	for _, found := range [][]Finding{p.Environments, p.Classes, p.Algorithms, p.rllib, p.Steps} {
		slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Or(b.clear-a.clear, b.times-a.times) })
	}
	p.reach()
	p.environments()
	p.ofFirst()
	p.longest()
	switch {
	case len(p.Programs) > 0 && (p.ownWorld() || p.finder.GivesBuffer() || p.finder.ComputesAgent(aside)): // the generated scripts cannot make its environment or agent
		p.Library, p.chosen, p.Algorithms = keywords.Custom, append(p.chosen, p.Algorithms...), nil
	case len(p.Algorithms) > 0:
		p.Library = keywords.StableBaselines3
	case len(p.rllib) > 0:
		p.Library, p.Algorithms = keywords.RLlib, p.rllib
	default:
		p.Library = keywords.Custom
	}
	if len(p.Algorithms) > 0 && p.Library != keywords.Custom {
		p.Hyperparameters = p.finder.Hyperparameters(p.Algorithms[0].Value, p.Algorithms[0].File)
		p.Algorithms[0].File = cmp.Or(p.finder.Makes(p.Algorithms[0].Value), p.Algorithms[0].File)
	}
	if p.Unsuited = p.unsuited(); p.Unsuited != "" {
		p.Library, p.chosen, p.Algorithms = keywords.Custom, append(p.chosen, p.Algorithms...), nil
	}
	if p.Library == keywords.StableBaselines3 {
		p.Seeing = p.finder.Seeing(p.Algorithms[0].File, aside)
		p.games = p.Seeing.Atari
	}
	p.byOthers()
	p.stated = slices.DeleteFunc(p.stated, func(d Declared) bool { return p.named != "" && pins.Name(d.Name) == pins.Normalized(p.named) })
	if len(p.Unread) == 0 {
		p.leaveOut()
	}
	if p.Library == keywords.Custom && len(p.Programs) == 0 {
		p.notebook = p.finder.Notebook()
		p.withoutTraining()
	}
	p.builds = p.finder.Builds()
	p.registers = p.modules
	p.packages(p.Library, p.Environments, p.atOnce(), p.isOwn)
	p.commands()
}

// withoutTraining removes values of a training from the proposal for a repository without one, such as those of tests.
func (p *Proposal) withoutTraining() {
	if p.notebook == "" {
		p.Steps = nil
		p.Environments = slices.DeleteFunc(p.Environments, func(e Finding) bool { return aside(e.File) })
	}
}

// importsByName matches code of a program that may import any file of the repository, and composesName such code in a
// file that it imports.
var (
	importsByName = pattern.MustCompile(`\bimportlib\b|\b__import__\(|\bexec\(`)
	composesName  = pattern.MustCompile(`\b(?:import_module|__import__)\(\s*(?:f["']|["'][\w.]*["']\s*[+%.])|\bpkgutil\.(?:iter|walk)_|\binstantiate\(`)
)

// reach records what the code of the first program mentions, including all files that it imports. It records nothing if
// the program may import any file.
func (p *Proposal) reach() {
	p.own, p.numbers = map[string]bool{}, map[string]bool{}
	if p.finder.Absent() { // it is unknown what it imports
		p.own[""], p.own[p.Programs[0].File] = true, true
	}
	anyFile := p.finder.ReadsSettings() && !p.finder.Absent()
	p.finder.Led(func(file string, text []byte) {
		p.own[file] = true
		anyFile = anyFile || composesName.Match(text) || file == p.Programs[0].File && importsByName.Match(text)
		for _, x := range pytext.StepsOf(text) {
			p.numbers[x.Number] = true
		}
		for _, re := range []*pattern.Pattern{namedEnvironment, madeByName} {
			for _, m := range re.FindAllSubmatch(text, maxMatches) {
				p.own[string(m[1])] = true
			}
		}
	})
	if anyFile {
		p.own = nil
	}
}

// mayRead returns a function that reports whether the first program may read a file, or mentions a value that the file
// states. Programs read code only by importing it.
func (p *Proposal) mayRead() func(file, value string) bool {
	read := p.finder.Read()
	return func(file, value string) bool {
		unknown := len(p.own) == 0 || path.Ext(file) != ".py"
		return (unknown || p.own[file] || p.own[value] || p.numbers[value]) && hydra.MayRead(read, file)
	}
}

// ofFirst removes numbers of steps that the first program neither mentions nor reads, and those that only other programs
// train for.
func (p *Proposal) ofFirst() {
	may := p.mayRead()
	p.Steps = slices.DeleteFunc(p.Steps, func(s Finding) bool {
		other := slices.ContainsFunc(p.Programs[min(1, len(p.Programs)):], func(other Finding) bool { return other.File == s.File })
		return !p.numbers[s.Value] && !p.own[s.File] && other || !may(s.File, s.Value)
	})
}

// longest puts the largest of the equally clear numbers of steps in the first file first. The others are those of smoke
// tests.
func (p *Proposal) longest() {
	if len(p.Steps) == 0 {
		return
	}
	first := p.Steps[0]
	n := 0
	for n < len(p.Steps) && p.Steps[n].File == first.File && p.Steps[n].clear == first.clear && p.Steps[n].times == first.times {
		n++
	}
	slices.SortStableFunc(p.Steps[:n], func(a, b Finding) int {
		return cmp.Or(len(b.Value)-len(a.Value), strings.Compare(b.Value, a.Value)) // whole numbers
	})
}

// unsuited returns why the generated scripts of the library cannot be used, or "" if they can.
func (p *Proposal) unsuited() string {
	if p.Library == keywords.Custom {
		return ""
	}
	for _, d := range p.stated {
		if why := pins.TooOld(p.Library, p.dependencies.known(d), testedVersions[pins.Name(d.Name)]); why != "" && d.rank() < ofPage {
			return d.File + " requires " + d.Name + cmp.Or(d.Wanted, p.dependencies.known(d).Wanted) + ", but it must be " + why
		}
	}
	for _, name := range keywords.Packages[p.Library] {
		if why := pins.TooOld(p.Library, pins.Package{Name: name, Wanted: p.aside[name]}, testedVersions[name]); why != "" && p.index(name) < 0 {
			return "an extra requires " + name + p.aside[name] + ", but it must be " + why
		}
	}
	if library := keywords.Packages[p.Library][0]; len(p.Programs) == 0 && !p.states(library) {
		if _, optional := p.aside[library]; optional {
			return "only an extra requires " + library + ", and no program trains with it"
		}
	}
	a := p.Algorithms[0]
	seen := p.finder.Seeing(a.File, aside)
	if len(p.Environments) > 0 && (p.Library != keywords.StableBaselines3 || !seen.Atari) {
		if why := p.finder.Unmade(p.Environments[0].Value); why != "" {
			return why
		}
	}
	if why := p.finder.Beyond(p.Library == keywords.RLlib, a.Value, a.File, seen.Own, p.Hyperparameters); why != "" {
		return why
	}
	if len(p.Programs) == 0 && len(p.Environments) == 0 && p.finder.InPackage(a.File) {
		return "no program trains, and no environment has an id"
	}
	return ""
}

// ownWorld reports whether the training's environment has no id, or only its settings mention the id.
func (p *Proposal) ownWorld() bool {
	if len(p.Environments) == 0 {
		return true
	}
	if path.Ext(p.Environments[0].File) != ".py" && p.finder.NeedsSettings() {
		return true
	}
	file, registered := p.modules[p.Environments[0].Value[strings.LastIndex(p.Environments[0].Value, ":")+1:]]
	return p.finder.RegistersInGym(file) || !registered && p.finder.MakesOwnWorld()
}

// atOnce returns what the programs of the pipeline import when they start. The generated programs import only the
// module that registers the environment.
func (p *Proposal) atOnce() []programs.Import {
	if p.Library == keywords.Custom {
		return p.finder.Imports()
	}
	if len(p.Environments) > 0 {
		_, id, ok := strings.Cut(p.Environments[0].Value, ":")
		if ok {
			return p.finder.ImportsOf(p.modules[id])
		}
	}
	return nil
}

// prefer raises the weight of what the first program uses and of defaults of arguments: of algorithms in all files, and
// of the rest in the first program.
func (p *Proposal) prefer() {
	p.finder.Led(func(file string, text []byte) { p.algorithms(file, text, 2*main) })
	for _, c := range p.chosen {
		for _, found := range [][]Finding{p.Algorithms, p.rllib} {
			if i := slices.IndexFunc(found, func(f Finding) bool { return f.Value == c.Value }); i >= 0 {
				found[i].clear = max(found[i].clear, c.clear)
			}
		}
	}
	if len(p.Programs) == 0 {
		return
	}
	file := p.Programs[0].File
	for _, c := range p.finder.Read() {
		p.settings(c.File, pytext.Readable(c.Text), 2*main)
		p.steps(c.File, pytext.Readable(c.Text), 2*main)
	}
	p.byName()
	if id := p.finder.DefaultWorld(); id != "" {
		p.defaults[file], p.ids[id] = id, true
		p.found(&p.Environments, Finding{Value: id, File: file, clear: main + preferred})
	}
	for i, e := range p.Environments {
		if p.finder.Mentions(e.Value) {
			p.Environments[i].clear += main
		}
		if e.Value == p.defaults[file] {
			p.Environments[i].clear += 2 * main // even if the program is an example
			p.Environments[i].File = file
		}
	}
	for i, s := range p.Steps {
		if s.File == file {
			p.Steps[i].clear += main
		}
	}
}

// environments keeps the environments that are stated as clearly as the first: a default of an argument excludes those
// that are only made, which exclude those that are only mentioned.
func (p *Proposal) environments() {
	p.identify()
	may, unlike := p.mayRead(), p.unlike()
	var read, unread []Finding
	for _, e := range p.Environments {
		if may(e.File, e.Value[strings.LastIndex(e.Value, ":")+1:]) && (len(p.Algorithms) > 0 || !unlike(e.Value)) {
			read = append(read, e)
		} else {
			unread = append(unread, e)
		}
	}
	p.Environments = p.byClass(read)
	kept := 0
	for kept < len(p.Environments) && p.Environments[kept].clear == p.Environments[0].clear {
		kept++
	}
	if kept > maxEnvironments { // such a list contains possible environments, not those of the training
		kept = 1
	}
	p.Others = slices.DeleteFunc(append(slices.Clone(p.Environments[kept:]), unread...), func(f Finding) bool { return f.clear < main })
	p.Others = p.Others[:min(len(p.Others), 2*maxEnvironments)]
	p.Environments = p.Environments[:kept]
}

// maxNames bounds the bytes of the names that are compared with each id.
const maxNames = 300

// unlike returns a function that reports whether the first program makes an environment with another name than an id.
func (p *Proposal) unlike() func(id string) bool {
	text, names := p.finder.Named()
	named := strings.TrimSpace(strings.Join(names, " "))
	if named == "" || len(named) > maxNames {
		return func(string) bool { return false }
	}
	index := sync.OnceValue(func() *suffixarray.Index { return suffixarray.New([]byte(text)) }) // a file may contain thousands of ids
	return func(id string) bool {
		return !traits.Alike(named, id) && index().Lookup([]byte(id[strings.LastIndex(id, ":")+1:]), 1) == nil
	}
}

// projectOf converts the name of a directory to a valid name of a project.
func projectOf(name string) string {
	name = pattern.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	name = strings.TrimLeft(name, "-0123456789")
	return strings.TrimRight(cmp.Or(name[:min(len(name), 40)], "agent"), "-")
}

// take records what a file states.
func (p *Proposal) take(file string, text []byte) {
	if strings.HasPrefix(file, reading.WorkflowsOf+"/") {
		p.workflows = append(p.workflows, pins.PythonsOfWorkflow(file, string(text))...)
		return
	}
	var program []byte // without comments and docstrings
	switch path.Ext(file) {
	case ".py":
		program = pytext.Readable(pytext.Code(text))
	case ".ipynb":
		program = pytext.Readable(pytext.Code(pytext.NotebookCode(text)))
	}
	p.finder.Take(file, text, program)
	if path.Base(file) == "setup.py" {
		text = []byte(pins.Inlined(string(text)))
	}
	if pins.IsDeclaration(file) {
		p.declared(file, string(text))
	}
	base := path.Base(file)
	if strings.EqualFold(base, "README.md") {
		p.used(file, readmeCommand, pytext.Readable(text), main+use)
		return
	}
	p.name(file, text)
	weight := main
	if aside(file) {
		weight = 0
	}
	switch {
	case base == "setup.py":
	case program != nil:
		p.source(file, program, weight)
	case reading.IsYAML(file):
		p.settings(file, pytext.Readable(text), weight)
	}
}

// placeholder is the description that uv writes into a new project.
const placeholder = "Add your description here"

// unnamed matches names in project templates that the author did not change.
var unnamed = pattern.MustCompile(`^(?i)(?:my|your|example|project|package|template)?[-_ ]?(?:project|package|repo|template|app)?[-_ ]?(?:name|template)?$`)

// name records the name in the packaging of a project, which may differ from that of the directory.
func (p *Proposal) name(file string, text []byte) {
	var m [][]byte
	if inner := setupNamedAs.FindSubmatch(text); inner != nil && path.Base(file) == "setup.py" {
		p.inside[pins.Normalized(string(inner[1]))] = true
	}
	switch file {
	case "pyproject.toml":
		for _, table := range []string{"project", "tool.poetry"} {
			m = namedAs.FindSubmatch([]byte(pins.Section(string(text), table)))
			if m != nil {
				break
			}
		}
	case "setup.py":
		m = setupNamedAs.FindSubmatch(text)
	case "setup.cfg":
		metadata := []byte(pins.Section(string(text), "metadata"))
		m = cfgNamedAs.FindSubmatch(metadata)
		if d := cfgDescribedAs.FindSubmatch(metadata); d != nil && p.Description == "" && strict.Unprintable(string(d[1])) == "" {
			p.Description = string(d[1])
		}
	}
	if d := describedAs.FindSubmatch(text); d != nil && string(d[1]) != placeholder && slices.Contains([]string{"pyproject.toml", "setup.py"}, file) && strict.Unprintable(string(d[1])) == "" {
		p.Description = string(d[1])
	}
	if m != nil && p.named == "" && !unnamed.Match(m[1]) {
		p.named = string(m[1])
		p.Project = projectOf(p.named)
	}
}

// source records what a program states.
func (p *Proposal) source(file string, text []byte, weight int) {
	if weight > 0 {
		p.imports(text)
		p.calls.Take(file, text)
	}
	p.register(file, text)
	p.mentioned(file, namedEnvironment, text, weight)
	p.used(file, madeEnvironment, text, weight+use)
	p.used(file, madeByName, text, weight+use)
	p.used(file, defaultEnvironment, text, weight+preferred)
	for _, m := range classOfGym.FindAllSubmatch(text, maxMatches) {
		p.found(&p.Classes, Finding{Value: string(m[1]), File: file, clear: weight})
	}
	if !otherName.MatchString(file) {
		p.steps(file, text, weight)
	}
	for _, re := range []*pattern.Pattern{madeByName, namedEnvironment, defaultEnvironment} { // the first environment, if none is a default
		if m := re.FindSubmatch(text); m != nil {
			p.defaults[file] = string(m[1])
		}
	}
	p.algorithms(file, text, weight)
}

// algorithms records the algorithms that a program imports, uses, or has as defaults.
func (p *Proposal) algorithms(file string, text []byte, weight int) {
	sb3 := func(name string, clear int) {
		if slices.Contains(keywords.Algorithms[keywords.StableBaselines3], name) {
			p.found(&p.Algorithms, Finding{Value: name, File: file, clear: clear})
		}
	}
	called := map[string]bool{}
	for _, m := range calledClass.FindAllSubmatch(text, maxMatches) {
		called[string(m[1])] = true
	}
	for _, m := range classOfSB3.FindAllSubmatch(text, maxMatches) {
		for _, name := range strings.FieldsFunc(string(m[1]), func(r rune) bool { return strings.ContainsRune(", \n", r) }) {
			clear := weight
			if called[name] {
				clear += use
			}
			sb3(name, clear)
		}
	}
	for _, m := range calledSB3.FindAllSubmatch(text, maxMatches) {
		sb3(string(m[1]), weight+use)
	}
	if bytes.Contains(text, []byte("ray.rllib")) || bytes.Contains(text, []byte("ray import rllib")) {
		for _, m := range configOfRLlib.FindAllSubmatch(text, maxMatches) {
			p.found(&p.rllib, Finding{Value: cmp.Or(string(m[1]), string(m[2])), File: file, clear: weight + use})
		}
	}
	for _, m := range defaultAlgorithm.FindAllSubmatch(text, maxMatches) {
		p.found(&p.chosen, Finding{Value: strings.ToUpper(string(m[1])), File: file, clear: weight + preferred})
	}
}

// steps records numbers that may be the steps of a training.
func (p *Proposal) steps(file string, text []byte, weight int) {
	for _, x := range pytext.StepsOf(text) {
		clear := weight
		if x.Clearly {
			clear += 2 * main
		}
		p.found(&p.Steps, Finding{Value: x.Number, File: file, clear: clear})
	}
}

// settings records what a YAML file states.
func (p *Proposal) settings(file string, text []byte, weight int) {
	p.used(file, yamlEnvironment, text, weight+use)
	p.mentioned(file, yamlKey, text, weight)
	for _, id := range literals.EnvironmentsOf(file, text) {
		p.ids[id] = true
		p.found(&p.Environments, Finding{Value: id, File: file, clear: weight + use})
	}
	for _, m := range yamlRun.FindAllSubmatch(text, maxMatches) {
		p.found(&p.rllib, Finding{Value: string(m[1]), File: file, clear: weight + use})
	}
	if settingsName.MatchString(file) {
		p.steps(file, text, weight)
	}
}

// maxFindings bounds the findings of one kind.
const maxFindings = 10_000

// found adds a finding, or counts another occurrence. The file of a finding is the one that states it most clearly.
func (p *Proposal) found(to *[]Finding, f Finding) {
	if strings.ContainsAny(f.Value, "{}%") { // the program composes it
		return
	}
	known := p.known[to]
	if known == nil {
		known = map[string]int{}
		p.known[to] = known
	}
	i, ok := known[f.Value]
	switch {
	case !ok && len(*to) < maxFindings:
		known[f.Value], f.times = len(*to), 1
		*to = append(*to, f)
	case !ok:
	default:
		if f.clear > (*to)[i].clear {
			(*to)[i].clear, (*to)[i].File = f.clear, f.File
		}
		(*to)[i].times++
	}
}

//go:embed proposed.tmpl
var proposedText string

// proposed is the template of the proposed file. What was not found is left to the user, with a comment that says so.
var proposed = template.Must(template.New("file").Funcs(template.FuncMap{"yaml": quote.YAML, "command": asCommand, "comment": quote.Comment}).Parse(proposedText))

// StepsNumber returns the most likely number of steps as decimal digits, or "".
func (p *Proposal) StepsNumber() string {
	if len(p.Steps) == 0 {
		return ""
	}
	return p.Steps[0].Value
}

// Text returns the proposed file.
func (p *Proposal) Text() (string, error) {
	var b strings.Builder
	if err := proposed.Execute(&b, p); err != nil {
		return "", fmt.Errorf("write the proposed file: %w", err)
	}
	return b.String(), nil
}

// Found returns a summary of the proposal.
func (p *Proposal) Found() []string {
	packages := 0
	for _, d := range p.Packages {
		packages += min(1, len(d.Pin)) * (1 - min(1, len(d.Left)))
	}
	counted := func(n int, what string) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	out := []string{counted(len(p.Environments), "environment"), counted(packages, "package")}
	if len(p.Algorithms) > 0 {
		return append(out, "the algorithm "+p.Algorithms[0].Value)
	}
	missing := func(c programs.Command) int { return 1 - min(1, len(c.Words)) }
	return append(out,
		[]string{"a training command", "no training command"}[missing(p.Training)],
		[]string{"an evaluation command", "no evaluation command"}[missing(p.Evaluation)])
}
