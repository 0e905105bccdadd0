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
	madeEnvironment = regexp.MustCompile(`\b(?:gym|gymnasium)\.make\(\s*["']([\w:./-]+)["']`)
	classOfSB3      = regexp.MustCompile(`(?m)^\s*from stable_baselines3 import ([\w, ]+)`)
	pinnedLine      = regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?==[0-9][A-Za-z0-9.+!_-]*)\s*(?:[;#].*)?$`)
	stepsArgument   = regexp.MustCompile(`\.learn\(\s*(?:total_timesteps\s*=\s*)?([0-9][0-9_]*)`)
	entryPoint      = regexp.MustCompile(`(?m)^if __name__ == ["']__main__["']`)
)

// Finding is what Propose found of a repository, and where.
type Finding struct {
	Value string `json:"value"`
	File  string `json:"file"`
}

// Proposal is what a repository says about its project.
type Proposal struct {
	Project      string    `json:"project"`
	Environments []Finding `json:"environments"`
	Algorithms   []Finding `json:"algorithms"`
	Requirements []Finding `json:"requirements"`
	Steps        []Finding `json:"steps"`
	Programs     []Finding `json:"programs"` // Python files that can be run and mention training
}

// Propose reads a repository. Only its facts are taken: names of environments, algorithms and packages.
func Propose(name string, repository fs.FS) (*Proposal, error) {
	p := &Proposal{Project: projectOf(name)}
	files := 0
	err := fs.WalkDir(repository, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
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
			return err
		}
		text, err := fs.ReadFile(repository, file)
		if err != nil {
			return err
		}
		p.take(file, text)
		return nil
	})
	return p, err
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
		return
	}
	p.Environments = appendNew(p.Environments, file, madeEnvironment, text)
	p.Steps = appendNew(p.Steps, file, stepsArgument, text)
	for _, m := range classOfSB3.FindAllSubmatch(text, -1) {
		for _, name := range strings.Split(string(m[1]), ",") {
			if name = strings.TrimSpace(name); slices.Contains(algorithms[StableBaselines3], name) {
				p.Algorithms = appendFinding(p.Algorithms, Finding{name, file})
			}
		}
	}
	if entryPoint.Match(text) && bytes.Contains(bytes.ToLower(text), []byte("train")) {
		p.Programs = append(p.Programs, Finding{file, file})
	}
}

func appendNew(to []Finding, file string, re *regexp.Regexp, text []byte) []Finding {
	for _, m := range re.FindAllSubmatch(text, -1) {
		to = appendFinding(to, Finding{string(m[1]), file})
	}
	return to
}

func appendFinding(to []Finding, f Finding) []Finding {
	if slices.ContainsFunc(to, func(g Finding) bool { return g.Value == f.Value }) {
		return to
	}
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
{{- else}}
  # None of the requirements has an exact version. The generated scripts need these packages; add ==VERSION to each:
  # - stable-baselines3
  # - scipy
{{- end}}
environments:
{{- range .Environments}}
  - {id: {{yaml .Value}}} # {{yaml .File}}
{{- else}}
  - {id: CHANGE-ME} # no gymnasium.make with a name was found
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
  command: [python, CHANGE-ME.py] # puts $WORK/model.zip into service as version $VERSION
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
