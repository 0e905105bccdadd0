package propose

import (
	"cmp"
	"maps"
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Declared is a package that a repository declares.
type Declared struct {
	Name   string `json:"name"`   // with extras
	Wanted string `json:"wanted"` // wanted versions as in the file; "" for any
	File   string `json:"file"`
	Pin    string `json:"pin"`            // proposed version; "" for none
	Why    string `json:"why"`            // source of the version, for output
	Left   string `json:"left,omitempty"` // why the package is omitted, "" if it is not

	marker string // PEP 508 marker: when it is needed
}

// requirement returns the package with its version in the syntax of requirements.
func (d Declared) requirement() string { return d.Name + "==" + d.Pin }

var (
	packageSpec      = pattern.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[A-Za-z0-9._, -]+\])?\s*\(?((?:[<>~!=^]=?=?|==)?\s*[0-9*][^;#)]*|[<>~!=^][^;#)]*)?\)?\s*(?:[;#].*)?$`)
	eggName          = pattern.MustCompile(`#egg=([A-Za-z0-9._-]+(?:\[[A-Za-z0-9._,-]+\])?)`)
	fromGit          = pattern.MustCompile(`^git\+[^\s;#]*/([A-Za-z0-9._-]+?)(?:\.git)?(?:@[^\s;#/]*)?(?:$|[\s;#])`)
	tomlKey          = pattern.MustCompile(`^"?([A-Za-z0-9][A-Za-z0-9._-]*)"?\s*=\s*(?:"([^"]*)"|\{(.*)\})`)
	tomlVersion      = pattern.MustCompile(`version\s*=\s*"([^"]*)"`)
	tomlOptional     = pattern.MustCompile(`\boptional\s*=\s*true`)
	uvLimits         = pattern.MustCompile(`(?ms)^(?:constraint|override)-dependencies\s*=\s*\[(.*?)\n?\]\s*$`)
	needsPython      = pattern.MustCompile(`(?m)^\s*(?:requires-python|python_version|python_full_version)\s*=\s*["']([^"'\n]*)["']`)
	setupPython      = pattern.MustCompile(`\bpython_requires\s*=\s*["']?([^"'\n]*)`)
	classified       = pattern.MustCompile(`Programming Language :: Python :: (3\.[0-9]+)\b`)
	tomlDependencies = pattern.MustCompile(`^(tool\.poetry(\.group\.[\w-]+)?\.dependencies|packages)$`)
	tomlExtras       = pattern.MustCompile(`extras\s*=\s*\[([^\]]*)\]`)
	quotedItem       = pattern.MustCompile(`"([^"\n]+)"|'([^'\n]+)'`)
	needsList        = pattern.MustCompile(`(?s)\b(?:install_requires|INSTALL_REQUIRES|dependencies|requirements|REQUIRED_PACKAGES)\s*=\s*\[(.*?)\n?\s*\](?:\s*$|\s*[,\n)#])`)
	setupExtras      = pattern.MustCompile(`(?s)\bextras_require\s*=\s*\{(.*?)\}`)
	setupLines       = pattern.MustCompile(`(?m)^install_requires\s*=\s*\n((?:[ \t]+\S.*\n?)+)`)
	lockEntry        = pattern.MustCompile(`(?m)^\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"`)
	notForTraining   = pattern.MustCompile(`dev|test|doc|lint|format`)
)

// testedVersions are the versions with which the generated scripts were tested, with Python 3.11 of the default image.
var testedVersions = map[string]string{
	"gymnasium": "1.2.2", "numpy": "2.4.6", "ray": "2.60.0", "scipy": "1.17.1", "stable-baselines3": "2.9.2", "torch": "2.15.0", "tyro": "1.0.17",
}

// declared records what a file declares or locks.
func (p *dependencies) declared(file, text string) {
	switch base := path.Base(file); base {
	case "requires.txt", "PKG-INFO", "METADATA":
		p.metadata(file, text)
	case "pyproject.toml":
		p.toml(file, text)
		p.list(file, pins.Section(text, "project"))
		for _, m := range needsPython.FindAllStringSubmatch(pins.Section(text, "project"), -1) {
			p.wantPython(file, m[1])
		}
		p.limit(pins.Section(text, "tool.uv"))
		for _, item := range quotedItem.FindAllStringSubmatch(pins.Section(text, "project.optional-dependencies"), maxStated) {
			p.setAside(cmp.Or(item[1], item[2]))
		}
	case "Pipfile":
		p.toml(file, text)
		for _, m := range needsPython.FindAllStringSubmatch(pins.Section(text, "requires"), -1) {
			p.wantPython(file, "=="+m[1])
		}
	case ".python-version":
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		p.wantPython(file, "=="+first)
	case "setup.py":
		p.setup(file, text)
	case "setup.cfg":
		p.setupCfg(file, text)
	case "Pipfile.lock":
		maps.Copy(p.locked, pins.OfPipfileLock(text))
	case pins.Report:
		maps.Copy(p.locked, pins.OfReport(text))
	case "poetry.lock", "uv.lock", "pdm.lock":
		for _, m := range lockEntry.FindAllStringSubmatch(text, -1) {
			p.locked[pins.Normalized(m[1])] = m[2]
		}
	default:
		switch {
		case pins.IsConda(base):
			p.conda(file, text)
		case path.Ext(file) == ".ipynb" && aside(file):
		case path.Ext(file) == ".ipynb":
			p.kernels[file] = pytext.NotebookPython([]byte(text))
			p.lines(file, strings.Join(pins.Installed(pytext.NotebookCommands([]byte(text))), "\n"))
		case pins.IsPage(file):
			p.lines(file, strings.Join(append(pins.Installed(text), pins.Listed(text)...), "\n"))
			pythons := pins.PythonsOf(text)
			if later := pins.LaterPythonOf(text); later != "" {
				pythons = append(pythons, later)
			}
			for _, python := range pythons {
				p.page, p.pageOf = append(p.page, python), cmp.Or(p.pageOf, file)
			}
		case !notForTraining.MatchString(base):
			p.lines(file, text)
		}
	}
}

// setup records the packages in a setup.py, and those of its extras in case the training needs them.
func (p *dependencies) setup(file, text string) {
	p.list(file, text)
	p.pythonOfSetup(file, text)
	for _, m := range setupExtras.FindAllStringSubmatch(text, 1) {
		for _, item := range quotedItem.FindAllStringSubmatch(m[1], maxStated) {
			p.setAside(cmp.Or(item[1], item[2]))
		}
	}
}

// setupCfg is setup for a setup.cfg.
func (p *dependencies) setupCfg(file, text string) {
	p.pythonOfSetup(file, text)
	if m := setupLines.FindStringSubmatch(text); m != nil {
		p.lines(file, m[1])
	}
	for line := range strings.Lines(pins.Section(text, "options.extras_require")) {
		_, list, ok := strings.Cut(line, " = ") // a list of one package, on the line of the extra
		if !ok {
			list = line
		}
		list, _, _ = strings.Cut(list, " #")
		p.setAside(list)
	}
}

// Limits for declarations.
const (
	maxStated = 1000
	maxSpec   = 1000 // bytes
)

// add records a package, unless it is a tool.
func (p *dependencies) add(file, spec, marker string) {
	if len(spec) > maxSpec || len(p.stated) >= maxStated {
		return
	}
	spec, own, _ := strings.Cut(spec, ";")
	own, _, _ = strings.Cut(own, " #")
	m := packageSpec.FindStringSubmatch(strings.TrimSpace(spec))
	if m == nil {
		return
	}
	d := Declared{Name: pins.OnPyPI(m[1] + strings.ReplaceAll(m[2], " ", "")), Wanted: strings.TrimSpace(m[3]), File: file, marker: cmp.Or(strings.TrimSpace(own), marker)}
	name := pins.Normalized(m[1])
	switch {
	case name == "python":
		p.wantPython(file, d.Wanted)
	case pins.IsTool(name), name == "setuptools" && pins.Exact(d.Wanted) == "":
	case file == "constraints.txt":
		p.limits[name] = d.Wanted
	default:
		p.stated = append(p.stated, d)
	}
}

// lines records the packages in the lines of a requirements file.
func (p *dependencies) lines(file, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := eggName.FindStringSubmatch(line); m != nil {
			line = m[1]
		} else if m := fromGit.FindStringSubmatch(line); m != nil {
			line = pins.Distribution(m[1])
		}
		line, _, _ = strings.Cut(strings.TrimSuffix(line, `\`), " --hash")
		if name, address, found := strings.Cut(line, " @ "); found {
			_, marker, _ := strings.Cut(address, " ; ")
			line = name + ";" + marker
		}
		p.add(file, line, "")
	}
}

// list records the packages in a list of dependencies.
func (p *dependencies) list(file, text string) {
	m := needsList.FindStringSubmatch(text)
	if m == nil {
		return
	}
	for line := range strings.Lines(m[1]) {
		line, _, _ = strings.Cut(line, " #")
		for _, item := range quotedItem.FindAllStringSubmatch(line, -1) {
			p.lines(file, cmp.Or(item[1], item[2]))
		}
	}
}

// toml records the packages in tables of dependencies, as in Poetry, including its groups, and Pipenv.
func (p *dependencies) toml(file, text string) {
	table, optional := "", pins.OptionalGroups(text)
	for line := range strings.Lines(pins.EachConstraint(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[]")
			continue
		}
		m := tomlKey.FindStringSubmatch(line)
		if !tomlDependencies.MatchString(table) || m == nil {
			continue
		}
		name, version := m[1], m[2]
		if v := tomlVersion.FindStringSubmatch(m[3]); v != nil {
			version = v[1]
		}
		version = strings.TrimPrefix(version, name)
		if version != "" && version[0] >= '0' && version[0] <= '9' { // exactly this version
			version = "==" + version
		}
		if e := tomlExtras.FindStringSubmatch(m[3]); e != nil {
			name += "[" + strings.NewReplacer(`"`, "", `'`, "", " ", "").Replace(e[1]) + "]"
		}
		if notForTraining.MatchString(table) || optional[table] || tomlOptional.MatchString(m[3]) {
			p.setAside(name + strings.TrimPrefix(version, "*"))
			continue
		}
		p.add(file, name+strings.TrimPrefix(version, "*"), pins.MarkerOf(m[3]))
	}
}

// setAside records a package that a file declares for another purpose than training, in case the training needs it
// nevertheless.
func (p *dependencies) setAside(spec string) {
	spec, _, _ = strings.Cut(spec, ";")
	m := packageSpec.FindStringSubmatch(strings.TrimSpace(spec))
	if m == nil || len(p.aside) >= maxStated {
		return
	}
	if name := pins.Normalized(m[1]); p.aside[name] == "" {
		p.aside[name] = strings.TrimSpace(m[3])
	}
}

// limit records uv's limits for versions of packages that are not direct dependencies.
func (p *dependencies) limit(text string) {
	for _, m := range uvLimits.FindAllStringSubmatch(text, -1) {
		for _, item := range quotedItem.FindAllStringSubmatch(m[1], -1) {
			spec, _, _ := strings.Cut(cmp.Or(item[1], item[2]), ";")
			if x := packageSpec.FindStringSubmatch(strings.TrimSpace(spec)); x != nil {
				p.limits[pins.Normalized(x[1])] = strings.TrimSpace(x[3])
			}
		}
	}
}

func (p *dependencies) conda(file, text string) {
	p.lines(file, strings.Join(pins.OfConda(text), "\n"))
}
