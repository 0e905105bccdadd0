package pipeline

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Declared is a package that a repository says it needs.
type Declared struct {
	Name   string `json:"name"`   // with extras
	Wanted string `json:"wanted"` // of its versions, as the file says it; "" for any
	File   string `json:"file"`
	Pin    string `json:"pin"` // proposed version; "" for none
	Why    string `json:"why"` // where the version is from, for a person
}

// requirement returns the package as requirements name it.
func (d Declared) requirement() string { return d.Name + "==" + d.Pin }

var (
	packageSpec    = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[A-Za-z0-9._, -]+\])?\s*\(?((?:[<>~!=^]=?=?|==)?\s*[0-9*][^;#)]*|[<>~!=^][^;#)]*)?\)?\s*(?:[;#].*)?$`)
	eggName        = regexp.MustCompile(`#egg=([A-Za-z0-9._-]+(?:\[[A-Za-z0-9._,-]+\])?)`)
	condaLine      = regexp.MustCompile(`^\s*-\s+(?:[\w-]+::)?([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?)\s*([<>=~!]=?[^#=\s]+)?(=[\w.]+)?\s*(?:#.*)?$`)
	tomlKey        = regexp.MustCompile(`^"?([A-Za-z0-9][A-Za-z0-9._-]*)"?\s*=\s*(?:"([^"]*)"|\{(.*)\})`)
	tomlVersion    = regexp.MustCompile(`version\s*=\s*"([^"]*)"`)
	tomlOptional   = regexp.MustCompile(`\boptional\s*=\s*true`)
	tomlArrays     = regexp.MustCompile(`(?m)^("?[A-Za-z0-9][A-Za-z0-9._-]*"?)\s*=\s*\[\s*(?:#[^\n]*\n\s*)*(\{[^}\n]*\})`) // the first of several constraints
	tomlExtras     = regexp.MustCompile(`extras\s*=\s*\[([^\]]*)\]`)
	quotedItem     = regexp.MustCompile(`"([^"\n]+)"|'([^'\n]+)'`)
	needsList      = regexp.MustCompile(`(?s)\b(?:install_requires|dependencies)\s*=\s*\[(.*?)\n?\s*\](?:\s*$|\s*[,\n)])`)
	setupLines     = regexp.MustCompile(`(?m)^install_requires\s*=\s*\n((?:[ \t]+\S.*\n?)+)`)
	lockEntry      = regexp.MustCompile(`(?m)^\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"`)
	exactly        = regexp.MustCompile(`^(?:===?)?\s*([0-9][A-Za-z0-9.+!_-]*)$`)
	notForTraining = regexp.MustCompile(`dev|test|doc|lint|format`)
	oneBound       = regexp.MustCompile(`^(>=|<=|==|~=|!=|\^|>|<|~|=)?\s*v?([0-9][0-9A-Za-z.*]*)$`)
)

// tools are packages that no training needs.
var tools = regexp.MustCompile(`^(python|pip|setuptools|wheel|pytest.*|black|ruff|isort|mypy|flake8.*|pylint|sphinx.*|mkdocs.*|pre-commit|jupyter.*|ipykernel|ipython|ipywidgets|notebook|coverage|tox|twine|build|nb-black|hatchling|poetry.*)$`)

// knownVersions are those that the generated scripts were tested with, and of what trainings often need besides, the newest
// first. Each installs with Python 3.11, that of the default image.
var knownVersions = map[string][]string{
	"gymnasium": {"1.2.2", "0.29.1"}, "numpy": {"2.4.6", "1.26.4"}, "ray": {"2.60.0"}, "scipy": {"1.17.1"}, "stable-baselines3": {"2.9.2"}, "torch": {"2.15.0"},
	"tyro": {"1.0.17"},
	"gym":  {"0.26.2"}, "h5py": {"3.16.0"}, "mujoco": {"4.0.0"}, "optuna": {"5.0.0"}, "packaging": {"26.4"}, "pettingzoo": {"1.27.0"}, "pillow": {"13.0.0"},
	"pybullet": {"3.2.7"}, "cloudpickle": {"3.1.2"}, "pandas": {"3.1.1"}, "pyyaml": {"6.0.3"}, "rich": {"15.0.0"}, "tqdm": {"4.70.1"}, "hydra-core": {"1.3.8"},
	"matplotlib": {"3.11.2"}, "moviepy": {"2.2.1"}, "pygame": {"2.6.1"}, "sb3-contrib": {"2.9.2"}, "seaborn": {"0.13.2"}, "tensorboard": {"2.21.0"},
	"wandb": {"0.31.0"}, "absl-py": {"2.5.1"}, "ale-py": {"0.12.1"}, "click": {"8.5.1"}, "colorlog": {"6.12.0"}, "einops": {"0.8.2"}, "filelock": {"4.3.1"},
	"gymnasium-robotics": {"1.4.2"}, "huggingface-hub": {"2.4.0", "0.36.2"}, "imageio": {"2.38.1"}, "joblib": {"1.6.0"}, "numba": {"0.68.1"}, "omegaconf": {"2.4.0"},
	"opencv-python": {"4.11.0.86"}, "psutil": {"7.2.2"}, "pydantic": {"2.14.4"}, "pyglet": {"2.1.19"}, "requests": {"2.34.2"}, "scikit-learn": {"1.9.1"},
	"shimmy": {"2.0.1"}, "tensorboardx": {"2.6.5"}, "termcolor": {"3.3.0"}, "threadpoolctl": {"3.8.0"},
}

// knownVersion returns the newest known version of a package that a specification allows, "" without one.
func knownVersion(name, wanted string) string {
	for _, v := range knownVersions[name] {
		if allowed(wanted, v) {
			return v
		}
	}
	return ""
}

// isDependencies reports whether a file may declare packages or lock their versions.
func isDependencies(file string) bool {
	base := path.Base(file)
	switch base {
	case "pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "Pipfile.lock", "poetry.lock", "uv.lock", "pdm.lock", "environment.yml", "environment.yaml", "conda.yaml", "conda.yml", pipReport:
		return true
	}
	return strings.HasPrefix(base, "requirements") && (strings.HasSuffix(base, ".txt") || strings.HasSuffix(base, ".in")) || strings.HasSuffix(path.Dir(file), "requirements") && strings.HasSuffix(base, ".txt")
}

// declared takes what a file declares or locks.
func (p *Proposal) declared(file, text string) {
	switch base := path.Base(file); base {
	case "pyproject.toml":
		p.toml(file, text, map[string]bool{"tool.poetry.dependencies": true})
		p.list(file, section(text, "project"))
	case "Pipfile":
		p.toml(file, text, map[string]bool{"packages": true})
	case "setup.py":
		p.list(file, text)
	case "setup.cfg":
		if m := setupLines.FindStringSubmatch(text); m != nil {
			p.lines(file, m[1])
		}
	case "Pipfile.lock":
		p.pipfileLock(text)
	case pipReport:
		p.pipReport(text)
	case "environment.yml", "environment.yaml", "conda.yaml", "conda.yml":
		p.conda(file, text)
	case "poetry.lock", "uv.lock", "pdm.lock":
		for _, m := range lockEntry.FindAllStringSubmatch(text, -1) {
			p.locked[normalised(m[1])] = m[2]
		}
	default:
		if !notForTraining.MatchString(base) {
			p.lines(file, text)
		}
	}
}

// add adds a package, unless it is a tool, or declared already.
func (p *Proposal) add(file, spec string) {
	m := packageSpec.FindStringSubmatch(strings.TrimSpace(spec))
	if m == nil {
		return
	}
	name := m[1] + strings.ReplaceAll(m[2], " ", "")
	if tools.MatchString(normalised(m[1])) {
		return
	}
	d := Declared{Name: name, Wanted: strings.TrimSpace(m[3]), File: file}
	i := slices.IndexFunc(p.Packages, func(x Declared) bool { return packageName(x.Name) == packageName(name) })
	switch {
	case i < 0:
		p.Packages = append(p.Packages, d)
	case p.Packages[i].File == file && p.Packages[i].Name == m[1] && m[2] != "": // a second line for its extras
		p.Packages[i].Name, p.Packages[i].Wanted = name, cmp.Or(d.Wanted, p.Packages[i].Wanted)
	case exactly.FindStringSubmatch(p.Packages[i].Wanted) == nil && exactly.FindStringSubmatch(d.Wanted) != nil:
		p.Packages[i] = d // a file that pins says more
	}
}

// lines adds what the lines of a requirements file name.
func (p *Proposal) lines(file, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := eggName.FindStringSubmatch(line); m != nil {
			line = m[1]
		}
		line, _, _ = strings.Cut(strings.TrimSuffix(line, `\`), " --hash")
		if name, _, found := strings.Cut(line, " @ "); found {
			line = name
		}
		p.add(file, line)
	}
}

// list adds the strings of a list of dependencies.
func (p *Proposal) list(file, text string) {
	m := needsList.FindStringSubmatch(text)
	if m == nil {
		return
	}
	for line := range strings.Lines(m[1]) {
		line, _, _ = strings.Cut(line, " #")
		for _, item := range quotedItem.FindAllStringSubmatch(line, -1) {
			p.add(file, cmp.Or(item[1], item[2]))
		}
	}
}

// section returns the text of a table of TOML.
func section(text, name string) string {
	_, rest, found := strings.Cut("\n"+text, "\n["+name+"]")
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n[")
	return rest
}

// toml adds the keys of tables of dependencies.
func (p *Proposal) toml(file, text string, tables map[string]bool) {
	table := ""
	for line := range strings.Lines(tomlArrays.ReplaceAllString(text, "$1 = $2")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[]")
			continue
		}
		m := tomlKey.FindStringSubmatch(line)
		if !tables[table] || m == nil || tomlOptional.MatchString(m[3]) {
			continue
		}
		name, version := m[1], m[2]
		if v := tomlVersion.FindStringSubmatch(m[3]); v != nil {
			version = v[1]
		}
		if version != "" && version[0] >= '0' && version[0] <= '9' { // exactly this one
			version = "==" + version
		}
		if e := tomlExtras.FindStringSubmatch(m[3]); e != nil {
			name += "[" + strings.NewReplacer(`"`, "", `'`, "", " ", "").Replace(e[1]) + "]"
		}
		p.add(file, name+strings.TrimPrefix(version, "*"))
	}
}

func (p *Proposal) conda(file, text string) {
	for line := range strings.Lines(text) {
		if m := condaLine.FindStringSubmatch(line); m != nil {
			version := m[2]
			if strings.HasPrefix(version, "=") && !strings.HasPrefix(version, "==") {
				version = "=" + version
			}
			p.add(file, condaName(m[1])+version)
		}
	}
}

// condaName returns the name on PyPI of a package of conda.
func condaName(name string) string {
	switch name {
	case "pytorch":
		return "torch"
	case "ray-rllib":
		return "ray[rllib]"
	}
	return name
}

func (p *Proposal) pipfileLock(text string) {
	var lock struct {
		Default map[string]struct {
			Version string `json:"version"`
		} `json:"default"`
	}
	if json.Unmarshal([]byte(text), &lock) != nil {
		return
	}
	for name, x := range lock.Default {
		p.locked[normalised(name)] = strings.TrimPrefix(x.Version, "==")
	}
}

// pipReport is what pip writes of the versions that it would install.
const pipReport = "pip-report.json"

func (p *Proposal) pipReport(text string) {
	var report struct {
		Install []struct {
			Metadata struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"metadata"`
		} `json:"install"`
	}
	if json.Unmarshal([]byte(text), &report) != nil {
		return
	}
	for _, x := range report.Install {
		p.locked[normalised(x.Metadata.Name)] = x.Metadata.Version
	}
}

// pin chooses a version for each package: what is declared exactly, then what a lock says, then a tested version that is
// allowed, then the lowest one that is.
func (p *Proposal) pin() {
	for i := range p.Packages {
		d := &p.Packages[i]
		if d.Pin != "" { // of the generated scripts
			continue
		}
		name := packageName(d.Name)
		known, locked := knownVersion(name, d.Wanted), p.locked[name]
		m := exactly.FindStringSubmatch(d.Wanted)
		switch {
		case m != nil && !strings.Contains(d.Wanted, "*"):
			d.Pin, d.Why = m[1], d.File
		case locked != "":
			d.Pin, d.Why = locked, "the lock"
		case known != "":
			d.Pin, d.Why = known, cmp.Or(d.File+" wants "+d.Wanted, "")
			if d.Wanted == "" {
				d.Why = d.File + " wants any version"
			}
		default:
			if low := lowest(d.Wanted); low != "" {
				d.Pin, d.Why = low, "the lowest version that "+d.File+" allows"
			}
		}
		if !requirement.MatchString(d.requirement()) {
			d.Pin = ""
		}
	}
}

// need adds a package that generated scripts need and no file declares.
func (p *Proposal) need(name string) {
	if !slices.ContainsFunc(p.Packages, func(d Declared) bool { return packageName(d.Name) == packageName(name) }) {
		d := Declared{Name: name, Pin: p.locked[packageName(name)], Why: "the generated scripts need it"}
		d.Pin = cmp.Or(d.Pin, knownVersion(packageName(name), ""))
		p.Packages = append(p.Packages, d)
	}
}

// lowest returns the lowest version that a specification allows, "" if it names none.
func lowest(wanted string) string {
	for part := range strings.SplitSeq(wanted, ",") {
		if m := oneBound.FindStringSubmatch(strings.TrimSpace(part)); m != nil && slices.Contains([]string{">=", "~=", "^", "~", ""}, m[1]) {
			return strings.TrimSuffix(m[2], ".*")
		}
	}
	return ""
}

// allowed reports whether a version of numbers is within a specification. What it cannot read allows nothing.
func allowed(wanted, version string) bool {
	if wanted == "" {
		return true
	}
	for part := range strings.SplitSeq(wanted, ",") {
		m := oneBound.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil || !within(m[1], m[2], numbers(version)) {
			return false
		}
	}
	return true
}

// within reports whether a version keeps one bound.
func within(operator, bound string, version []int) bool {
	prefix, star := strings.CutSuffix(bound, ".*")
	b := numbers(prefix)
	if len(b) == 0 {
		return false
	}
	same := func(n int) bool { return len(version) >= n && len(b) >= n && slices.Equal(version[:n], b[:n]) }
	order := slices.Compare(version, b)
	switch operator {
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0 || same(len(b))
	case "<":
		return order < 0
	case "!=":
		return !same(len(b))
	case "~=":
		return order >= 0 && same(len(b)-1)
	case "^": // up to the first number that is not zero
		n := 1 + slices.IndexFunc(b, func(x int) bool { return x != 0 })
		return order >= 0 && same(max(1, n))
	case "~":
		return order >= 0 && same(min(2, len(b)))
	}
	return star && same(len(b))
}

// numbers returns the release numbers of a version.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		digits := strings.TrimRightFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}
