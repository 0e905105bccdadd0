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
)

// received is the telemetry that a service gets.
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
	_, _ = io.WriteString(w, "{}\n")
}

// The generated training and evaluation of each library run: PPO learns to balance the pole while gravity varies, the
// evaluation keeps one constraint and breaks another, and both send their episodes.
func TestGeneratedTrainingRuns(t *testing.T) {
	venv, err := filepath.Abs("../../.cache/venv-agents/bin")
	if err != nil {
		t.Fatal(err)
	}
	emitter, err := filepath.Abs("../../ingest/emitters/python")
	if err != nil {
		t.Fatal(err)
	}
	const small = "telemetry: true\n  episodes: 3"
	for name, test := range map[string]struct {
		library  []string
		steps    string
		least    string
		fails    bool
		features string
	}{
		"kept":    {nil, "4000", "20", false, ""},
		"broken":  {nil, "4000", "501", true, ""}, // an episode has at most 500 steps
		"CleanRL": {cleanRL, "20000", "60", false, "def features(observation):\n    return numpy.append(observation, numpy.sin(observation[2]))\n"},
		"RLlib":   {rllib, "4000", "20", false, ""},
		"DQN":     {append([]string{"name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}", "name: DQN\n  hyperparameters: {lr: 5e-4}"}, rllibOf...), "2000", "1", false, ""},
		"IMPALA":  {append([]string{"name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}", "name: IMPALA\n  hyperparameters: {lr: 5e-4}"}, rllibOf...), "4000", "1", false, ""},
		"APPO":    {append([]string{"name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}", "name: APPO\n  hyperparameters: {lr: 5e-4}"}, rllibOf...), "4000", "1", false, ""},
	} {
		service := &received{}
		server := httptest.NewServer(service)
		defer server.Close()
		replaced := append([]string{"telemetry: true", small, "steps: 100000", "telemetry: true, steps: " + test.steps, "at_least: 300", "at_least: " + test.least}, test.library...)
		w, dir := mustRun(t, replaced...), t.TempDir()
		files := newFiles(w.Artefacts)
		for i := range files {
			if files[i].Path == "pipeline/world.py" && test.features != "" {
				if files[i].After, err = WithPart(files[i].After, "features", test.features); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := Write(files, dir); err != nil {
			t.Fatal(err)
		}
		stage := func(name string) (string, error) {
			cmd := exec.Command(filepath.Join(dir, "pipeline", "stages", name+".sh"))
			cmd.Env = append(os.Environ(), "PATH="+venv+":"+os.Getenv("PATH"), "WORK="+filepath.Join(dir, "work"), "VERSION=v2",
				"PYTHONPATH="+emitter, "REWARDWATCH_URL="+server.URL)
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := stage("train"); err != nil {
			t.Fatalf("%s: train: %v\n%s", name, err, out)
		}
		out, err := stage("evaluate")
		if (err != nil) != test.fails || test.fails && !strings.Contains(out, "return in CartPole-v1: ") {
			t.Errorf("%s: evaluate: %v\n%s", name, err, out)
		}
		report, err := os.ReadFile(filepath.Join(dir, "work", "evaluation.json"))
		if err != nil || !strings.Contains(string(report), `"version": "v2"`) {
			t.Errorf("%s: %v\n%s", name, err, report)
		}
		t.Logf("%s: %s", name, strings.Join(strings.Fields(string(report)), " "))
		for _, policy := range []string{`"cartpole"`, `"cartpole-training"`} {
			if !strings.Contains(service.text.String(), policy) {
				t.Errorf("%s: no telemetry of the policy %s", name, policy)
			}
		}
	}
}
