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
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// The marks around a value in what a template has made: open, the number of its path, then, the value, and end. No
// value contains them.
const (
	markOpen = "\ue000"
	markThen = "\ue001"
	markEnd  = "\ue002"
)

var marked = pattern.MustCompile(markOpen + `(\d+)` + markThen + `([^` + markEnd + `]*)` + markEnd)

// functions are those that templates reach the values of the file by. Each writes a value for one syntax.
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
		// An orchestrator waits longer than the script of the gate, which then ends with a reason.
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

// ofValues are the functions that choose among values.
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
		"plain": func(path string) (bool, error) { // in an expression of GitLab
			t, err := r.values.text(path)
			_, notPlain := quote.Name(t.Value)
			return notPlain == nil, err
		},
		"list":  r.values.list,
		"each":  r.values.each,
		"given": func(path string) bool { return r.values.given(path) },
	}
}

// ofStages are the functions that ask about stages.
func (r *renderer) ofStages() template.FuncMap {
	return template.FuncMap{
		"runner": func(s Stage) string { // path of the labels of its machine
			if slices.Contains([]string{"export", "train", "evaluate"}, s.Name) {
				return "training.runner"
			}
			return "gate.runner"
		},
		"ownLabels":    r.ownLabels,
		"bare":         func() bool { return strict.IsBare(r.work.File.Base) },
		"enterprise":   func() bool { return strict.IsEnterprise(r.work.File.githubAPI()) },
		"ownRegistry":  func() bool { return strict.IsOwnRegistry(r.work.File.Image, r.work.File.githubAPI()) },
		"keyInside":    func() bool { return r.keyInside() != "" },
		"serviceGiven": func() bool { return r.work.given.Monitoring.Service != "" },
		"hostedAsk":    func() bool { return r.work.File.hostedAsk() },
		"secrets": func(s Stage) string { // path of the names of its credentials
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
		"patience":    func() (int, error) { return r.deadline(otherSeconds) }, // of who waits for all stages
		"sends":       func(s Stage) bool { return r.work.File.sends(s.Name) },
		"telemetry":   func() bool { return r.work.File.sends("train") || r.work.File.sends("evaluate") },
		"emitter":     r.work.File.emits,
		"scriptsSend": func() bool { return r.work.File.Training.Telemetry || r.work.File.Evaluation.Telemetry },
	}
}

// otherSeconds is how long orchestrators let a stage run that has no limit in the file.
const otherSeconds = 6 * 60 * 60

// deadline returns the seconds after which an orchestrator ends all stages together, and so many more.
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

// keptDays returns how long the files of a run are kept where runs share a volume: a week longer than it may take.
func (r *renderer) keptDays() (int, error) {
	seconds, err := r.deadline(otherSeconds)
	return seconds/(24*60*60) + 8, err
}

// secretsOf returns the stage whose credentials a stage has, "" for none.
func (r *renderer) secretsOf(s Stage) string {
	switch {
	case s.Name == "shadow" || r.work.File.stops(s.Name):
		return "shadow"
	case s.Name == "deploy":
		return "deploy"
	}
	return ""
}

// earlier returns the stages before one that decide about the version.
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

// stops reports whether a stage that fails stops what shadow.command serves.
func (f *File) stops(stage string) bool {
	return len(f.Shadow.Stop) > 0 && (stage == "shadow" || stage == "gate")
}

// sends reports whether a stage may send the telemetry of its episodes. An evaluation of the project's own may: the gate
// would know nothing of the new version if it could not.
func (f *File) sends(stage string) bool {
	return stage == "train" && f.Training.Telemetry || stage == "evaluate" && (f.Evaluation.Telemetry || len(f.Evaluation.Command) > 0)
}

// emits reports whether the image has the Python package of Rewardwatch, which needs Python 3.11. An evaluation of the
// project's own may be older, and sends what it likes to over HTTP.
func (f *File) emits() bool {
	old := strings.HasPrefix(f.Base, "python:2") || olderPython.MatchString(f.Base)
	return f.Training.Telemetry || f.Evaluation.Telemetry || len(f.Evaluation.Command) > 0 && !old
}

var olderPython = pattern.MustCompile(`^python:3\.(10|\d)\b`)

// ownLabels returns the labels of machines that only the team knows, once each.
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

// githubAPI returns the URL of the API of the GitHub that runs the workflow, "" for github.com.
func (f *File) githubAPI() string {
	if f.Trigger.Target == GitHub {
		return f.Trigger.URL
	}
	return ""
}

// literal returns a comment for shellcheck if a shell would expand a word of a command that is not quoted.
func (r *renderer) literal(path string) (string, error) {
	words, err := r.values.list(path)
	if slices.ContainsFunc(words, func(t Text) bool { return quote.Expands(t.Value) }) {
		return "\n# shellcheck disable=SC2016 # the words of a command are literal", err
	}
	return "", err
}

// modelOf returns a call for the model among the hyperparameters, which RLlib ignores in training().
func (r *renderer) modelOf(path string, mark func(t Text, out string) string) string {
	model, ok := r.values.trees[path].Members["model"]
	if !ok {
		return ""
	}
	return "\n        .rl_module(model_config=" + mark(Text{Path: yamlfile.JoinAny(path, "model")}, quote.Python(model)) + ")"
}

// keywords returns the members of a mapping but one as arguments of a Python call, each after a comma.
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

// unmark removes the marks, and returns which values are in which lines.
func (r *renderer) unmark(out string) (string, []Origin) {
	var origins []Origin
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		var seen []string
		for _, m := range marked.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(m[1]) // the expression admits digits alone
			if p := r.paths[n]; !slices.Contains(seen, p) {
				seen = append(seen, p)
				origins = append(origins, Origin{Line: i + 1, Path: p, Place: r.work.place(p)})
			}
		}
		lines[i] = marked.ReplaceAllString(line, "$2")
	}
	return strings.Join(lines, "\n"), origins
}

// gateMargin is how much later than the gate's deadline an orchestrator ends it.
const gateMargin = 30 * time.Minute

// keyInside returns the path of the model's key relative to the directory of the file, "" for none below it.
func (r *renderer) keyInside() string {
	return strict.Below(filepath.Dir(r.work.Path), ModelKeyFile(r.work))
}
