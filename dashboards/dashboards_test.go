package dashboards

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

var update = flag.Bool("update", false, "rewrite the dashboards under deploy/grafana")

// golden is where the dashboards that are delivered ready-made stand.
const golden = "../deploy/grafana/dashboards"

func TestDeliveredDashboardsAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if *update {
		dir = golden
	}
	files, err := Write(dir, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		file = filepath.Base(file)
		got, want := read(t, filepath.Join(dir, file)), read(t, filepath.Join(golden, file))
		if string(got) != string(want) {
			t.Errorf("%s differs from the one in %s; run `go test ./dashboards -update` and look at the difference", file, golden)
		}
	}
}

func TestWriteNamesWhatItCouldNotDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Write(filepath.Join(file, "sub"), DefaultOptions())
	if err == nil || !strings.Contains(err.Error(), "directory of the dashboards") {
		t.Errorf("Write below a file: %v", err)
	}
}

func TestGroupLabelsBecomeVariablesAndMatchers(t *testing.T) {
	for _, test := range []struct {
		name      string
		groupBy   []string
		variables []string
		selector  string
	}{
		{"by env", []string{"env"}, []string{"datasource", "job", "policy", "env"}, `m{job=~"$job",policy=~"$policy",env=~"$env"}`},
		{"by two labels", []string{"env", "label_region"}, []string{"datasource", "job", "policy", "env", "label_region"}, `m{job=~"$job",policy=~"$policy",env=~"$env",label_region=~"$label_region"}`},
		{"not grouped", nil, []string{"datasource", "job", "policy"}, `m{job=~"$job",policy=~"$policy"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := Options{GroupBy: test.groupBy}
			if got := fleetScope(opts).of("m"); got != test.selector {
				t.Errorf("selector %s, want %s", got, test.selector)
			}
			d := build(t, opts)["fleet.json"]
			var names []string
			for _, v := range d.Templating.List {
				names = append(names, v.Name)
			}
			if !slices.Equal(names, test.variables) {
				t.Errorf("variables %v, want %v", names, test.variables)
			}
		})
	}
}

func TestEveryPanelExplainsItself(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: %q has the id of another panel", file, p.Title)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" {
				t.Errorf("%s: panel %q wants a title, a description and a unit", file, p.Title)
			}
			if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has datasource %q and %d queries", file, p.Title, p.Datasource.UID, len(p.Targets))
			}
			if p.GridPos.X+p.GridPos.W > full {
				t.Errorf("%s: panel %q sticks out of the grid", file, p.Title)
			}
		}
	}
}

// Every series is of the jobs that were chosen, or a Prometheus that scrapes two fleets would show them as one.
func TestEveryQueryIsOfTheChosenJobs(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, expr := range d.expressions() {
			parsed, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(expr))
			if err != nil {
				t.Fatalf("%s: %s: %v", file, expr, err)
			}
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok || selector.Name == buildInfo {
					return nil
				}
				if !slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "job" }) {
					t.Errorf("%s: %s: %s is of any job", file, expr, selector.Name)
				}
				return nil
			})
		}
	}
}

// The ConfigMap holds what the files hold.
func TestConfigMapHoldsTheDashboards(t *testing.T) {
	var m struct {
		Kind string            `yaml:"kind"`
		Data map[string]string `yaml:"data"`
	}
	text := read(t, filepath.Join(golden, ConfigMapFile))
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20 // bytes that Kubernetes lets a ConfigMap have
	if m.Kind != "ConfigMap" || len(m.Data) != len(pages()) || len(text) >= most {
		t.Errorf("%s with %d files and %d bytes", m.Kind, len(m.Data), len(text))
	}
	for _, p := range pages() {
		if m.Data["rewardwatch-"+p.file()] != string(read(t, filepath.Join(golden, p.file()))) {
			t.Errorf("%s differs", p.file())
		}
	}
}

// A click on a group leads to the dashboard of its policy, with the variables that it has, from the labels that the query gives.
func TestFleetLeadsToThePolicy(t *testing.T) {
	all := build(t, Options{GroupBy: []string{"env", "label_region"}})
	const group = "policy, env, label_region"
	leading := 0
	for _, p := range all["fleet.json"].Panels {
		labels := ofSeries
		if len(p.Targets) > 0 && p.Targets[0].Format == "table" {
			labels = ofRow
		}
		for _, link := range p.FieldConfig.Defaults.Links {
			leading++
			want := "/d/" + policyUID + "?var-datasource=${datasource}&${job:queryparam}"
			for label := range strings.SplitSeq(group, ", ") {
				want += "&var-" + label + "=${" + labels + "." + label + "}"
			}
			if link.URL != want || !strings.Contains(p.Targets[0].Expr, "by ("+group) {
				t.Errorf("%q leads to\n%s, want\n%s, by the labels of %s", p.Title, link.URL, want, p.Targets[0].Expr)
			}
		}
	}
	if leading < 3 {
		t.Errorf("%d panels of the fleet lead to a policy", leading)
	}
	for label := range strings.SplitSeq("datasource, job, "+group, ", ") {
		if !slices.ContainsFunc(all["policy.json"].Templating.List, func(v templateVariable) bool { return v.Name == label }) {
			t.Errorf("the dashboard of a policy has no variable %s", label)
		}
	}
}

func TestScoresAreDrawnAgainstTheThreshold(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		drawn := 0
		for _, p := range d.Panels {
			if len(p.Targets) == 0 || !strings.Contains(p.Targets[0].Expr, "rewardwatch_detector_score") {
				continue
			}
			drawn++
			if p.Type == "heatmap" {
				if c := p.Options.Color; c.Min != 0 || c.Max != 1 {
					t.Errorf("%s: the colors of %q do not go from 0 to 1", file, p.Title)
				}
				continue
			}
			last := p.FieldConfig.Defaults.Thresholds.Steps
			if p.FieldConfig.Defaults.Custom.ThresholdsStyle.Mode != "dashed+area" || last[len(last)-1].Value != 1 {
				t.Errorf("%s: panel %q does not draw the threshold at 1", file, p.Title)
			}
		}
		if drawn == 0 && (file == "fleet.json" || file == "policy.json") {
			t.Errorf("%s shows no score", file)
		}
	}
}

func TestQueriesParseAndNameMetricsThatExist(t *testing.T) {
	exist := exportedMetrics(t)
	for file, d := range build(t, Options{GroupBy: []string{"env", "label_region"}}) {
		for _, expr := range d.expressions() {
			parsed, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(expr))
			if err != nil {
				t.Errorf("%s: %s: %v", file, expr, err)
				continue
			}
			for _, problem := range problems(parsed, exist) {
				t.Errorf("%s: %s: %s", file, expr, problem)
			}
		}
	}
}

func TestProblemsAreFound(t *testing.T) {
	exist := map[string]string{"rewardwatch_known": "", "rewardwatch_known_total": ""}
	for expr, want := range map[string]int{
		`rewardwatch_known`:                              0,
		`rewardwatch_unknown`:                            1,
		`sum(rewardwatch_known_total)`:                   1,
		`sum(rate(rewardwatch_known_total[5m]))`:         0,
		`rewardwatch_known + rate(rewardwatch_no[5m])`:   1,
		`increase(rewardwatch_known_total{a="b"}[5m])`:   0,
		`max_over_time(rewardwatch_known_total[5m]) > 0`: 1,
	} {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := problems(parsed, exist); len(got) != want {
			t.Errorf("%s: problems %q, want %d", expr, got, want)
		}
	}
}

// Durations that stand for Grafana's own variables.
const (
	rateInterval = "5m"
	wholeRange   = "6h"
)

// substitute puts values where Grafana would: durations for its own variables, text for the others.
func substitute(expr string) string {
	expr = strings.NewReplacer("$__rate_interval", rateInterval, "$__range", wholeRange).Replace(expr)
	return regexp.MustCompile(`\$[a-z_]+`).ReplaceAllString(expr, "x")
}

// problems lists the metrics of an expression that nothing exports, and the counters that are read other than as a
// rate or an increase.
func problems(expr parser.Expr, exist map[string]string) []string {
	var found []string
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name, isBucket := strings.CutSuffix(selector.Name, "_bucket")
		name, isCount := strings.CutSuffix(name, "_count")
		if _, ok := exist[name]; !ok {
			found = append(found, selector.Name+" does not exist")
		}
		if (isBucket || isCount || strings.HasSuffix(name, "_total")) && !insideRate(path) {
			found = append(found, selector.Name+" is a counter")
		}
		return nil
	})
	return found
}

func insideRate(path []parser.Node) bool {
	return slices.ContainsFunc(path, func(node parser.Node) bool {
		call, ok := node.(*parser.Call)
		return ok && (call.Func.Name == "rate" || call.Func.Name == "increase")
	})
}

// model is what the tests look at in a dashboard's JSON.
type model struct {
	Editable bool
	Panels   []struct {
		ID          int
		Type        string
		Title       string
		Description string
		Datasource  struct{ UID string }
		GridPos     struct{ X, W int }
		Targets     []target
		Options     struct{ Color struct{ Min, Max float64 } }
		FieldConfig struct {
			Defaults struct {
				Unit       string
				Links      []struct{ URL string }
				Thresholds struct{ Steps []struct{ Value float64 } }
				Custom     struct{ ThresholdsStyle struct{ Mode string } }
			}
		}
	}
	Templating struct {
		List []templateVariable
	}
	Annotations struct{ List []struct{ Name, Expr string } }
}

// templateVariable is a variable of a dashboard.
type templateVariable struct {
	Name, Type, Label, AllValue string
	Multi                       bool
	Refresh                     int
	Datasource                  struct{ UID string }
	Query                       any
}

// metric is the selector whose labels a variable offers, "" where it offers something else.
func (v templateVariable) metric() string {
	text, _ := v.Query.(string)
	found := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

// target is a query of a panel.
type target struct {
	Expr       string
	Instant    bool
	Format     string
	Datasource struct{ UID string }
}

// expressions gives every query of the dashboard: of panels, annotations and variables.
func (m model) expressions() []string {
	var out []string
	for _, p := range m.Panels {
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	for _, a := range m.Annotations.List {
		out = append(out, a.Expr)
	}
	for _, v := range m.Templating.List {
		if metric := v.metric(); metric != "" {
			out = append(out, metric)
		}
	}
	return out
}

func build(t *testing.T, opts Options) map[string]model {
	t.Helper()
	dir := t.TempDir()
	if _, err := Write(dir, opts); err != nil {
		t.Fatal(err)
	}
	out := map[string]model{}
	for _, p := range pages() {
		file := p.file()
		var m model
		if err := json.Unmarshal(read(t, filepath.Join(dir, file)), &m); err != nil {
			t.Fatal(err)
		}
		if len(m.Panels) == 0 || len(m.expressions()) <= len(m.Panels)/2 || len(m.Annotations.List) != 2 {
			t.Fatalf("%s holds %d panels, %d queries, %d annotations", file, len(m.Panels), len(m.expressions()), len(m.Annotations.List))
		}
		out[file] = m
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
