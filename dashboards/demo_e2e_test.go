//go:build e2e

package dashboards

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// The values of Grafana's own variables in the test, with a scrape every second.
const (
	demoScrape       = "1s"
	demoRateInterval = "5s"
)

// patience is how long the demo, and then Prometheus, may take. The tests share the machine with others.
const patience = 3 * time.Minute

// TestE2EDashboardsOfTheDemo sends every query of every panel, variable and annotation to a real Prometheus that
// scrapes the demo, as Grafana would.
func TestE2EDashboardsOfTheDemo(t *testing.T) {
	d := startDemo(t)
	begin := time.Now()
	prometheus := startPrometheus(t, d.address)
	d.retrains(t)
	t.Run("NothingIsEmpty", func(t *testing.T) { nothingIsEmpty(t, prometheus, begin) })
	t.Run("Drawn", func(t *testing.T) { drawnAsExpected(t, prometheus, begin) })
	for _, n := range []int{8, 40} {
		t.Run(fmt.Sprintf("DrawnFor%dPolicies", n), func(t *testing.T) { drawnForMany(t, prometheus, n) })
	}
	t.Run("MuteEndsBelowItsMute", func(t *testing.T) { muteEndsBelowItsMute(t, d, prometheus, begin) })
}

// muteEndsBelowItsMute mutes the incident. The end of the mute, which is in the future, must not be listed as the last
// action.
func muteEndsBelowItsMute(t *testing.T, d *demo, p prometheusServer, begin time.Time) {
	var incidents []string
	p.get(t, "label/incident/values", url.Values{"match[]": {alerts.MetricIncidentOnset}}, &incidents)
	if len(incidents) != 1 {
		t.Fatalf("incidents %q, want 1", incidents)
	}
	d.post(t, "incidents/"+incidents[0]+"/mute", `{"by": "bob", "why": "a load test", "for": "4h"}`)
	late := time.Now().Add(patience)
	for {
		muted := p.panelOf(t, "policy.json", "Decisions and retraining", begin)
		var done []string
		for _, row := range muted.Rows {
			done = append(done, strings.Join(row[1:], " by "))
		}
		if len(done) >= 6 && done[0] == "Muted by bob" && done[1] == "Muted until by bob" && !strings.Contains(strings.Join(done[2:], " "), "Muted") && muted.Rows[0][0] != muted.Rows[1][0] {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%q at %v, want the mute on top, and then its end", done, muted.Rows)
		}
		time.Sleep(time.Second)
	}
}

// panelOf returns the drawing of one panel of a dashboard.
func (p prometheusServer) panelOf(t *testing.T, file, title string, begin time.Time) drawing {
	t.Helper()
	m := build(t, DefaultOptions())[file]
	at := slices.IndexFunc(m.Panels, func(one panel) bool { return one.Title == title })
	m.Panels, m.raw = m.Panels[at:at+1], m.raw[at:at+1]
	return draw(t, p.sketches(t, m, file, p.variables(t, file)[0], begin, time.Now()))[0]
}

// nothingIsEmpty fails the test with the queries that show "No data".
func nothingIsEmpty(t *testing.T, prometheus prometheusServer, begin time.Time) {
	late := time.Now().Add(patience)
	for {
		questions := questionsOf(t, prometheus, time.Since(begin))
		// The demo logs no probabilities: without support, an estimate has no series, and is not drawn as 0. Its
		// retraining has no outcome either, and it has no tenants. The fleets derived from the demo have all of these.
		questions = slices.DeleteFunc(questions, func(q question) bool {
			return strings.Contains(q.expr, "rewardwatch_off_policy_") || strings.Contains(q.expr, "rewardwatch_progress_") || strings.Contains(q.expr, retrain.MetricLastObserved) || strings.Contains(q.expr, "rewardwatch_tenant_")
		})
		empty := prometheus.empty(t, questions, begin)
		if len(empty) == 0 {
			t.Logf("%d queries have data", len(questions))
			return
		}
		if time.Now().After(late) || time.Since(begin) > time.Minute && len(empty) > 20 {
			t.Fatalf("%d of %d queries show no data:\n%s", len(empty), len(questions), strings.Join(empty, "\n"))
		}
		time.Sleep(2 * time.Second)
	}
}

// question is one query, with its variables filled in.
type question struct {
	where, expr string
	instant     bool
}

// questionsOf returns the queries of the dashboards with their variables filled in as for a person who opens them in
// the demo and views one signal after the other.
func questionsOf(t *testing.T, p prometheusServer, shown time.Duration) (all []question) {
	t.Helper()
	for file, d := range build(t, DefaultOptions()) {
		for _, c := range p.variables(t, file) {
			all = append(all, d.questions(file, c.signal, p.replacer(c, shown))...)
		}
	}
	return all
}

func (m model) questions(file, signal string, fill *strings.Replacer) (all []question) {
	for _, p := range m.Panels {
		for i, target := range p.Targets {
			where := fmt.Sprintf("%s: %s %s %s", file, fill.Replace(p.Title), refID(i), signal)
			all = append(all, question{where, fill.Replace(unfiltered(target.Expr)), target.Instant})
		}
	}
	for _, a := range m.Annotations.List {
		all = append(all, question{file + ": annotation " + a.Name, fill.Replace(a.Expr), false})
	}
	for _, v := range m.Templating.List[1:] {
		all = append(all, question{file + ": variable " + v.Name, fill.Replace(v.metric()), true})
	}
	return all
}

// unfiltered returns an expression without the filter that removes what is 0, or in another state, from a panel: with a
// healthy service, the panel shows nothing, but the filtered series must exist.
func unfiltered(expr string) string {
	expr = strings.TrimSuffix(expr, " > 0")
	if strings.Contains(expr, "@ end()") {
		expr, _, _ = strings.Cut(expr, " and on (")
		expr, _, _ = strings.Cut(expr, " unless on (")
	}
	return expr
}

// prometheusServer is a real Prometheus.
type prometheusServer struct {
	url                string
	rateInterval, step string
	barStep            time.Duration // of panels with their own minimum interval, whose bars do not overlap
	policies           int           // number of policies to view one by one; 0 for all
}

// startPrometheus starts a Prometheus that scrapes the demo every second.
func startPrometheus(t *testing.T, demo string) prometheusServer {
	t.Helper()
	return runPrometheus(t, t.TempDir(), fmt.Sprintf(
		"scrape_configs:\n  - {job_name: rewardwatch, scrape_interval: %s, scrape_timeout: %[1]s, static_configs: [{targets: [%q]}]}\n", demoScrape, demo))
}

// runPrometheus starts Prometheus on a directory, which may contain data, until the test ends.
func runPrometheus(t *testing.T, dir, text string) prometheusServer {
	t.Helper()
	port := deploytest.FreePorts(t, 1)[0]
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(verb string) {
		cmd := exec.Command("../deploy/local/prometheus.sh", verb)
		cmd.Env = append(os.Environ(), "PROMETHEUS_DIR="+dir, "PROMETHEUS_PORT="+port, "PROMETHEUS_CONFIG="+config)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("prometheus.sh %s: %v\n%s", verb, err, out)
		}
	}
	run("start")
	t.Cleanup(func() { run("stop") })
	return prometheusServer{url: "http://127.0.0.1:" + port + "/api/v1/", rateInterval: demoRateInterval, step: "1", barStep: 4 * time.Second}
}

// labels returns the values of a label of the displayed distributions.
func (p prometheusServer) labels(t *testing.T, name string) (values []string) {
	t.Helper()
	p.get(t, "label/"+name+"/values", url.Values{"match[]": {"rewardwatch_signal_mean"}}, &values)
	if len(values) == 0 {
		t.Fatalf("no %s has a distribution", name)
	}
	return values
}

// empty returns the questions without an answer, or with the answer NaN.
func (p prometheusServer) empty(t *testing.T, questions []question, begin time.Time) (empty []string) {
	t.Helper()
	now := time.Now()
	for _, q := range questions {
		var answer struct {
			Result []struct {
				Value  [2]any
				Values [][2]any
			}
		}
		if err := json.Unmarshal(p.ask(t, q.expr, q.instant, begin, now), &answer); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(answer.Result, func(r struct {
			Value  [2]any
			Values [][2]any
		},
		) bool {
			return slices.ContainsFunc(append(r.Values, r.Value), func(v [2]any) bool { return v[1] != nil && v[1] != "NaN" })
		}) {
			empty = append(empty, q.where+": "+q.expr)
		}
	}
	return empty
}

func unix(at time.Time) string { return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64) }

func (p prometheusServer) get(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	resp, err := http.Get(p.url + path + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Status string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v: %s", query, err, body)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		t.Fatalf("%s: %v: %s", query, err, body)
	}
}

// demo is `rewardwatch demo --keep`.
type demo struct {
	address string
	said    chan string // lines of its output
}

// startDemo builds the demo and runs it until the test ends. It returns when the demo prints the address of its
// metrics.
func startDemo(t *testing.T) *demo {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "rewardwatch")
	build := exec.Command("go", "build", "-o", filepath.Dir(binary)+"/", "../cmd/rewardwatch", "../cmd/rewardwatch-demo-broker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build rewardwatch: %v\n%s", err, out)
	}
	cmd := exec.Command(binary, "demo", "--keep", "--training", "1h") // so that the retraining is in progress in the pictures
	story, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &demo{said: make(chan string, 100)}
	go func() {
		defer close(d.said)
		lines := bufio.NewScanner(story)
		for lines.Scan() {
			d.said <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		for range d.said { // to its end, or Wait would cut it off
		}
		_ = cmd.Wait() // an interrupted demo may have an exit code
	})
	line := d.await(t, "Open ")
	found := regexp.MustCompile(`metrics: http://([^/]+)/metrics`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("the demo does not say where its metrics are: %s", line)
	}
	d.address = found[1]
	return d
}

// await returns the next line of the output with a prefix.
func (d *demo) await(t *testing.T, prefix string) string {
	t.Helper()
	late := time.After(patience)
	var before []string
	for {
		select {
		case line, ok := <-d.said:
			if !ok {
				t.Fatalf("the demo has ended before %q:\n%s", prefix, strings.Join(before, "\n"))
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
			before = append(before, line)
		case <-late:
			t.Fatalf("the demo did not come to %q:\n%s", prefix, strings.Join(before, "\n"))
		}
	}
}

// post sends an order to the demo.
func (d *demo) post(t *testing.T, path, order string) {
	t.Helper()
	resp, err := http.Post("http://"+d.address+"/api/v1/"+path, "application/json", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s is answered with %s: %s", path, resp.Status, body)
	}
}

// retrains waits for the drift, and approves the retraining that it leads to.
func (d *demo) retrains(t *testing.T) {
	t.Helper()
	line := d.await(t, "The retrain request ")
	id := strings.Fields(line)[3]
	d.post(t, "retrain-requests/"+id+"/approve", `{"by": "ann", "why": "the customers have changed"}`)
	if line := d.await(t, "The webhook receiver received "); !strings.Contains(line, id) {
		t.Fatalf("%s is approved, but %q", id, line)
	}
}
