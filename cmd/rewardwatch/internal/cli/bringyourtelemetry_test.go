package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

const (
	docsDir = "../../../../docs"
	ownPage = "bring-your-telemetry.md"
)

// Every command of docs/bring-your-telemetry.md is run and prints what the page shows, and every configuration is
// valid. Other tests run the same verbs under the race detector, where this one takes minutes.
func TestSimBringYourTelemetry(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	path, err := filepath.Abs(filepath.Join(docsDir, ownPage))
	if err != nil {
		t.Fatal(err)
	}
	page := testkit.Read(t, path)
	useExamples(t)
	configs := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(page, -1)
	for _, c := range configs {
		if out, _, code := commandLine(t, "validate", testkit.WriteConfig(t, c[1])); code != exitFine {
			t.Errorf("exit %d, %s\n%s", code, out, c[1])
		}
	}
	if len(configs) < 5 {
		t.Errorf("checked %d configurations", len(configs))
	}
	writeRuns(t)
	w := newWorld(t)
	broker := startBroker(t, 1)
	produceTo(t, broker, w.topicsOfThePage(t))
	service := startService(t, testkit.WriteConfig(t, configOfTheLog(t, configs)+`http: {listen: "127.0.0.1:0"}`))
	testkit.SameAsFile(t, path, runPage(t, page, "kafka-1:9092", broker, "http://registry:8081", w.registry.URL, "127.0.0.1:9464", service.address))
	service.interrupt(t)
}

// configOfTheLog returns the first configuration without Kafka.
func configOfTheLog(t *testing.T, configs [][]string) string {
	t.Helper()
	for _, c := range configs {
		if strings.HasPrefix(c[1], "ingest: {log:") {
			return c[1]
		}
	}
	t.Fatal("the page has no configuration without Kafka")
	return ""
}

// The page is the second one, after getting started.
func TestDocsLeadToTheTelemetry(t *testing.T) {
	for file, link := range map[string]string{"../README.md": "(docs/" + ownPage + ")", "getting-started.md": "(" + ownPage + ")", "telemetry.md": "(" + ownPage + ")"} {
		if !strings.Contains(testkit.Read(t, filepath.Join(docsDir, file)), link) {
			t.Errorf("%s does not lead to the page", file)
		}
	}
}

// writeRuns writes the monitor.csv files of a run with two parallel environments.
func writeRuns(t *testing.T) {
	t.Helper()
	dir := filepath.Join("runs", "lander_1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for env := range 2 {
		var b strings.Builder
		b.WriteString(`#{"t_start": 1793520000.0, "env_id": "LunarLander-v3"}` + "\nr,l,t\n")
		for i := range 400 {
			fmt.Fprintf(&b, "%d,%d,%d\n", 180+(i*37+env*11)%60, 150+i*53%70, 30*i+7*env)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(env, ".monitor.csv")), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// topicsOfThePage returns decisions in JSON, those of the example, and routes in Avro.
func (w *world) topicsOfThePage(t *testing.T) (all []message) {
	t.Helper()
	const schema = `{"type":"record","name":"Route","fields":[{"name":"servedAt","type":{"type":"long","logicalType":"timestamp-millis"}},
		{"name":"model","type":"string"},{"name":"tool","type":"string"},{"name":"score","type":"double"}]}`
	shell(t, filepath.Join("docs", "examples", "late-clicks"), "python3 make.py")
	decisions := testkit.Read(t, filepath.Join("docs", "examples", "late-clicks", "decisions.ndjson"))
	for line := range strings.Lines(decisions) {
		var shown struct {
			At int64 `json:"shown_at_ms"`
		}
		if err := json.Unmarshal([]byte(line), &shown); err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(shown.At)
		all = append(all, message{topic: "decisions", at: at, value: []byte(line)}, message{topic: "routes", at: at, value: w.framed("Route", schema, object{
			"servedAt": at, "model": "router", "tool": []string{"search", "answer"}[len(all)/2%2], "score": float64(len(all)%10) / 10,
		})})
	}
	return all
}
