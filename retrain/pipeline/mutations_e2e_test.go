//go:build e2e

package pipeline

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// judged prints, for each pair of programs, what detects that the second differs from the first, as JSON.
const judged = `
import ast, io, json, sys
from pyflakes import api, reporter

def meaning(text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(getattr(body[0].value, "value", None), str):
            body.pop(0)
    return ast.dump(tree)

def judge(was, now):
    try:
        compile(now, "now", "exec")
    except (SyntaxError, ValueError):
        return "compile"
    if api.check(now, "now", reporter.Reporter(io.StringIO(), io.StringIO())):
        return "pyflakes"
    return "harmless" if meaning(was) == meaning(now) else "missed"

print(json.dumps([judge(*pair) for pair in json.load(open(sys.argv[1]))]))
`

// 240 mutations of the generated Python with a fixed seed: verify, the compiler or pyflakes detects each, or the
// program is equivalent.
func TestE2EMutationsOfPython(t *testing.T) {
	const of = 240
	var works []*Work
	for _, name := range []string{"the example", "CleanRL", "RLlib"} {
		w, err := run(t, variants()[name]...)
		if err != nil {
			t.Fatal(err)
		}
		works = append(works, w)
	}
	draws := rand.New(rand.NewPCG(*mutationSeed, of))
	count := map[string]int{}
	var pairs [][2]string
	var said []string
	for done := 0; done < of; {
		fresh := works[draws.IntN(len(works))]
		n := draws.IntN(len(fresh.Artefacts))
		was := fresh.Artefacts[n]
		if !strings.HasSuffix(was.Path, ".py") {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(was.Text, "\n"), "\n")
		i, m := draws.IntN(len(lines)), mutants[draws.IntN(len(mutants))]
		now := strings.Join(m.change(slices.Clone(lines), i), "\n") + "\n"
		if now == was.Text {
			continue
		}
		done++
		w := *fresh
		w.Artefacts = slices.Clone(fresh.Artefacts)
		w.Artefacts[n] = Artefact{Path: was.Path, Text: now, template: strings.Split(now, "\n")}
		w.Problems = nil
		if verify(&w); len(w.Problems) > 0 {
			count["verify"]++
			continue
		}
		pairs = append(pairs, [2]string{was.Text, now})
		said = append(said, was.Path+": "+m.name+": "+lines[i])
	}
	for i, verdict := range judge(t, pairs) {
		if count[verdict]++; verdict == "missed" {
			t.Log(said[i])
		}
	}
	t.Log(count)
	if count["missed"] > 0 || count["compile"] == 0 || count["pyflakes"] == 0 {
		t.Errorf("%d are missed", count["missed"])
	}
}

// judge returns what detects each mutation of a program.
func judge(t *testing.T, pairs [][2]string) []string {
	t.Helper()
	text, err := json.Marshal(pairs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pairs.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(checkers+"/python", "-c", judged, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []string
	if err := json.Unmarshal(out, &verdicts); err != nil || len(verdicts) != len(pairs) {
		t.Fatalf("%v: %s", err, out)
	}
	return verdicts
}
