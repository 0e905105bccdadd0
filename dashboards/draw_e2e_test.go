//go:build e2e

package dashboards

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
)

// drawnGolden contains the texts that Grafana shows for the demo, without numbers and times.
const drawnGolden = "testdata/drawn.txt"

// sketch is a panel with everything that Grafana knows when it draws it.
type sketch struct {
	Where     string                     `json:"where"`
	Panel     json.RawMessage            `json:"panel"`
	Answers   map[string]json.RawMessage `json:"answers"` // by the reference ID of the query
	Variables map[string]string          `json:"variables"`
	Range     struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"range"`
}

// drawing is what Grafana shows in a panel.
type drawing struct {
	Where    string
	Columns  [][2]string // name and type
	Widths   []int       // of columns; 0 if none is set
	Leasts   []int       // minimum widths of the others
	Rows     [][]string
	Links    []string
	Problems []string

	Series []drawnSeries // of a time series, a state timeline or a heat map
	Axis   []float64     // ends of the y axis of a time series
	Legend [][2]string   // texts and colors of a state timeline
	Reds   []string      // colors of a heat map at 1 and beyond, in both themes

	panel panel
}

// drawnSeries is a series as shown in the legend.
type drawnSeries struct {
	Name, Color, Mode string
	Dashed, InLegend  bool
}

// drawnAsExpected draws every panel with Grafana's own field logic, and compares the texts of tables, bar charts and
// stats. Every link must lead to a policy that exists. A scrape that is missed on a busy machine can leave panels empty
// for a moment.
func drawnAsExpected(t *testing.T, p prometheusServer, begin time.Time) {
	late := time.Now().Add(patience / 3)
	settled := time.Now().Add(10 * time.Second) // every panel has seen the last version
	for {
		got := drawn(t, p, begin)
		if *update && time.Now().After(settled) {
			writeDrawn(t, got)
		}
		want := string(read(t, drawnGolden))
		if got == want || t.Failed() {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("Grafana would show other texts than %s; run `go test -tags e2e ./dashboards -run DashboardsOfTheDemo -update` and look at the difference.\nonly shown:\n%s\nonly wanted:\n%s",
				drawnGolden, onlyIn(got, want), onlyIn(want, got))
		}
		time.Sleep(2 * time.Second)
	}
}

// drawn returns the texts of all panels, and reports texts without meaning and broken links.
func drawn(t *testing.T, p prometheusServer, begin time.Time) string {
	t.Helper()
	sketches := sketches(t, p, begin, time.Now())
	groups := p.groups(t)
	links := 0
	var texts strings.Builder
	for i, d := range draw(t, sketches) {
		for _, problem := range slices.Concat(d.problems(), d.unreadable()) {
			t.Errorf("%s: %s", d.Where, problem)
		}
		links += len(d.Links)
		for _, link := range d.Links {
			problem := badLink(link, groups)
			if strings.HasPrefix(link, p.console(t)+"/") {
				problem = badPage(t, link)
			}
			if problem != "" {
				t.Errorf("%s: %s: %s", d.Where, link, problem)
			}
		}
		if signal := sketches[i].Variables["signal"]; signal == "" || signal == "return" { // the tables of the others look alike
			texts.WriteString(d.masked())
		}
	}
	if links == 0 {
		t.Error("no panel leads anywhere")
	}
	return texts.String()
}

func writeDrawn(t *testing.T, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(drawnGolden), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(drawnGolden, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// onlyIn returns the lines of a text that another one lacks.
func onlyIn(text, other string) string {
	lines := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return slices.Contains(lines, l) }), "\n")
}

// sketches returns the results of every panel's queries, for every policy and signal that the dashboards offer.
func sketches(t *testing.T, p prometheusServer, begin, now time.Time) (all []sketch) {
	t.Helper()
	dashboards := build(t, DefaultOptions())
	for _, page := range pages() {
		file := page.file()
		for _, v := range p.variables(t, file) {
			all = append(all, p.sketches(t, dashboards[file], file, v, begin, now)...)
		}
	}
	return all
}

// sketches returns the results of every panel of a dashboard, with the selected variables.
func (p prometheusServer) sketches(t *testing.T, m model, file string, v choice, begin, now time.Time) (all []sketch) {
	t.Helper()
	console := p.console(t)
	fill := p.replacer(v, now.Sub(begin))
	for i, panel := range m.Panels {
		s := sketch{
			Where: strings.TrimSpace(file + ": " + fill.Replace(panel.Title)), Panel: m.raw[i],
			Variables: v.inLinks(console), Answers: map[string]json.RawMessage{},
		}
		if v.signal != "" {
			s.Where += " (" + v.signal + ")"
		}
		s.Range.From, s.Range.To = "now-6h", "now"
		asked, from := p, begin
		if panel.Interval != "" {
			asked.step = strconv.Itoa(int(p.barStep.Seconds()))
			from = now.Add(-now.Sub(begin).Truncate(p.barStep)) // ends now, where there is data even early
		}
		for j, target := range panel.Targets {
			s.Answers[refID(j)] = asked.ask(t, fill.Replace(target.Expr), target.Instant, from, now)
		}
		if len(s.Answers) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// draw runs draw.cjs, whose packages `make grafana-data` has installed.
func draw(t *testing.T, sketches []sketch) (drawings []drawing) {
	t.Helper()
	modules, err := filepath.Abs("../.cache/grafana-data/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("%v: `make grafana-data` installs it", err)
	}
	input, err := json.Marshal(sketches)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("node", "draw/draw.cjs")
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("draw.cjs: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &drawings); err != nil {
		t.Fatalf("draw.cjs: %v\n%s", err, out)
	}
	if len(drawings) != len(sketches) {
		t.Fatalf("%d of %d panels were drawn", len(drawings), len(sketches))
	}
	for i := range drawings {
		if err := json.Unmarshal(sketches[i].Panel, &drawings[i].panel); err != nil {
			t.Fatal(err)
		}
	}
	return drawings
}

// wrong matches what Grafana shows if it could not interpret a value.
var wrong = regexp.MustCompile(`NaN|Invalid date|undefined|null|Infinity|2001-|1970-`)

// problems returns the texts without meaning.
func (d drawing) problems() []string {
	found := slices.Clone(d.Problems)
	for _, row := range d.Rows {
		for i, text := range row {
			if wrong.MatchString(text) {
				found = append(found, fmt.Sprintf("%q in column %d of %v", text, i, d.Columns))
			}
		}
	}
	return found
}

// masked returns what the drawing shows, without what differs between runs.
func (d drawing) masked() string {
	if !slices.Contains([]string{"stat", "table", "barchart"}, d.panel.Type) {
		return d.maskedSeries()
	}
	if len(d.Rows) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", d.Where)
	var names []string
	for _, c := range d.Columns {
		names = append(names, c[0])
	}
	fmt.Fprintf(&out, "  %s\n", strings.Join(names, " | "))
	var lines []string
	for _, row := range d.Rows {
		var cells []string
		for i, text := range row {
			cells = append(cells, maskedCell(text, i < len(d.Columns) && d.Columns[i][1] != "string"))
		}
		lines = append(lines, "  "+strings.Join(cells, " | ")+"\n")
	}
	if d.panel.Title == "Signal changes" || d.panel.Title == "Decisions and retraining" { // sorted by scores and times, which differ between runs
		slices.Sort(lines)
	}
	return out.String() + strings.Join(lines, "")
}

var (
	aTime   = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(a few seconds|an? \w+|\d+ \w+) ago)$`)
	aNumber = regexp.MustCompile(`^-?\d[\d.,]*( (K|Mil|ms|s|mins?|hours?))?`)
	anID    = regexp.MustCompile(`^(rr_)?[0-9a-f]{16,}$`)
)

func maskedCell(text string, number bool) string {
	switch {
	case !number:
		return anID.ReplaceAllString(text, "<id>")
	case aTime.MatchString(text):
		return "<time>"
	default:
		return aNumber.ReplaceAllString(text, "#")
	}
}

// badLink returns what is wrong with a link whose variables are filled in: it must lead to a dashboard, with the time
// range, and name an existing group.
func badLink(link string, groups []map[string]string) string {
	u, err := url.Parse(link)
	if err != nil {
		return "is no URL"
	}
	if !slices.ContainsFunc(pages(), func(p page) bool { return u.Path == "/d/"+p.uid }) {
		return "leads to no dashboard"
	}
	query := u.Query()
	if query.Get("from") != "now-6h" || query.Get("to") != "now" {
		return "loses the time range"
	}
	if !slices.ContainsFunc(groups, func(g map[string]string) bool {
		return query.Get("var-policy") == g["policy"] && (!query.Has("var-env") || query.Get("var-env") == g["env"])
	}) {
		return "names no group that exists"
	}
	if !slices.Equal(query["var-job"], []string{"$__all"}) || query.Get("var-datasource") != "prometheus" {
		return "loses the data source or the job"
	}
	return ""
}

// badPage requests the page that a link leads to from the console, and returns what is wrong with it.
func badPage(t *testing.T, link string) string {
	t.Helper()
	resp, err := http.Get(link)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "leads to " + resp.Status
	}
	return ""
}

// console returns the address of the console, as the dashboards find it.
func (p prometheusServer) console(t *testing.T) string {
	t.Helper()
	var urls []string
	p.get(t, "label/url/values", url.Values{"match[]": {names.MetricConsole}}, &urls)
	if len(urls) != 1 {
		t.Fatalf("the console is at %q", urls)
	}
	return urls[0]
}

// choice holds the selected variables of a dashboard.
type choice struct{ policy, signal string }

// variables returns the choices to view: each policy and signal if a dashboard shows one, otherwise everything.
func (p prometheusServer) variables(t *testing.T, file string) (all []choice) {
	t.Helper()
	if file != "policy.json" {
		return []choice{{}}
	}
	for i, policy := range p.labels(t, "policy") {
		if p.policies > 0 && i >= p.policies {
			break
		}
		for _, signal := range p.labels(t, "signal") {
			all = append(all, choice{policy, signal})
		}
	}
	return all
}

// replacer returns a replacer of the variables in queries and titles.
func (p prometheusServer) replacer(c choice, shown time.Duration) *strings.Replacer {
	return strings.NewReplacer("$__rate_interval", p.rateInterval, "$__range", fmt.Sprintf("%ds", int(shown.Seconds())),
		"$job", ".+", "$policy", cmp.Or(c.policy, ".+"), "$env", ".*", "$signal", c.signal)
}

// inLinks returns the values of the variables in links.
func (c choice) inLinks(console string) map[string]string {
	return map[string]string{
		"console":    console,
		"datasource": "prometheus", "job": "$__all", "env": "$__all", "policy": cmp.Or(c.policy, "$__all"), "signal": c.signal,
	}
}

// groups returns the labels of the groups that have a state.
func (p prometheusServer) groups(t *testing.T) (groups []map[string]string) {
	t.Helper()
	var answer struct {
		Result []struct{ Metric map[string]string }
	}
	p.get(t, "query", url.Values{"query": {"count by (policy, env) (rewardwatch_stream_state)"}}, &answer)
	for _, r := range answer.Result {
		groups = append(groups, r.Metric)
	}
	if len(groups) == 0 {
		t.Fatal("no group has a state")
	}
	return groups
}

// ask returns the answer to a query in the form of Prometheus's API.
func (p prometheusServer) ask(t *testing.T, expr string, instant bool, begin, end time.Time) (answer json.RawMessage) {
	t.Helper()
	if instant {
		p.get(t, "query", url.Values{"query": {expr}, "time": {unix(end)}}, &answer)
		return answer
	}
	p.get(t, "query_range", url.Values{"query": {expr}, "start": {unix(begin)}, "end": {unix(end)}, "step": {p.step}}, &answer)
	return answer
}
