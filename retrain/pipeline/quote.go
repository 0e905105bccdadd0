package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// The marks around a value in what a template has made: open, the number of its path, then, the value, and end. No
// value contains them.
const (
	markOpen = "\ue000"
	markThen = "\ue001"
	markEnd  = "\ue002"
)

var marked = regexp.MustCompile(markOpen + `(\d+)` + markThen + `([^` + markEnd + `]*)` + markEnd)

// plainName is what needs no quotes in YAML, a shell, a Dockerfile and a Makefile.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@+=!\[\],-]*$`)

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
		"name":    quoted(asName),
		"word":    quoted(asWord),
		"yaml":    quoted(asYAML),
		"shell":   quoted(func(s string) (string, error) { return asShell(s), nil }),
		"python":  quoted(func(s string) (string, error) { return strconv.QuoteToASCII(s), nil }),
		"text":    quoted(func(s string) (string, error) { return asText(s), nil }),
		"seconds": quoted(func(s string) (string, error) { return inUnits(s, 0, time.Second) }),
		"minutes": quoted(func(s string) (string, error) { return inUnits(s, 0, time.Minute) }),
		// An orchestrator waits longer than the script of the gate, which then ends with a reason.
		"gateSeconds": quoted(func(s string) (string, error) { return inUnits(s, gateMargin, time.Second) }),
		"gateMinutes": quoted(func(s string) (string, error) { return inUnits(s, gateMargin, time.Minute) }),
		"module":      quoted(func(s string) (string, error) { return strings.ToLower(s), nil }),
		"runners":     quoted(asRunners),
		"arguments":   func(path string) string { return strings.Replace(r.keywords(path, "model", mark), ", ", "", 1) },
		"modelOf":     func(path string) string { return r.modelOf(path, mark) },
		"keywords":    func(path string) string { return r.keywords(path, "", mark) },
		"glob":        quoted(asGlob),
		"memory":      quoted(asComposeMemory),
		"bound":       quoted(func(s string) (string, error) { return cmp.Or(s, "None"), nil }),
		"number":      quoted(asNumber),
		"value": func(path string) (string, error) { // for comparisons
			t, err := r.values.text(path)
			return t.Value, err
		},
		"tree": func(path string, indent int) string {
			return asTree(path, r.values.trees[path], indent, func(l treeLine) string { return mark(Text{Path: l.path}, l.text) })
		},
		"list":  r.values.list,
		"each":  r.values.each,
		"given": func(path string) bool { return r.values.given(path) },
	}
	maps.Copy(all, r.ofStages())
	return all
}

// ofStages are the functions that ask about stages.
func (r *renderer) ofStages() template.FuncMap {
	return template.FuncMap{
		"runner": func(s Stage) string { // path of the labels of its machine
			switch {
			case s.Training:
				return "training.runner"
			case s.Waiting:
				return "gate.runner"
			}
			return ""
		},
		"secrets": func(s Stage) string { // path of the names of its credentials
			if s.Name == "shadow" || s.Name == "deploy" {
				return s.Name + ".secrets"
			}
			return ""
		},
		"deadline":  func() (string, error) { return r.deadline() },
		"sends":     func(s Stage) bool { return r.sends(s.Name) },
		"telemetry": func() bool { return r.sends("train") || r.sends("evaluate") },
	}
}

// otherSeconds is how long orchestrators let a stage run that has no limit in the file.
const otherSeconds = 6 * 60 * 60

// deadline returns the seconds after which an orchestrator ends all stages together.
func (r *renderer) deadline() (string, error) {
	total := 0
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
		d, err := duration(limit)
		if err != nil {
			return "", err
		}
		total += int((d + margin) / time.Second)
	}
	return strconv.Itoa(total), nil
}

// sends reports whether a stage sends the telemetry of its episodes.
func (r *renderer) sends(stage string) bool {
	f := &r.work.File
	return stage == "train" && f.Training.Telemetry || stage == "evaluate" && f.Evaluation.Telemetry
}

// modelOf returns a call for the model among the hyperparameters, which RLlib ignores in training().
func (r *renderer) modelOf(path string, mark func(t Text, out string) string) string {
	model, ok := r.values.trees[path].Members["model"]
	if !ok {
		return ""
	}
	return "\n        .rl_module(model_config=" + mark(Text{Path: yamlfile.JoinAny(path, "model")}, asPython(model)) + ")"
}

// keywords returns the members of a mapping but one as arguments of a Python call, each after a comma.
func (r *renderer) keywords(path, but string, mark func(t Text, out string) string) string {
	var b strings.Builder
	tree := r.values.trees[path]
	for _, key := range tree.Keys() {
		if key == but {
			continue
		}
		b.WriteString(mark(Text{Path: yamlfile.JoinAny(path, key)}, ", "+key+"="+asPython(tree.Members[key])))
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

func asName(s string) (string, error) {
	if !plainName.MatchString(s) {
		return "", fmt.Errorf("%q is not a plain name", s)
	}
	return s, nil
}

func asNumber(s string) (string, error) {
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return "", fmt.Errorf("%q is not a number", s)
	}
	return withPoint(s), nil
}

// withPoint returns a number with a point if it has an exponent: without one, YAML takes it for a string.
func withPoint(number string) string {
	if digits, exponent, ok := strings.Cut(number, "e"); ok && !strings.Contains(digits, ".") {
		return digits + ".0e" + exponent
	}
	return number
}

var wordOfYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`)

// notStrings are words that YAML 1.1 or 1.2 takes for something else than a string.
var notStrings = strings.Fields("y n yes no on off true false null")

// asWord returns a YAML string, without quotes if every version of YAML takes it for one.
func asWord(s string) (string, error) {
	if wordOfYAML.MatchString(s) && !slices.Contains(notStrings, strings.ToLower(s)) {
		return s, nil
	}
	return asYAML(s)
}

// asYAML returns a double-quoted YAML scalar, which is a JSON string.
func asYAML(s string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// asShell returns a word that a POSIX shell reads as it is. Backslashes before a quote are outside of quotes, where no one
// can take them for one that escapes it.
func asShell(s string) string {
	parts := strings.Split(s, "'")
	for i, p := range parts {
		quoted := strings.TrimRight(p, `\`)
		parts[i] = "'" + quoted + "'" + strings.Repeat(`\\`, len(p)-len(quoted))
	}
	return strings.Join(parts, `\'`)
}

// asRunners returns how many processes of RLlib collect episodes: one processor is that of the learner.
func asRunners(cpu string) (string, error) {
	n, err := strconv.Atoi(cpu)
	return strconv.Itoa(n - 1), err
}

// asGlob returns the glob that matches a name alone, as a YAML scalar.
func asGlob(s string) (string, error) {
	if strings.ContainsAny(s, "*?[\\") {
		return "", fmt.Errorf("%q contains wildcard characters", s)
	}
	return asYAML(s)
}

// asComposeMemory returns a size of Kubernetes as Docker Compose writes it, where g is a power of two as well.
func asComposeMemory(s string) (string, error) {
	return strings.ToLower(strings.TrimSuffix(s, "i")), nil
}

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`)

// asText returns a text for Markdown.
func asText(s string) string { return markdown.Replace(s) }

// gateMargin is how much later than the gate's deadline an orchestrator ends it.
const gateMargin = 30 * time.Minute

// inUnits returns a duration and a margin in units.
func inUnits(s string, margin, unit time.Duration) (string, error) {
	d, err := duration(s)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(int((d + margin) / unit)), nil
}

// asPython returns a value as a Python literal.
func asPython(v yamlfile.Value) string {
	switch v.Kind {
	case yamlfile.Boolean:
		return map[string]string{"true": "True", "false": "False"}[v.Scalar]
	case yamlfile.Number:
		return v.Scalar
	case yamlfile.String:
		return strconv.QuoteToASCII(v.Scalar)
	case yamlfile.List:
		items := make([]string, len(v.Items))
		for i, item := range v.Items {
			items[i] = asPython(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case yamlfile.Mapping:
		var members []string
		for _, key := range v.Keys() {
			members = append(members, strconv.QuoteToASCII(key)+": "+asPython(v.Members[key]))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	return "None"
}
