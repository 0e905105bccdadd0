//go:build agents

package pipeline

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keep"
)

// received is the telemetry that a service receives.
type received struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *received) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := io.Copy(&r.text, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, `{"accepted": 1, "refused": 0, "refusals": []}`)
}

// The generated training and evaluation of each library run: PPO learns to balance the pole while gravity varies, the
// evaluation satisfies one constraint and violates another, and both send their episodes.
func TestGeneratedTrainingRuns(t *testing.T) {
	hyper := func(name string) []string {
		return append([]string{"name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}", "name: " + name + "\n  hyperparameters: {lr: 5e-4}"}, rllibOf...)
	}
	for name, test := range map[string]struct {
		library  []string
		steps    string
		least    string
		features string
	}{
		"Stable-Baselines3": {nil, "4000", "20", ""},
		"CleanRL":           {cleanRL, "20000", "60", "def features(observation):\n    return numpy.append(observation, numpy.sin(observation[2]))\n"},
		"RLlib":             {rllib, "4000", "20", ""},
		"DQN":               {hyper("DQN"), "2000", "1", ""}, // it learns after 1,000 steps
		"IMPALA":            {hyper("IMPALA"), "2000", "1", ""},
		"APPO":              {hyper("APPO"), "2000", "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			service := &received{}
			server := httptest.NewServer(service)
			defer server.Close()
			project := func(limit string) string {
				replaced := []string{"telemetry: true", "telemetry: true\n  episodes: 6", "steps: 100000", "telemetry: true, steps: " + test.steps, "at_least: 300", limit}
				return written(t, test.features, append(replaced, test.library...)...)
			}
			dir := project("at_least: " + test.least)
			work := filepath.Join(dir, "work")
			if out, err := stage(t, dir, "train", work, server.URL); err != nil {
				t.Fatalf("train: %v\n%s", err, out)
			}
			if out, err := stage(t, dir, "evaluate", work, server.URL); err != nil {
				t.Errorf("evaluate: %v\n%s", err, out)
			}
			report, err := os.ReadFile(filepath.Join(work, "evaluation.json"))
			version, missing := os.ReadFile(filepath.Join(work, "version"))
			if err != nil || missing != nil || !strings.Contains(string(report), `"version": "`+strings.TrimSpace(string(version))+`"`) {
				t.Errorf("%v, %v: version %s\n%s", err, missing, version, report)
			}
			t.Logf("%s", strings.Join(strings.Fields(string(report)), " "))
			for _, policy := range []string{`"cartpole"`, `"cartpole-training"`} {
				if !strings.Contains(service.text.String(), policy) {
					t.Errorf("no telemetry of the policy %s", policy)
				}
			}
			if test.library != nil {
				return
			}
			out, err := stage(t, project("at_most: 5"), "evaluate", work, server.URL) // a pole does not fall that soon
			if err == nil || !strings.Contains(out, "return in CartPole-v1 in lab: ") {
				t.Errorf("a broken constraint: %v\n%s", err, out)
			}
		})
	}
}

// written writes the files of a pipeline, with the function features if it is given, and returns their directory.
func written(t *testing.T, features string, replaced ...string) string {
	t.Helper()
	dir := t.TempDir()
	files := newFiles(mustRun(t, replaced...).Artefacts)
	for i := range files {
		if files[i].Path == "pipeline/world.py" && features != "" {
			var err error
			if files[i].After, err = keep.WithPart(files[i].After, "features", features); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Write(files, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// stage runs a stage of a pipeline with one thread per process, because more would wait for each other.
func stage(t *testing.T, dir, name, work, url string) (string, error) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "pipeline", "stages", name+".sh"))
	cmd.Env = append(os.Environ(), "PATH="+absolute(t, "../../.cache/venv-agents/bin")+":"+os.Getenv("PATH"), "WORK="+work,
		"PYTHONPATH="+absolute(t, "../../ingest/emitters/python"), "REWARDWATCH_URL="+url, "OMP_NUM_THREADS=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The generated scripts of each library run in environments with Discrete and Tuple spaces, whose actions are used as
// dictionary keys.
func TestGeneratedTrainingRunsInTabularEnvironments(t *testing.T) {
	for name, library := range map[string][]string{"Stable-Baselines3": nil, "CleanRL": cleanRL, "RLlib": rllib} {
		for _, id := range []string{"FrozenLake-v1", "Taxi-v3", "Blackjack-v1"} {
			t.Run(name+" "+id, func(t *testing.T) {
				dir := written(t, "", append([]string{
					"id: CartPole-v1", "id: " + id, "simulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n", "",
					"steps: 100000", "steps: 300", "telemetry: true\n", "telemetry: false\n  episodes: 2\n", "gate: {within: 4h, every: 5m}", "gate: {skip: true}", "at_least: 300", "at_least: -3000",
				}, library...)...)
				work := filepath.Join(dir, "work")
				for _, name := range []string{"train", "evaluate"} {
					if out, err := stage(t, dir, name, work, "http://127.0.0.1:1"); err != nil {
						t.Fatalf("%s: %v\n%s", name, err, out)
					}
				}
			})
		}
	}
}
