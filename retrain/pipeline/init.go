package pipeline

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// The limits of what Propose reads, so that a large repository takes no longer than a small one.
const (
	maxSourceFiles = 2000
	maxSourceSize  = 1 << 20
)

var (
	namedEnvironment = regexp.MustCompile(`["']((?:[\w.]+:)?(?:[\w.-]+/)?[A-Za-z][\w.-]*-v[0-9]+)["']`)
	classOfSB3       = regexp.MustCompile(`(?m)^\s*from stable_baselines3 import ([\w, ]+)`)
	pinnedLine       = regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?==[0-9][A-Za-z0-9.+!_-]*)[ \t]*(?:[;#].*|\\)?$`)
	requiredPackage  = regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]\n]*\])?[ \t]*(?:[<>~!=][^;#\n]*)?(?:[;#].*)?$`)
	stepsArgument    = regexp.MustCompile(`(?:\.learn\(\s*(?:total_timesteps\s*=\s*)?|total[_-]timesteps["']?\s*(?::\s*int\s*=\s*|,[^\n]*default\s*=\s*(?:int\()?))([1-9][0-9_]*)`)
	entryPoint       = regexp.MustCompile(`(?m)^if __name__ == ["']__main__["']`)
)

// Finding is what Propose found of a repository, and where.
type Finding struct {
	Value string `json:"value"`
	File  string `json:"file"`
	times int    // how often it was found
}

// Proposal is what a repository says about its project.
type Proposal struct {
	Project      string    `json:"project"`
	Environments []Finding `json:"environments"`
	Algorithms   []Finding `json:"algorithms"`
	Requirements []Finding `json:"requirements"`
	Unpinned     []Finding `json:"unpinned"` // packages without an exact version
	Steps        []Finding `json:"steps"`
	Programs     []Finding `json:"programs"` // Python files that can be run and mention training
}

// Propose reads a repository. Only its facts are taken: names of environments, algorithms and packages.
func Propose(name string, repository fs.FS) (*Proposal, error) {
	p := &Proposal{Project: projectOf(name)}
	files := 0
	err := fs.WalkDir(repository, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && file == ".":
			return err
		case err != nil: // a directory that cannot be read is none of the project's
			return fs.SkipDir
		case d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"node_modules", "venv", "site-packages"}, d.Name())):
			return fs.SkipDir
		case !d.Type().IsRegular() || path.Ext(file) != ".py" && !strings.HasPrefix(d.Name(), "requirements"):
			return nil
		}
		if files++; files > maxSourceFiles {
			return fs.SkipAll
		}
		info, err := d.Info()
		if err != nil || info.Size() > maxSourceSize {
			return nil
		}
		if text, err := fs.ReadFile(repository, file); err == nil {
			p.take(file, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
		}
		return nil
	})
	p.choose()
	return p, err
}

// maxEnvironments bounds the environments of a proposal: a library names hundreds, a project trains in a few.
const maxEnvironments = 5

// choose keeps what a person would most likely want: what is named most often first, a program named for its training
// first, few environments, and no package twice.
func (p *Proposal) choose() {
	named := func(f Finding) bool {
		return strings.Contains(path.Base(f.Value), "train") || strings.Contains(path.Base(f.Value), "ppo")
	}
	slices.SortStableFunc(p.Programs, func(a, b Finding) int {
		switch {
		case named(a) == named(b):
			return 0
		case named(a):
			return -1
		}
		return 1
	})
	for _, found := range [][]Finding{p.Environments, p.Algorithms, p.Steps} {
		slices.SortStableFunc(found, func(a, b Finding) int { return b.times - a.times })
	}
	p.Environments = p.Environments[:min(len(p.Environments), maxEnvironments)]
	var packages []string
	p.Requirements = slices.DeleteFunc(p.Requirements, func(r Finding) bool { // several files may pin one package
		name := packageName(r.Value)
		twice := slices.Contains(packages, name)
		packages = append(packages, name)
		return twice
	})
	p.Unpinned = slices.DeleteFunc(p.Unpinned, func(f Finding) bool {
		return slices.ContainsFunc(p.Requirements, func(r Finding) bool { return packageName(r.Value) == normalised(f.Value) })
	})
}

// packageName returns the normalized name of a requirement's package.
func packageName(requirement string) string {
	name, _, _ := strings.Cut(requirement, "==")
	name, _, _ = strings.Cut(name, "[")
	return normalised(name)
}

// projectOf turns the name of a directory into that of a project.
func projectOf(name string) string {
	name = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-")
	name = strings.TrimLeft(name, "-0123456789")
	return strings.TrimRight(cmp.Or(name[:min(len(name), 40)], "agent"), "-")
}

func (p *Proposal) take(file string, text []byte) {
	if path.Ext(file) != ".py" {
		p.Requirements = appendNew(p.Requirements, file, pinnedLine, text)
		p.Unpinned = appendNew(p.Unpinned, file, requiredPackage, text)
		return
	}
	p.Environments = appendNew(p.Environments, file, namedEnvironment, text)
	p.Steps = appendNew(p.Steps, file, stepsArgument, text)
	for _, m := range classOfSB3.FindAllSubmatch(text, -1) {
		for _, name := range strings.Split(string(m[1]), ",") {
			if name = strings.TrimSpace(name); slices.Contains(algorithms[StableBaselines3], name) {
				p.Algorithms = appendFinding(p.Algorithms, Finding{Value: name, File: file})
			}
		}
	}
	if entryPoint.Match(text) && bytes.Contains(bytes.ToLower(text), []byte("train")) {
		p.Programs = appendFinding(p.Programs, Finding{Value: file, File: file})
	}
}

func appendNew(to []Finding, file string, re *regexp.Regexp, text []byte) []Finding {
	for _, m := range re.FindAllSubmatch(text, -1) {
		to = appendFinding(to, Finding{Value: string(m[1]), File: file})
	}
	return to
}

func appendFinding(to []Finding, f Finding) []Finding {
	if i := slices.IndexFunc(to, func(g Finding) bool { return g.Value == f.Value }); i >= 0 {
		to[i].times++
		return to
	}
	f.times = 1
	return append(to, f)
}

// proposed is a file of a proposal. What was not found is left to the person, with a comment that says so.
var proposed = template.Must(template.New("file").Funcs(template.FuncMap{"yaml": asYAML}).Parse(`# Proposed by ` + "`rewardwatch pipeline init`" + `. Check it, and then run: rewardwatch pipeline validate FILE
project: {{.Project}}
# owner: who is responsible
targets: [make]
requirements:
{{- range .Requirements}}
  - {{.Value}}
{{- end}}
{{- if .Unpinned}}
  # These have no exact version. Add one to each that the training needs, as in numpy==2.4.6:
{{- range .Unpinned}}
  # - {{.Value}}
{{- end}}
{{- end}}
{{- if and .Algorithms (not .Requirements)}}
  # The generated scripts need stable-baselines3 and scipy.
{{- end}}
environments:
{{- range .Environments}}
  - {id: {{yaml .Value}}} # {{yaml .File}}
{{- else}}
  - {id: CHANGE-ME} # no name of an environment was found
{{- end}}
{{- if .Algorithms}}
algorithm:
  library: stable-baselines3
  name: {{(index .Algorithms 0).Value}} # {{yaml (index .Algorithms 0).File}}
{{- else}}
algorithm:
  library: custom
evaluation:
  command: [python, CHANGE-ME.py]
{{- end}}
training:
{{- if .Steps}}
  steps: {{.StepsNumber}}
{{- end}}
{{- if not .Algorithms}}
  command: [python, {{if .Programs}}{{yaml (index .Programs 0).Value}}{{else}}CHANGE-ME.py{{end}}]
{{- else}}
  cpu: 2
{{- end}}
deploy:
  command: [python, CHANGE-ME.py] # puts the model in $WORK into service as version $VERSION
`))

// StepsNumber returns the first number of steps without underscores.
func (p *Proposal) StepsNumber() string { return strings.ReplaceAll(p.Steps[0].Value, "_", "") }

// Text returns the proposed file.
func (p *Proposal) Text() (string, error) {
	var b strings.Builder
	if err := proposed.Execute(&b, p); err != nil {
		return "", fmt.Errorf("write the proposed file: %w", err)
	}
	return b.String(), nil
}

// Found returns how many of each kind were found, for a summary.
func (p *Proposal) Found() []string {
	counts := map[string]int{
		"environments": len(p.Environments), "algorithms": len(p.Algorithms), "pinned requirements": len(p.Requirements), "programs": len(p.Programs),
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d %s", counts[name], name))
	}
	return out
}
