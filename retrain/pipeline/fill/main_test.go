package fill

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Correct answers.
const (
	goodProse    = "The agent balances a pole on a cart, and is judged by the mean return of its episodes."
	goodRemark   = "A potential on the pole's angle would suit, because it leaves the best policy as it is; too large a weight hides the task's own reward."
	goodFunction = `def features(observation):
    """Angles as sines and cosines."""
    x, v = observation[0], observation[1]
    parts = [numpy.sin(a) for a in observation[2:]]
    if abs(x) > 2.4 or not numpy.isfinite(v):  # outside of the track
        parts = [0.0 for _ in parts]
    for p in parts:
        if p > 1:
            break
    return numpy.clip(numpy.array([x, v] + parts, dtype=numpy.float32), -10.0, 10.0)
`
)

// service is a fake endpoint that records its requests.
type service struct {
	*httptest.Server
	mu      sync.Mutex
	bodies  []string
	headers []http.Header
}

// newService returns an endpoint that answers each request with the function, depending on the requested hole.
func newService(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, hole string, call int)) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.bodies, s.headers = append(s.bodies, string(body)), append(s.headers, r.Header.Clone())
		call := len(s.bodies)
		s.mu.Unlock()
		answer(w, r, holeOf(t, body), call)
	}))
	t.Cleanup(s.Close)
	return s
}

// calls returns the number of requests. The handler of a cut connection may still run when the client continues.
func (s *service) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// holeOf returns the hole that a request is for.
func holeOf(t *testing.T, body []byte) string {
	t.Helper()
	var request struct{ Messages []message }
	if err := json.Unmarshal(body, &request); err != nil || len(request.Messages) < 2 {
		t.Errorf("%v\n%s", err, body)
		return ""
	}
	for _, h := range Holes() {
		var asked struct{ Task string }
		if err := json.Unmarshal([]byte(request.Messages[1].Content), &asked); err == nil && asked.Task == h.ask {
			return h.Name
		}
	}
	t.Errorf("nothing is asked for in %s", body)
	return ""
}

// say responds with a chat completion.
func say(w http.ResponseWriter, text string) {
	object, _ := json.Marshal(map[string]string{"text": text})
	sayRaw(w, string(object))
}

func sayRaw(w http.ResponseWriter, content string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message{"assistant", content}}}})
}

// right answers every request correctly.
func right(w http.ResponseWriter, _ *http.Request, hole string, _ int) {
	say(w, map[string]string{"description": goodProse, "features": goodFunction, "reward-shaping": goodRemark}[hole])
}

// secretKey is the API key of the endpoint.
const secretKey = "sk-test-0123456789"

// generated returns a pipeline whose files are written to a directory, with an endpoint and further lines in its model
// section.
func generated(t *testing.T, url, more string) (w *pipeline.Work, dir string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/examples/pipeline/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	file := filepath.Join(dir, "pipeline.yaml")
	own := strings.TrimSuffix(string(text), "\n") + "\nmodel:\n  url: " + url + "\n  name: small-1\n  key_file: key\n" + more
	for name, text := range map[string]string{"pipeline.yaml": own, "key": secretKey + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if w, err = pipeline.Run(file, "", pipeline.Options{}); err != nil {
		t.Fatal(err)
	}
	changes, err := pipeline.Changes(w, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Write(changes, dir); err != nil {
		t.Fatal(err)
	}
	return w, dir
}

// states returns the state of each hole, as one text.
func states(outcomes []Outcome) string {
	var out []string
	for _, o := range outcomes {
		out = append(out, o.Hole+" "+string(o.State))
	}
	return strings.Join(out, ", ")
}
