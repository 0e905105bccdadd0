package pipelines

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The model answers all questions with a paragraph: the function of features fails, and is shown with the reason, while
// the rest becomes a diff and, once accepted, files.
func TestFillShowsWhatAcceptWrites(t *testing.T) {
	const text = "The agent balances a pole."
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		content, _ := json.Marshal(map[string]string{"text": text})
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"content": string(content)}}}})
	}))
	defer server.Close()
	file, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "pipeline.yaml")
	if err := os.WriteFile(own, append(file, "model: {url: \""+server.URL+"\", name: small}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "generate", "-o", dir, own)
	out, err := verb(t, "fill", "-o", dir, own)
	if err == nil || !strings.Contains(err.Error(), "pipeline/world.py:") || calls != 5 {
		t.Errorf("%v after %d calls", err, calls)
	}
	for _, want := range []string{
		"description     pipeline/MODEL_CARD.md  proposed  0", "features        pipeline/world.py       failed    2",
		"features: response 1: it must be Starlark, a subset of Python: line 1: ", "+++ b/pipeline/MODEL_CARD.md", "+" + text, "+    # " + text,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	card := filepath.Join(dir, "pipeline", "MODEL_CARD.md")
	if before, _ := os.ReadFile(card); strings.Contains(string(before), text) {
		t.Errorf("fill wrote the model card:\n%s", before)
	}
	out, err = verb(t, "accept", "-o", dir, own)
	if after, _ := os.ReadFile(card); !strings.Contains(string(after), "keep description -->\n"+text+"\n<!--") || err == nil || !strings.Contains(out, "+"+text) {
		t.Errorf("%v\n%s\n%s", err, out, after)
	}
	if out := mustRun(t, "generate", "-o", dir, own); strings.Contains(out, "changed") || calls != 5 {
		t.Errorf("%d calls\n%s", calls, out)
	}
	if _, err := verb(t, "fill", "-o", dir, example); err == nil || !strings.Contains(err.Error(), "model.url: must be set to use fill") {
		t.Errorf("%v", err)
	}
}
