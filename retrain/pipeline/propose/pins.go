package propose

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// dependencies are what a repository states about its Python version and packages. It is large because each step of the
// choice of versions needs the contents of all files.
type dependencies struct {
	Base     string     `json:"base,omitempty"` // image with another Python than the default
	BaseWhy  string     `json:"-"`
	Packages []Declared `json:"packages"`

	stated     []Declared        // declarations, before markers are evaluated
	merged     map[string]int    // index in Packages, by normalized name
	python     string            // Python version of the image
	pythons    []pythonWanted    // wanted Python versions
	classified []string          // Python versions in classifiers
	page       []string          // Python versions that pages mention
	pageOf     string            // the first of these pages
	workflows  []string          // Python versions that workflows set up
	kernels    map[string]string // Python versions with which notebooks were last run
	notebook   string            // the notebook that is run as the training, or ""
	imported   map[string]int    // number of files that import a module
	locked     map[string]string // versions in lock files by normalized name
	limits     map[string]string // constraints by normalized name
	aside      map[string]string // wanted versions of packages for other purposes, by normalized name
	calls      pins.Interfaces   // interfaces that programs use
	games      bool              // whether Atari games are preprocessed
	registers  map[string]string // files that register an environment, by its id
	builds     bool              // whether setup.py compiles modules
}

// pythonWanted is a Python version that a file requires.
type pythonWanted struct{ wanted, file string }

var (
	importedModule = pattern.MustCompile(`(?m)^(?:import|from)[ \t]+([A-Za-z_]\w*(?:\.rllib)?)`)
	importedInside = pattern.MustCompile(`(?m)^\s*(?:import|from)\s+(torch|tensorflow|jax)\b`)
	shortVersion   = pattern.MustCompile(`^==\s*v?(3\.[0-9]+)(?:\.[0-9]+)?$`)
)

// frameworks are the modules of deep-learning frameworks. Libraries that support several leave them to extras.
var frameworks = []string{"jax", "tensorflow", "torch"}

// wantPython records the Python version that a file at the root of the repository requires.
func (p *dependencies) wantPython(file, wanted string) {
	if wanted = strings.TrimSpace(wanted); strings.Trim(wanted, "<>=~! ") == "" || strings.Contains(file, "/") {
		return
	}
	if m := shortVersion.FindStringSubmatch(wanted); m != nil {
		wanted = "==" + m[1] + ".*"
	}
	p.pythons = append(p.pythons, pythonWanted{wanted, file})
}

func (p *dependencies) pythonOfSetup(file, text string) {
	if m := setupPython.FindStringSubmatch(text); m != nil {
		p.wantPython(file, m[1])
	}
	for _, m := range classified.FindAllStringSubmatch(text, -1) {
		p.classified = append(p.classified, m[1])
	}
}

// imports records the modules that a program imports.
func (p *dependencies) imports(text []byte) {
	seen := map[string]bool{}
	for _, re := range []*pattern.Pattern{importedModule, importedInside} {
		for _, m := range re.FindAllSubmatch(text, -1) {
			if module := string(m[1]); !seen[module] {
				seen[module] = true
				p.imported[module]++
			}
		}
	}
}

// packages selects the declared packages: those in files at the root of the repository, else those in packaging
// metadata, else all. It adds what the generated scripts of a library need, and what the programs import from outside
// of the repository.
func (p *dependencies) packages(library string, environments []Finding, atOnce []programs.Import, own func(module string) bool) {
	least := ofPage
	for _, d := range p.stated {
		least = min(least, d.rank())
	}
	pages := slices.DeleteFunc(slices.Clone(p.stated), func(d Declared) bool { return d.rank() < ofPage || own(d.Name) })
	p.stated = slices.DeleteFunc(p.stated, func(d Declared) bool { return d.rank() > least })
	if least < ofPage {
		p.stated = append(p.stated, p.installed(pages)...)
	}
	p.bound()
	p.oneTensorFlow()
	p.choosePython()
	for _, d := range p.stated {
		if p.games && pins.Name(d.Name) == "stable-baselines3" { // its extra would install an OpenCV build that requires display libraries
			d.Name, _, _ = strings.Cut(d.Name, "[")
		}
		p.merge(d)
	}
	for _, name := range keywords.Packages[library] {
		if name == "ray" {
			name = "ray[rllib]"
		}
		p.need(name, "required by the generated scripts")
	}
	if library != keywords.Custom {
		p.need("gymnasium", "required by the generated scripts")
		p.need("scipy", "required by the generated scripts")
	}
	if p.games {
		p.need("ale-py", "required by Atari games")
		p.need("opencv-python-headless", "required by the preprocessing of Atari games")
	}
	if library == keywords.Custom {
		p.framework()
	}
	p.importedPackages(least == ofPage, func(module string) bool {
		generated := library != keywords.Custom && module == "gym" && !slices.ContainsFunc(atOnce, func(x programs.Import) bool { return x.Module == "gym" })
		return generated || own(module) // the generated scripts make environments with Gymnasium
	})
	p.undeclared(atOnce, own)
	if p.notebook != "" {
		p.need("nbconvert", "runs "+p.notebook)
		p.need("ipykernel", "runs "+p.notebook)
	}
	if p.calls.Tensorboard != "" && !slices.ContainsFunc(p.Packages, func(d Declared) bool { return pins.HasTensorboard(d.Name) }) {
		p.need("tensorboard", "required by torch.utils.tensorboard, which "+p.calls.Tensorboard+" imports")
	}
	p.withoutSWIG()
	old := p.atariPy(environments)
	p.companions(environments)
	p.forCalls(library)
	p.outdated(library)
	if old {
		p.withGames()
	}
	p.missing()
	p.fitExtras()
	p.pin(library)
	headless(p.Packages)
	p.compiled()
}

// forCalls adds packages that libraries need for the functions that the programs call.
func (p *dependencies) forCalls(library string) {
	if p.calls.Video != "" && library == keywords.Custom && slices.ContainsFunc(p.Packages, func(d Declared) bool { return d.Name == "gymnasium" }) {
		p.need("moviepy", p.calls.Video+" records videos, for which Gymnasium requires it")
	}
	if p.calls.Movies != "" && slices.ContainsFunc(p.Packages, func(d Declared) bool { return d.Name == "imageio" }) {
		p.need("imageio-ffmpeg", p.calls.Movies+" writes MP4 files, for which imageio requires it")
	}
	if p.calls.Drawn != "" && library == keywords.Custom {
		p.need("pydot", p.calls.Drawn+" plots a model, for which Keras requires it")
		const v = "1.4.2" // supports all Python versions
		if i := p.index("pydot"); i >= 0 && pins.Allowed(p.Packages[i].Wanted, v) {
			p.limits["pydot"] = cmp.Or(p.limits["pydot"], "=="+v)
		}
	}
	if i := slices.IndexFunc(p.Packages, func(d Declared) bool { return pins.Name(d.Name) == "stable-baselines3" }); i >= 0 && p.calls.Progress != "" && library == keywords.Custom && !strings.Contains(p.Packages[i].Name, "extra") {
		p.need("tqdm", p.calls.Progress+" shows a progress bar, for which Stable-Baselines3 requires it")
		p.need("rich", p.calls.Progress+" shows a progress bar, for which Stable-Baselines3 requires it")
	}
}

// missing adds packages of which the chosen ones would otherwise install incompatible versions.
func (p *dependencies) missing() {
	var packages []pins.Package
	for _, d := range p.Packages {
		if d.Left == "" {
			packages = append(packages, p.known(d))
		}
	}
	for _, m := range pins.MissingFrom(p.python, packages) {
		p.need(m.Name, "newer versions are incompatible with this version of "+m.By)
	}
}

// atariPy reports whether the environments are those of atari-py, and adds it: nothing mentions ale-py, and an old gym
// is allowed.
func (p *dependencies) atariPy(environments []Finding) bool {
	i := p.index("gym")
	if i < 0 || p.index("ale-py", "gymnasium", "autorom") >= 0 || p.imported["ale_py"] > 0 || !pins.RunsAtariPy(p.python) {
		return false
	}
	games := slices.ContainsFunc(environments, func(e Finding) bool { return traits.OfAtari(e.Value) && !strings.HasPrefix(e.Value, "ALE/") })
	v := cmp.Or(pins.Exact(p.known(p.Packages[i]).Wanted), pins.Exact(pins.WithGames["gym"]))
	if !games && p.index("atari-py") < 0 || !pins.Allowed(p.Packages[i].Wanted, v) || !pins.Allowed("<0.20", v) {
		return false
	}
	p.need("atari-py", "required by gym before 0.20 for Atari games; later versions of atari-py contain none")
	return true
}

// withGames limits atari-py and gym to the last versions with the games, unless their versions are fixed.
func (p *dependencies) withGames() {
	for i, d := range p.Packages {
		name := pins.Name(d.Name)
		if v := pins.WithGames[name]; v != "" && pins.Exact(d.Wanted) == "" && p.locked[name] == "" && pins.Allowed(d.Wanted, pins.Exact(v)) {
			p.limits[name] = v
			if name == "gym" {
				p.Packages[i].Why = "the last version with the environments of atari-py"
			}
		}
	}
}

// notes records what the user must do for a package, and omits packages whose PyPI version is not the one that programs
// use.
func (p *dependencies) notes() {
	for i, d := range p.Packages {
		if pins.Name(d.Name) == "atari-py" && d.Left == "" && pins.Exact(d.Wanted) != "" && pins.Allowed(">=0.2.7", d.Pin) {
			p.Packages[i].Why = "this version contains no games; 0.2.6 is the last one that does"
		}
		p.Packages[i].Why = cmp.Or(pins.Note(pins.Name(d.Name)), p.Packages[i].Why)
		if why := pins.Elsewhere(pins.Name(d.Name)); why != "" && d.Left == "" && pins.Exact(d.Wanted) == "" {
			p.Packages[i].Left = why
		}
	}
}

// roms mentions the package with the games if a version of ale-py contains none. Only the user can accept their
// license.
func (p *dependencies) roms() {
	const name = "autorom[accept-rom-license]"
	old := slices.ContainsFunc(p.Packages, func(d Declared) bool {
		extra := strings.HasPrefix(d.Name, "gym[") && strings.Contains(d.Name, "atari") && pins.Allowed(">=0.20", d.Pin)
		return d.Pin != "" && d.Left == "" && (extra || pins.Name(d.Name) == "ale-py" && pins.Allowed("<0.9", d.Pin))
	})
	if old && !slices.ContainsFunc(p.Packages, func(d Declared) bool {
		return strings.HasPrefix(pins.Name(d.Name), "autorom") || strings.Contains(d.Name, "accept-rom-license")
	}) {
		p.Packages = append(p.Packages, Declared{Name: name, File: "no file", Left: "this version of ale-py contains no games: add this package if you accept the license of the games"})
	}
}

// systems lists the system packages that the programs need.
func (p *dependencies) systems() {
	for _, name := range slices.Sorted(maps.Keys(p.calls.Systems())) {
		p.Packages = append(p.Packages, Declared{Name: name, File: p.calls.Systems()[name], Left: "a Debian package required by " + p.calls.Systems()[name] + ": install it between the markers in pipeline/Dockerfile"})
	}
}

// compiled selects an image with a compiler if a package or an entry of the lock file needs one. It also records what
// only the user can add.
func (p *dependencies) compiled() {
	all := maps.Clone(p.locked)
	for _, d := range p.Packages {
		if d.Pin != "" && d.Left == "" {
			all[pins.Name(d.Name)] = d.Pin
		}
	}
	p.notes()
	p.roms()
	p.systems()
	for _, what := range []string{pins.Compiled(p.python, all), map[bool]string{true: "modules in setup.py"}[p.builds]} {
		if what != "" {
			p.Base = pins.Compiling(p.python)
			p.BaseWhy = strings.TrimPrefix(p.BaseWhy+"; "+what+" must be compiled", "; ")
		}
	}
}

// oneTensorFlow replaces the package tensorflow-gpu, which ended with TensorFlow 2.11. tensorflow contains the same files.
func (p *dependencies) oneTensorFlow() {
	states := slices.ContainsFunc(p.stated, func(d Declared) bool { return pins.Name(d.Name) == "tensorflow" })
	var out []Declared
	for _, d := range p.stated {
		switch {
		case pins.Name(d.Name) != "tensorflow-gpu":
		case states:
			p.Packages = append(p.Packages, Declared{Name: d.Name, File: d.File, Left: "tensorflow contains the same files"})
			continue
		case pins.Exact(d.Wanted) == "" && d.Pin == "" && p.locked["tensorflow-gpu"] == "":
			d.Name, d.Why = "tensorflow", "replaces tensorflow-gpu, which ended with TensorFlow 2.11"
		}
		out = append(out, d)
	}
	p.stated = out
}

// headless replaces OpenCV builds that require display libraries, which the image lacks.
func headless(packages []Declared) {
	for i := range packages {
		d := &packages[i]
		name := pins.Name(d.Name)
		switch {
		case !slices.Contains([]string{"opencv-python", "opencv-contrib-python"}, name) || d.Pin == "":
		case slices.ContainsFunc(packages, func(x Declared) bool { return strings.HasSuffix(x.Name, "-headless") }):
			d.Left = "replaced by its headless build"
		default:
			d.Name, d.Why = name+"-headless", name+" requires display libraries, which the image does not contain"
		}
	}
}

// importedPackages adds the packages of common modules that the programs import and no file declares.
func (p *dependencies) importedPackages(all bool, own func(module string) bool) {
	for _, l := range pins.Modules(all) {
		if p.imported[l.Module] > 0 && !own(l.Module) {
			p.need(l.Package, "imported by the programs")
		}
	}
}

// isOwn reports whether a module belongs to the repository.
func (p *Proposal) isOwn(module string) bool {
	module, _, _ = strings.Cut(module, "[") // a requirement with extras
	return p.roots[module] || p.roots["src/"+module] || pins.Normalized(module) == pins.Normalized(p.named) || p.inside[pins.Normalized(module)]
}

// choosePython chooses the Python version based on the declarations and on the files of the packages.
func (p *dependencies) choosePython() {
	wanted := p.wantedPythons()
	var packages []pins.Package
	for _, d := range p.stated {
		if d.marker == "" && pins.OnlyFor(pins.Name(d.Name)) == "" {
			packages = append(packages, p.known(d))
		}
	}
	stated := len(packages)
	for _, name := range slices.Sorted(maps.Keys(p.imported)) { // no file states a version
		if v, _ := p.calls.Last(name); p.imported[name] > 0 && v != "" && !slices.ContainsFunc(packages, func(x pins.Package) bool { return x.Name == name }) {
			packages = append(packages, pins.Package{Name: name, Wanted: "==" + v})
		}
	}
	packages = append(packages, p.oldGames()...)
	named, namedBy := p.namedPythons()
	python, because := pins.Python(wanted, packages, named)
	if p.calls.TF1 != "" {
		old, of := pins.Python(wanted, p.beforeTF2(packages[:stated]), named) // Python 3.7 has only old versions of the others
		if old == "3.7" {                                                     // the last version with TensorFlow 1
			python, because = old, of
		} else {
			delete(p.limits, "tensorflow")
		}
	}
	p.python = python
	for _, w := range p.pythons {
		if !pins.Suits(w.wanted, python) {
			p.BaseWhy = w.file + " requires Python " + w.wanted + ", for which no image is known"
		}
	}
	if python == pins.Default {
		return
	}
	p.Base, p.BaseWhy = pins.Base(python), namedBy+" Python "+python
	if because == "ale-py" {
		p.BaseWhy = "the games of gym before 0.26 require ale-py before 0.8"
	}
	if v, file := p.calls.Last(because); v != "" {
		p.BaseWhy = file + " uses functions that later versions of " + because + " removed"
	}
	for _, d := range p.stated {
		if pins.Normalized(pins.Name(d.Name)) == because {
			p.BaseWhy = d.File + " requires " + because + d.Wanted
		}
	}
	if p.calls.TF1 != "" && p.limits["tensorflow"] == tf1 {
		p.BaseWhy = p.calls.TF1 + " was written for TensorFlow 1"
	}
	for _, w := range p.pythons {
		switch {
		case !pins.Suits(w.wanted, python):
			p.BaseWhy = w.file + " requires Python " + w.wanted + ", for which no image is known; this is the closest one"
		case !pins.Suits(w.wanted, pins.Default):
			p.BaseWhy = w.file + " requires Python " + w.wanted
		}
	}
}

// wantedPythons returns the Python versions that files require, including those that the code was written for, unless
// a declaration excludes these.
func (p *dependencies) wantedPythons() []string {
	var wanted []string
	for _, w := range p.pythons {
		wanted = append(wanted, w.wanted)
	}
	if limit, file := p.calls.PythonBelow(); limit != "" && !slices.ContainsFunc(wanted, func(w string) bool { return !pins.Suits(w, limit) }) {
		wanted = append(wanted, "<="+limit+".99")
		p.pythons = append(p.pythons, pythonWanted{"<=" + limit, file})
	}
	return wanted
}

// oldGames returns the package that Gym requires for its Atari games, if the programs need a Gym before 0.26.
func (p *dependencies) oldGames() []pins.Package {
	old, _ := p.calls.Last("gym")
	if old == "" || !slices.ContainsFunc(p.stated, func(d Declared) bool {
		return pins.OfOldGames(d.Name) && pins.Exact(p.known(d).Wanted) == "" && pins.Allowed(d.Wanted, old)
	}) {
		return nil
	}
	return []pins.Package{{Name: "ale-py", Wanted: ">=0.7.5,<0.8"}}
}

// namedPythons returns the Python versions that the repository mentions without requiring them, and what mentions them.
func (p *dependencies) namedPythons() (versions []string, by string) {
	switch kernel := p.kernels[p.notebook]; {
	case len(p.classified) > 0:
		return p.classified, "the classifiers list"
	case len(p.page) > 0:
		return p.page, p.pageOf + " mentions"
	case kernel != "":
		return []string{kernel}, p.notebook + " was run with"
	}
	return p.workflows, "a GitHub workflow uses"
}

// tf1 is the last version of TensorFlow 1.
const tf1 = "==1.15.5"

// beforeTF2 limits TensorFlow to version 1 where declarations allow it, and adds it if they do not include it.
func (p *dependencies) beforeTF2(packages []pins.Package) []pins.Package {
	i := slices.IndexFunc(packages, func(x pins.Package) bool { return strings.HasPrefix(x.Name, "tensorflow") })
	switch {
	case i < 0 && p.imported["tensorflow"] > 0:
		p.limits["tensorflow"] = tf1
		return append(slices.Clone(packages), pins.Package{Name: "tensorflow", Wanted: tf1})
	case i >= 0 && packages[i].Name == "tensorflow" && pins.Exact(packages[i].Wanted) == "" && pins.Allowed(packages[i].Wanted, tf1[2:]):
		p.limits["tensorflow"] = tf1
		packages = slices.Clone(packages)
		packages[i].Wanted = tf1
	}
	return packages
}

// known returns a package with what is known about its version. A lock file or constraint is more specific than a
// declaration.
func (p *dependencies) known(d Declared) pins.Package {
	name := pins.Name(d.Name)
	out := pins.Package{Name: name, Wanted: d.Wanted}
	if v := cmp.Or(d.Pin, pins.Exact(d.Wanted), p.locked[name]); v != "" {
		v, _, _ = strings.Cut(v, "+") // a build from another index
		out.Wanted = "==" + v
	} else if limit := p.limits[name]; limit != "" {
		out.Wanted = strings.Trim(d.Wanted+","+limit, ",")
		if v := pins.Exact(limit); v != "" {
			out.Wanted = "==" + v
		}
	}
	return out
}

// installed returns packages that pages and notebooks install and no file declares, if programs import them or
// environments need them. Their versions are used only if no file states one.
func (p *dependencies) installed(pages []Declared) []Declared {
	imports, open := map[string]bool{}, map[string]bool{}
	for module := range p.imported {
		imports[pins.Distribution(module)] = true
	}
	for _, d := range p.stated {
		name := pins.Name(d.Name)
		_, before := open[name]
		open[name] = d.Wanted == "" && p.locked[name] == "" && (open[name] || !before)
	}
	var out []Declared
	for _, d := range pages {
		name := pins.Name(d.Name)
		free, stated := open[name]
		if free && pins.Exact(d.Wanted) != "" || !stated && (imports[name] || pins.ForEnvironments.MatchString(name)) {
			d.Why = d.File + " installs it"
			out = append(out, d)
		}
	}
	return out
}

// withoutSWIG replaces Box2D packages that need SWIG to be built by those that have files.
func (p *dependencies) withoutSWIG() {
	const why = "the image does not contain SWIG, which is required to build box2d-py"
	needed := false
	for i := range p.Packages {
		d := &p.Packages[i]
		if pins.Name(d.Name) == "box2d-py" && pins.Known(p.python, "box2d") {
			d.Left, needed = "replaced by box2d: "+why, true
		}
		if name, other := pins.WithoutOther(d.Name); other {
			d.Name = name
			p.need("opencv-python-headless", "the Gymnasium extra \"other\" installs an OpenCV build that requires display libraries")
			p.need("moviepy", "the Gymnasium extra \"other\" includes it")
			d = &p.Packages[i] // need may have reallocated Packages
		}
		name, alone := pins.WithoutSWIG(d.Name)
		d.Name, needed = name, needed || alone
	}
	if needed {
		p.need("box2d", why)
		p.need("pygame", "required by the Box2D environments")
	}
}

// mujocoPy adds the packages and limits that mujoco-py needs, if it is among the packages.
func (p *dependencies) mujocoPy() {
	i := p.index("mujoco-py")
	if i < 0 {
		return
	}
	p.Packages[i].Why = "requires MuJoCo 2.1: between the markers in pipeline/Dockerfile, unpack it to a directory that all users can read, and set MUJOCO_PY_MUJOCO_PATH and LD_LIBRARY_PATH"
	p.need("cython", "newer versions are incompatible with mujoco-py")
	for _, name := range []string{"mujoco-py", "cython", "gymnasium"} {
		if i := p.index(name); i >= 0 && pins.Exact(p.known(p.Packages[i]).Wanted) == "" && pins.Allowed(p.Packages[i].Wanted, pins.Exact(pins.WithMuJoCoPy(name))) {
			p.limits[name] = pins.WithMuJoCoPy(name)
		}
	}
}

// merge adds a declared package, unless it is for another Python version or system. A package that was added before is
// merged with it.
func (p *dependencies) merge(d Declared) {
	if !pins.Applies(d.marker, p.python) {
		return
	}
	name := pins.Name(d.Name)
	if system := pins.OnlyFor(name); system != "" {
		d.Left = "only for " + system + ", but the image is based on Linux"
	} else if why := pins.Gone(pins.Package{Name: name, Wanted: d.Wanted}, func(module string) bool { return p.imported[module] > 0 }); why != "" {
		d.Left = why
	}
	i, known := p.merged[name]
	switch {
	case !known:
		p.merged[name] = len(p.Packages)
		p.Packages = append(p.Packages, d)
	case p.Packages[i].File == d.File && strings.Contains(d.Name, "["): // a second line for its extras
		p.Packages[i].Name, p.Packages[i].Wanted = pins.WithExtras(p.Packages[i].Name, d.Name), cmp.Or(d.Wanted, p.Packages[i].Wanted)
	case pins.Exact(p.Packages[i].Wanted) == "" && pins.Exact(d.Wanted) != "":
		p.Packages[i] = d // an exact version is more specific
	}
}

// packaging are the files whose bounds apply when the project is installed.
var packaging = []string{"pyproject.toml", "setup.py", "setup.cfg"}

// bound removes pins that the project's own packaging forbids, because it could not be installed with them.
func (p *dependencies) bound() {
	bounds := map[string]Declared{}
	for _, d := range p.stated {
		if slices.Contains(packaging, d.File) && d.Wanted != "" && d.marker == "" {
			bounds[pins.Name(d.Name)] = d
		}
	}
	p.stated = slices.DeleteFunc(p.stated, func(d Declared) bool {
		v, b := pins.Exact(d.Wanted), bounds[pins.Name(d.Name)]
		return v != "" && b.Wanted != "" && !slices.Contains(packaging, d.File) && !pins.Allowed(b.Wanted, v)
	})
}

// leaveOut removes packages that only requirements.txt lists, next to packaging files and without a version, and that
// no program uses.
func (p *Proposal) leaveOut() {
	packaged := map[string]bool{}
	for _, d := range p.stated {
		if slices.Contains(packaging, d.File) {
			packaged[pins.Name(d.Name)] = true
		}
	}
	p.stated = slices.DeleteFunc(p.stated, func(d Declared) bool {
		name := pins.Name(d.Name)
		open := d.File == "requirements.txt" && pins.Exact(d.Wanted) == "" && !strings.Contains(d.Name, "[")
		return open && len(packaged) > 0 && !packaged[name] && pins.Unused(name, p.finder.Names)
	})
}

// companions adds the packages that the environments need in addition to their library.
func (p *dependencies) companions(environments []Finding) {
	for _, e := range environments {
		for _, c := range p.calls.Companions(e.Value, p.registers[e.Value[strings.LastIndex(e.Value, ":")+1:]] != "") {
			if !slices.ContainsFunc(p.Packages, func(d Declared) bool { return c.ComesWith(d.Name) }) {
				p.need(c.Package, "required by the environment "+e.Value)
			}
		}
	}
	if len(environments) > 0 && pins.BeforeGymnasium1(environments[0].Value) {
		p.beforeGymnasium1()
	}
	p.mujocoPy()
	for _, d := range slices.Clone(p.Packages) {
		if of := p.calls.OfZoo(d.Name); pins.Name(d.Name) == "pettingzoo" && d.Left == "" {
			for _, name := range slices.Sorted(maps.Keys(of)) {
				p.need(name, of[name]+" imports PettingZoo environments that require it")
			}
		}
	}
	for _, d := range p.Packages {
		if below := pins.Below(pins.Name(d.Name)); below != "" && d.Left == "" {
			p.need(below, "required by "+d.Name)
		}
	}
	if i := slices.IndexFunc(p.Packages, func(d Declared) bool { return pins.Name(d.Name) == "stable-baselines3" }); i >= 0 && p.index("gym") >= 0 && pins.Allowed(p.known(p.Packages[i]).Wanted, "2.0.0") {
		p.need("shimmy", "required by Stable-Baselines3 for gym environments")
	}
}

// beforeGymnasium1 limits Gymnasium, and Stable-Baselines3 accordingly, to versions with environments that Gymnasium
// 1.0 removed, where declarations allow it.
func (p *dependencies) beforeGymnasium1() {
	for _, x := range [][3]string{{"gymnasium", "<1.0", "0.29.1"}, {"stable-baselines3", "<2.4", "2.3.2"}} {
		i := p.index(x[0])
		if i < 0 || pins.Exact(p.known(p.Packages[i]).Wanted) != "" || !pins.Allowed(p.known(p.Packages[i]).Wanted, x[2]) {
			return
		}
		p.limits[x[0]] = strings.TrimPrefix(p.limits[x[0]]+","+x[1], ",")
	}
}

// framework adds the deep-learning framework that the programs import most, if none is declared, because libraries that
// support several frameworks leave them to extras.
func (p *dependencies) framework() {
	most := ""
	for _, name := range frameworks {
		if slices.ContainsFunc(p.Packages, func(d Declared) bool { return pins.Name(d.Name) == name || pins.Name(d.Name) == name+"-gpu" }) {
			return
		}
		if p.imported[name] > p.imported[most] {
			most = name
		}
	}
	if most != "" {
		p.need(most, "imported by the programs")
	}
}

// states reports whether a file declares a package.
func (p *dependencies) states(name string) bool {
	return slices.ContainsFunc(p.stated, func(d Declared) bool { return pins.Name(d.Name) == name })
}

// index returns the index of the first package with one of the names that is not omitted, or -1.
func (p *dependencies) index(names ...string) int {
	return slices.IndexFunc(p.Packages, func(d Declared) bool { return d.Left == "" && slices.Contains(names, pins.Name(d.Name)) })
}

// need adds a package unless it is there already, in the version that an extra requires, if any.
func (p *dependencies) need(name, why string) {
	if !slices.ContainsFunc(p.Packages, func(d Declared) bool { return pins.Name(d.Name) == pins.Name(name) }) {
		p.Packages = append(p.Packages, Declared{Name: name, Wanted: p.aside[pins.Name(name)], Why: why, File: "no file"})
	}
}

// pin chooses a version for each package. In order of precedence, it is the declared exact version, the version in a
// lock file or constraint, one of a set that installs together, or the lowest allowed version.
func (p *dependencies) pin(library string) {
	packages := make([]pins.Package, len(p.Packages))
	var exact []string
	for i, d := range p.Packages {
		packages[i] = p.known(d)
		exact = append(exact, d.Name+packages[i].Wanted)
	}
	for i := range packages {
		if v := testedVersions[packages[i].Name]; library != keywords.Custom && p.python == pins.Default && pins.Exact(packages[i].Wanted) == "" && pins.Allowed(packages[i].Wanted, v) && v != "" &&
			pins.Conflict(packages[i].Name+"=="+v, exact) == "" {
			packages[i].Wanted = "==" + v
		}
		if v := pins.Newest(p.python, packages[i]); v != "" && !pins.Known(p.python, packages[i].Name) && pins.Exact(packages[i].Wanted) == "" {
			packages[i].Wanted = "==" + v
		}
	}
	p.extras(packages, pins.Choose(p.python, packages))
	chosen := pins.Choose(p.python, packages)
	for i := range p.Packages {
		d := &p.Packages[i]
		name, wanted := packages[i].Name, packages[i].Wanted
		c, why := chosen[name], d.Why
		switch v := pins.Exact(wanted); {
		case v != "" && v == pins.Exact(d.Wanted):
			d.Pin, d.Why = v, cmp.Or(why, d.File)
		case v != "" && strings.HasPrefix(pins.Exact(d.Wanted), v+"+"):
			d.Pin, d.Why = v, d.File+" requires "+pins.Exact(d.Wanted)+", which is not on PyPI"
		case v != "" && v == p.locked[name]:
			d.Pin, d.Why = v, "from the lock file"
		case v != "" && v == pins.Exact(p.limits[name]):
			d.Pin, d.Why = v, cmp.Or(why, "from a constraint")
		case v != "":
			d.Pin, d.Why = v, cmp.Or(why, d.wants())
		case c.Version != "":
			d.Pin, d.Why = c.Version, cmp.Or(why, d.wants())
		default:
			if low := pins.LowestWithFiles(p.python, packages[i]); low != "" {
				d.Pin, d.Why = low, cmp.Or(why, "the lowest version that "+d.File+" allows")
			}
		}
		if !pins.Requirement.MatchString(d.requirement()) {
			d.Pin = ""
		}
	}
}

// wants returns what a file states about the version, for output.
func (d Declared) wants() string {
	return d.File + " requires " + cmp.Or(d.Wanted, "any version")
}

const maxExtras = 20

// fitExtras limits packages with extras to versions that go with exact versions of others, unless their version is
// fixed.
func (p *dependencies) fitExtras() {
	exact := func(name string) string {
		i := slices.IndexFunc(p.Packages, func(d Declared) bool { return pins.Name(d.Name) == name })
		if i < 0 {
			return ""
		}
		return pins.Exact(p.known(p.Packages[i]).Wanted)
	}
	for _, d := range p.Packages {
		name := pins.Name(d.Name)
		_, list, _ := strings.Cut(strings.TrimSuffix(d.Name, "]"), "[")
		for _, extra := range strings.SplitN(list, ",", maxExtras) {
			if of := pins.ForExact(name, extra, exact); of != "" && pins.Exact(p.known(d).Wanted) == "" {
				p.limits[name] = strings.TrimPrefix(p.limits[name]+","+of, ",")
			}
		}
	}
}

// extras fixes packages with open versions that extras of others require in an exact version.
func (p *dependencies) extras(packages []pins.Package, chosen map[string]pins.Choice) {
	for i, d := range p.Packages {
		_, list, _ := strings.Cut(strings.TrimSuffix(d.Name, "]"), "[")
		version := cmp.Or(pins.Exact(packages[i].Wanted), chosen[packages[i].Name].Version)
		for _, extra := range strings.SplitN(list, ",", maxExtras) {
			for _, n := range pins.OfExtra(packages[i].Name, extra, version) {
				j := slices.IndexFunc(packages, func(x pins.Package) bool { return x.Name == n.Name })
				if j >= 0 && pins.Exact(p.known(p.Packages[j]).Wanted) == "" && pins.Allowed(p.Packages[j].Wanted, pins.Exact(n.Wanted)) {
					packages[j].Wanted = n.Wanted
					p.Packages[j].Why = "required by " + d.Name
				}
			}
		}
	}
}
