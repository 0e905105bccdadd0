package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/machines"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// Marks around a value in the output of a template: markOpen, the number of the value's path, markThen, the value, and
// markEnd. No value contains these characters.
const (
	markOpen = "\ue000"
	markThen = "\ue001"
	markEnd  = "\ue002"
)

var marked = pattern.MustCompile(markOpen + `(\d+)` + markThen + `([^` + markEnd + `]*)` + markEnd)

// functions returns the functions through which templates access the values of the file. Each quotes a value for one
// syntax.
func (r *renderer) functions() template.FuncMap {
	paths := []string{}
	mark := func(t Text, out string) string {
		i := slices.Index(paths, t.Path)
		if i < 0 {
			i, paths = len(paths), append(paths, t.Path)
		}
		r.paths = paths
		return markOpen + strconv.Itoa(i) + markThen + out + markEnd
	}
	quoted := func(quote func(string) (string, error)) func(any) (string, error) {
		return func(x any) (string, error) {
			t, err := r.values.text(x)
			if err != nil {
				return "", err
			}
			out, err := quote(t.Value)
			if err != nil {
				return "", fmt.Errorf("%s: %w", t.Path, err)
			}
			return mark(t, out), nil
		}
	}
	all := template.FuncMap{
		"name":    quoted(quote.Name),
		"word":    quoted(quote.Word),
		"yaml":    quoted(quote.YAML),
		"shell":   quoted(func(s string) (string, error) { return quote.Shell(s), nil }),
		"python":  quoted(func(s string) (string, error) { return strconv.QuoteToASCII(s), nil }),
		"text":    quoted(func(s string) (string, error) { return quote.Text(s), nil }),
		"seconds": quoted(func(s string) (string, error) { return strict.InUnits(s, 0, time.Second) }),
		"minutes": quoted(func(s string) (string, error) { return strict.InUnits(s, 0, time.Minute) }),
		// The orchestrator's limit is longer than that of the gate's script, so that the script ends first and reports
		// why.
		"gateSeconds":  quoted(func(s string) (string, error) { return strict.InUnits(s, gateMargin, time.Second) }),
		"gateMinutes":  quoted(func(s string) (string, error) { return strict.InUnits(s, gateMargin, time.Minute) }),
		"module":       quoted(func(s string) (string, error) { return strings.ToLower(s), nil }),
		"runners":      quoted(strict.Runners),
		"arguments":    func(path string) string { return strings.Replace(r.keywords(path, "model", mark), ", ", "", 1) },
		"modelOf":      func(path string) string { return r.modelOf(path, mark) },
		"keywords":     func(path string) string { return r.keywords(path, "", mark) },
		"glob":         quoted(quote.Glob),
		"variable":     quoted(func(s string) (string, error) { return quote.Variable(s), nil }),
		"sameOnGitHub": quoted(quote.SameOnGitHub),
		"ofTraining":   quoted(func(s string) (string, error) { return quote.Glob(s + "-training") }),
		"registry":     quoted(func(s string) (string, error) { host, _ := machines.Registry(s); return host, nil }),
		"ignored":      quoted(func(string) (string, error) { return quote.Ignored(r.keyInside()), nil }),
		"literal":      r.literal,
		"memory":       quoted(strict.ComposeMemory),
		"bound":        quoted(func(s string) (string, error) { return cmp.Or(s, "None"), nil }),
		"number":       quoted(quote.Number),
		"tree": func(path string, indent int) string {
			return quote.Tree(path, r.values.trees[path], indent, func(l quote.Line) string { return mark(Text{Path: l.Path}, l.Text) })
		},
	}
	maps.Copy(all, r.ofValues())
	maps.Copy(all, r.ofStages())
	return all
}

// ofValues returns the functions for conditions on values.
func (r *renderer) ofValues() template.FuncMap {
	return template.FuncMap{
		"value": func(path string) (string, error) { // for comparisons
			t, err := r.values.text(path)
			return t.Value, err
		},
		"expands": func(path string) (bool, error) { // in a shell
			t, err := r.values.text(path)
			return quote.Expands(t.Value), err
		},
		"plain": func(path string) (bool, error) { // in a GitLab expression
			t, err := r.values.text(path)
			_, notPlain := quote.Name(t.Value)
			return notPlain == nil, err
		},
		"list":  r.values.list,
		"each":  r.values.each,
		"given": func(path string) bool { return r.values.given(path) },
	}
}

// ofStages returns the functions for properties of stages.
func (r *renderer) ofStages() template.FuncMap {
	return template.FuncMap{
		"runner": func(s Stage) string { // path of the runner labels
			if slices.Contains([]string{"export", "train", "evaluate"}, s.Name) {
				return "training.runner"
			}
			return "gate.runner"
		},
		"ownLabels":    r.ownLabels,
		"bare":         func() bool { return strict.IsBare(r.work.File.Base) },
		"enterprise":   func() bool { return strict.IsEnterprise(r.work.File.githubAPI()) },
		"ownRegistry":  func() bool { return strict.IsOwnRegistry(r.work.File.Image, r.work.File.githubAPI()) },
		"needsRequest": r.work.File.needsRequest,
		"otherBase":    r.work.File.otherBase,
		"keyInside":    func() bool { return r.keyInside() != "" },
		"serviceGiven": func() bool { return r.work.given.Monitoring.Service != "" },
		"hostedAsk":    func() bool { return r.work.File.hostedAsk() },
		"secrets": func(s Stage) string { // path of the names of its secrets
			if of := r.secretsOf(s); of != "" {
				return of + ".secrets"
			}
			return ""
		},
		"secretsOf":   r.secretsOf,
		"stops":       func(s Stage) bool { return r.work.File.stops(s.Name) },
		"earlier":     r.earlier,
		"keptDays":    r.keptDays,
		"deadline":    func() (int, error) { return r.deadline(0) },
		"patience":    func() (int, error) { return r.deadline(otherSeconds) }, // for a job that waits for all stages
		"sends":       func(s Stage) bool { return r.work.File.sends(s.Name) },
		"telemetry":   func() bool { return r.work.File.sends("train") || r.work.File.sends("evaluate") },
		"emitter":     r.work.File.emits,
		"scriptsSend": func() bool { return r.work.File.Training.Telemetry || r.work.File.Evaluation.Telemetry },
	}
}

// otherSeconds is the time limit in seconds of a stage without a limit in the file.
const otherSeconds = 6 * 60 * 60

// deadline returns the time in seconds after which an orchestrator ends the whole run, plus more.
func (r *renderer) deadline(more int) (int, error) {
	total := more
	for _, s := range r.work.Stages {
		limit, margin := "", time.Duration(0)
		switch {
		case s.Training:
			limit = r.work.File.Training.Timeout
		case s.Waiting:
			limit, margin = r.work.File.Gate.Within, gateMargin
		default:
			total += otherSeconds
			continue
		}
		d, err := strict.Duration(limit)
		if err != nil {
			return 0, err
		}
		total += int((d + margin) / time.Second)
	}
	return total, nil
}

// keptDays returns how many days the files of a run are kept on a shared volume: about a week longer than the run may
// take.
func (r *renderer) keptDays() (int, error) {
	seconds, err := r.deadline(otherSeconds)
	return seconds/(24*60*60) + 8, err
}

// otherBase reports whether the base may be a private image that the login to the registry of an image does not cover.
func (f *File) otherBase(image string) bool {
	registry, _ := machines.Registry(f.Base)
	of, named := machines.Registry(image)
	return strings.Contains(f.Base, "/") && (!named || registry != of)
}

// secretsOf returns the section whose secrets a stage receives, or "".
func (r *renderer) secretsOf(s Stage) string {
	switch {
	case s.Name == "shadow" || r.work.File.stops(s.Name):
		return "shadow"
	case s.Name == "deploy":
		return "deploy"
	}
	return ""
}

// earlier returns the stages before a stage, except export, which does not concern the version.
func (r *renderer) earlier(s Stage) []string {
	var all []string
	for _, before := range r.work.Stages {
		if before.Name == s.Name {
			break
		}
		if before.Name != "export" {
			all = append(all, before.Name)
		}
	}
	return all
}

// stops reports whether a stage runs shadow.stop if it fails.
func (f *File) stops(stage string) bool {
	return len(f.Shadow.Stop) > 0 && (stage == "shadow" || stage == "gate")
}

// sends reports whether a stage may send telemetry of its episodes. A project's own evaluation command may always,
// because otherwise the gate would have no data of the new version.
func (f *File) sends(stage string) bool {
	return stage == "train" && f.Training.Telemetry || stage == "evaluate" && (f.Evaluation.Telemetry || len(f.Evaluation.Command) > 0)
}

// emits reports whether the image contains Rewardwatch's Python package, which requires Python 3.11. A project's own
// evaluation command may use an older Python, and send telemetry over HTTP.
func (f *File) emits() bool {
	old := strings.HasPrefix(f.Base, "python:2") || olderPython.MatchString(f.Base)
	return f.Training.Telemetry || f.Evaluation.Telemetry || len(f.Evaluation.Command) > 0 && !old
}

var olderPython = pattern.MustCompile(`^python:3\.(10|\d)\b`)

// ownLabels returns the runner labels that the team defined itself, without duplicates.
func (r *renderer) ownLabels() []Text {
	var own []Text
	for _, path := range []string{"training.runner", "gate.runner"} {
		all, _ := r.values.list(path)
		for _, t := range all {
			if strict.IsOwnLabel(t.Value) && !slices.ContainsFunc(own, func(o Text) bool { return o.Value == t.Value }) {
				own = append(own, t)
			}
		}
	}
	return own
}

// githubAPI returns the API URL of the GitHub instance that runs the workflow, or "" for github.com.
func (f *File) githubAPI() string {
	if f.Trigger.Target == GitHub {
		return f.Trigger.URL
	}
	return ""
}

// literal returns a comment that disables a shellcheck warning, if a quoted word of a command would expand without
// quotes.
func (r *renderer) literal(path string) (string, error) {
	words, err := r.values.list(path)
	if slices.ContainsFunc(words, func(t Text) bool { return quote.Expands(t.Value) }) {
		return "\n# shellcheck disable=SC2016 # the words of a command are literal", err
	}
	return "", err
}

// modelOf returns a call that sets the model hyperparameter, which RLlib ignores in training().
func (r *renderer) modelOf(path string, mark func(t Text, out string) string) string {
	model, ok := r.values.trees[path].Members["model"]
	if !ok {
		return ""
	}
	return "\n        .rl_module(model_config=" + mark(Text{Path: yamlfile.JoinAny(path, "model")}, quote.Python(model)) + ")"
}

// keywords returns the members of a mapping except one as keyword arguments in Python, each preceded by a comma.
func (r *renderer) keywords(path, but string, mark func(t Text, out string) string) string {
	var b strings.Builder
	tree := r.values.trees[path]
	for _, key := range tree.Keys() {
		if key == but {
			continue
		}
		b.WriteString(mark(Text{Path: yamlfile.JoinAny(path, key)}, ", "+key+"="+keywords.Python(r.work.File.Algorithm.Library, key, tree.Members[key])))
	}
	return b.String()
}

// unmark removes the marks, and returns which values each line contains.
func (r *renderer) unmark(out string) (string, []Origin) {
	var origins []Origin
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		var seen []string
		for _, m := range marked.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(m[1]) // the pattern matches only digits
			if p := r.paths[n]; !slices.Contains(seen, p) {
				seen = append(seen, p)
				origins = append(origins, Origin{Line: i + 1, Path: p, Place: r.work.place(p)})
			}
		}
		lines[i] = marked.ReplaceAllString(line, "$2")
	}
	return strings.Join(lines, "\n"), origins
}

// gateMargin is the time between the gate's deadline and the orchestrator's limit.
const gateMargin = 30 * time.Minute

// keyInside returns the path of the model's key relative to the directory of the file, or "" if it is not below it.
func (r *renderer) keyInside() string {
	return strict.Below(filepath.Dir(r.work.Path), ModelKeyFile(r.work))
}
