//go:build e2e

package experience

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The Python code in docs/training-data.md reads exported data.
func TestE2EPythonReadsWhatIsExported(t *testing.T) {
	docs, err := os.ReadFile("../../docs/training-data.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(docs), "\n## Reading the data in Python\n")
	_, after, found := strings.Cut(section, "```python\n")
	script, _, ends := strings.Cut(after, "```")
	if !found || !ends {
		t.Fatal("docs/training-data.md has no Python")
	}
	python, err := filepath.Abs(cmp.Or(os.Getenv("REWARDWATCH_E2E_PYTHON"), "../../.cache/venv/bin/python"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "experience.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	record := func(episode string, step int, more string) string {
		return fmt.Sprintf(`{"policy":"ranker","episode_id":%q,"step":%d,"observation":[%d,0.5],"action":%d,"reward":%d%s}`, episode, step, 10*step, step, -step, more)
	}
	stepsOf(t, NewParquet(f),
		record("1", 0, ""), record("2", 0, ""), record("1", 1, `,"terminated":true`), record("2", 1, ""), record("2", 3, `,"truncated":true`),
		record("3", 0, ""), // does not end
		record("4", 0, ""), `{"policy":"ranker","episode_id":"4","episode":{"r":0,"l":1}}`)
	script += "\nfor a in (observations, actions, rewards, terminals, timeouts):\n    print(a.dtype, a.tolist())\n"
	cmd := exec.CommandContext(t.Context(), python, "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v (`make test` makes the environment of this python)\n%s", err, out)
	}
	const want = `float64 [[0.0, 0.5], [10.0, 0.5], [0.0, 0.5], [10.0, 0.5], [30.0, 0.5], [0.0, 0.5]]
int64 [0, 1, 0, 1, 3, 0]
float64 [0.0, -1.0, 0.0, -1.0, -3.0, 0.0]
bool [False, True, False, False, False, False]
bool [False, False, False, False, True, True]
`
	if string(out) != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}
