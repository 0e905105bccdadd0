package pipeline

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// mutationSeed is the seed of the mutations. The rules were developed with the mutations of the default seed in view.
var mutationSeed = flag.Uint64("mutation-seed", 18, "seed of the mutations")

// mutants are ways to break a template. Each changes a line, or returns it unchanged if it does not apply.
var mutants = []struct {
	name   string
	change func(lines []string, i int) []string
}{
	{"line lost", func(lines []string, i int) []string { return slices.Delete(lines, i, i+1) }},
	{"indented more", func(lines []string, i int) []string { lines[i] = "  " + lines[i]; return lines }},
	{"indented less", func(lines []string, i int) []string { lines[i] = strings.TrimPrefix(lines[i], "  "); return lines }},
	{"stage lost", loseBlock},
	{"unpinned", replacing(regexp.MustCompile(`==[0-9][^\s"']*|@[0-9a-f]{40}.*|:[0-9][0-9a-z.-]*$|:[0-9][0-9a-z.-]+( AS .*)`), "$1")},
	{"latest", replacing(regexp.MustCompile(`((?:image: |FROM )\S+?):[^\s"]+`), "$1:latest")},
	{"renamed", replacing(regexp.MustCompile(`(pipeline/[a-z/_]+)(\.(?:sh|py|txt|yaml|yml))`), "${1}_old$2")},
	{"renamed stage", replacing(regexp.MustCompile(`\b(train|evaluate|gate|deploy)\b`), "${1}x")},
	{"secret in clear", func(lines []string, i int) []string {
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " "))]
		return slices.Insert(lines, i, indent+"# token: glpat-abcdefghij0123456789")
	}},
}

func replacing(re *regexp.Regexp, now string) func([]string, int) []string {
	return func(lines []string, i int) []string { lines[i] = re.ReplaceAllString(lines[i], now); return lines }
}

// loseBlock drops a line and the indented lines below it.
func loseBlock(lines []string, i int) []string {
	depth := func(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }
	end := i + 1
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || depth(lines[end]) > depth(lines[i])) {
		end++
	}
	return slices.Delete(lines, i, end)
}

// meaning returns what the target system reads of a text: the values of YAML, and the lines of other files without
// comments and, except in Python and makefiles, without indentation.
func meaning(t *testing.T, path, text string) any {
	t.Helper()
	a := Artefact{Path: path}
	if !isYAML(&a) {
		var kept []string
		if head, code, ok := strings.Cut(strings.TrimPrefix(text, `"""`), `"""`+"\n"); ok && strings.HasSuffix(path, ".py") {
			text = strings.Join(strings.Fields(head), " ") + "\n" + code // the layout of a docstring is irrelevant
		}
		for line := range strings.Lines(text) {
			if s := strings.TrimSpace(line); s != "" && (!strings.HasPrefix(s, "#") || strings.HasPrefix(s, "#!")) {
				if !strings.HasSuffix(path, ".py") {
					line = strings.TrimLeft(line, " ")
				}
				kept = append(kept, strings.TrimRight(line, " \n"))
			}
		}
		return kept
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	for _, doc := range file.Docs {
		var value any
		if doc.Body != nil {
			if err := yaml.NodeToValue(doc.Body, &value); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, value)
	}
	return out
}

// python reports whether an artefact is Python code. Faults in it are detected by tools that run or compile it, because
// verify does not parse Python.
func python(path string) bool {
	return strings.HasSuffix(path, ".py") && path != "pipeline/airflow_dag.py"
}

// 240 mutations of artefacts and 60 of the file, with a fixed seed: the named rule detects each, or the target system
// reads the same.
func TestSimMutationsAreFoundOrHarmless(t *testing.T) {
	const ofTemplates, ofFiles = 240, 60
	draws := rand.New(rand.NewPCG(*mutationSeed, 300))
	fresh := mustRun(t)
	found, harmless, missed := map[string]int{}, 0, 0
	for done := 0; done < ofTemplates; {
		n := draws.IntN(len(fresh.Artefacts))
		was := fresh.Artefacts[n]
		if python(was.Path) {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(was.Text, "\n"), "\n")
		i, m := draws.IntN(len(lines)), mutants[draws.IntN(len(mutants))]
		now := strings.Join(m.change(slices.Clone(lines), i), "\n") + "\n"
		if now == was.Text {
			continue // it does not apply to this line
		}
		done++
		w := *fresh
		w.Artefacts = slices.Clone(fresh.Artefacts)
		w.Artefacts[n] = Artefact{Path: was.Path, Text: now, template: strings.Split(now, "\n")}
		w.Problems = nil
		verify(&w)
		switch {
		case len(w.Problems) > 0:
			rule, _, _ := strings.Cut(w.Problems[0].Message, ":")
			found[rule]++
		case reflect.DeepEqual(meaning(t, was.Path, was.Text), meaning(t, was.Path, now)):
			harmless++
		default:
			missed++
			t.Errorf("%s: %s of line %d: no rule finds it: %q", was.Path, m.name, i+1, lines[i])
		}
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	of := mutations(string(text))
	right := 0
	for range ofFiles {
		broken := of[draws.IntN(len(of))]
		w, err := runText(t, broken)
		if err == nil {
			right++ // another valid file whose pipeline has no faults
			continue
		}
		if len(w.Problems) == 0 || w.Problems[0].Line < 1 {
			t.Errorf("%v has no place", err)
		}
		found["filter "+w.Trace[len(w.Trace)-1].Filter]++
	}
	var table []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		table = append(table, fmt.Sprintf("%s %d", name, found[name]))
	}
	t.Logf("found: %s; harmless: %d; other valid files: %d; missed: %d", strings.Join(table, ", "), harmless, right, missed)
}
