package dashboards

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/retrain"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

var update = flag.Bool("update", false, "rewrite the dashboards under deploy/grafana")

// golden is the directory of the dashboards that are shipped ready-made.
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
	if err == nil || !strings.Contains(err.Error(), "directory for dashboards") {
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
		{"by env", []string{"env"}, []string{"datasource", "job", "policy", "env", "console"}, `m{job=~"$job",policy=~"$policy",env=~"$env"}`},
		{"by two labels", []string{"env", "label_region"}, []string{"datasource", "job", "policy", "env", "label_region", "console"}, `m{job=~"$job",policy=~"$policy",env=~"$env",label_region=~"$label_region"}`},
		{"not grouped", nil, []string{"datasource", "job", "policy", "console"}, `m{job=~"$job",policy=~"$policy"}`},
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
			if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" && !p.hasTexts() {
				t.Errorf("%s: panel %q wants a title, a description and a unit", file, p.Title)
			}
			if d := p.FieldConfig.Defaults; p.hasTexts() && (d.Unit != "" || len(d.Links) > 0) {
				t.Errorf("%s: the unit or the links of %q are also of its texts", file, p.Title)
			}
			if p.GridPos.X+p.GridPos.W > full || p.GridPos.W == 0 || p.GridPos.H == 0 {
				t.Errorf("%s: panel %q sticks out of the grid", file, p.Title)
			}
			if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has datasource %q and %d queries", file, p.Title, p.Datasource.UID, len(p.Targets))
			}
		}
	}
}

// Every query selects the chosen jobs. Otherwise a Prometheus that scrapes two fleets would show them as one.
func TestEveryQueryIsOfTheChosenJobs(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, expr := range d.expressions() {
			parsed, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(expr))
			if err != nil {
				t.Fatalf("%s: %s: %v", file, expr, err)
			}
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok || selector.Name == names.MetricBuildInfo {
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

// The ConfigMap contains the content of the files.
func TestConfigMapHoldsTheDashboards(t *testing.T) {
	var m struct {
		Kind string            `yaml:"kind"`
		Data map[string]string `yaml:"data"`
	}
	text := read(t, filepath.Join(golden, ConfigMapFile))
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20 // maximum size of a ConfigMap in Kubernetes, in bytes
	if m.Kind != "ConfigMap" || len(m.Data) != len(pages()) || len(text) >= most {
		t.Errorf("%s with %d files and %d bytes", m.Kind, len(m.Data), len(text))
	}
	for _, p := range pages() {
		if m.Data["rewardwatch-"+p.file()] != string(read(t, filepath.Join(golden, p.file()))) {
			t.Errorf("%s differs", p.file())
		}
	}
}

// A click on a group opens the dashboard of its policy with its variables, from the labels that the query returns.
func TestFleetLeadsToThePolicy(t *testing.T) {
	all := build(t, Options{GroupBy: []string{"env", "label_region"}})
	const group = "policy, env, label_region"
	leading := 0
	for _, p := range all["fleet.json"].Panels {
		labels, column := ofSeries, ""
		if p.hasTexts() {
			labels, column = ofRow, "Policy"
		}
		for from, link := range p.links(t) {
			if from == inTheConsole { // in the console
				continue
			}
			leading++
			if from != column {
				t.Errorf("%q leads to a policy from %q, want %q", p.Title, from, column)
			}
			want := "/d/" + policyUID + "?var-datasource=${datasource}&${job:queryparam}"
			for label := range strings.SplitSeq(group, ", ") {
				want += "&var-" + label + "=${" + labels + "." + label + "}"
			}
			if want += "&${__url_time_range}"; link.URL != want || !strings.Contains(p.Targets[0].Expr, "by ("+group) {
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

// Dashboards link to each other with the current selection, except for the policy: the dashboard of one policy has no
// "All".
func TestDashboardsLeadToEachOther(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		if len(d.Links) != len(pages())-1 {
			t.Errorf("%s leads to %d dashboards", file, len(d.Links))
		}
		for _, l := range d.Links {
			toPolicy := strings.HasPrefix(l.URL, "/d/"+policyUID)
			if !l.KeepTime || l.IncludeVars == toPolicy || strings.Contains(l.URL, "policy=") {
				t.Errorf("%s: link %+v", file, l)
			}
		}
	}
}

// A 0 requires existing series: a policy that does not exist has no alarms, but it is not healthy.
func TestNothingIsMadeUp(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, expr := range d.expressions() {
			if strings.Contains(expr, "vector(") {
				t.Errorf("%s: %s is there where nothing is", file, expr)
			}
		}
	}
}

// An average over groups would hide a drifting group behind the others.
func TestNoAverageOverGroups(t *testing.T) {
	group := []string{"policy", "env", "label_region"}
	for file, d := range build(t, Options{GroupBy: group[1:]}) {
		for _, expr := range d.expressions() {
			parsed, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(expr))
			if err != nil {
				t.Fatalf("%s: %s: %v", file, expr, err)
			}
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				mean, ok := node.(*parser.AggregateExpr)
				if ok && mean.Op == parser.AVG && slices.ContainsFunc(group, func(l string) bool { return !slices.Contains(mean.Grouping, l) }) {
					t.Errorf("%s: %s averages over groups", file, expr)
				}
				return nil
			})
		}
	}
}

// increase() turns 4 into 4.01, so values shown as counts are rounded. A ratio or a product of counts is not a count.
func TestCountsAreRounded(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, expr := range d.expressions() {
			parsed, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(expr))
			if err != nil {
				t.Fatalf("%s: %s: %v", file, expr, err)
			}
			parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
				call, ok := node.(*parser.Call)
				if ok && call.Func.Name == "increase" && !slices.ContainsFunc(path, isNoCount) {
					t.Errorf("%s: %s shows fractions of a count", file, expr)
				}
				return nil
			})
		}
	}
}

func isNoCount(node parser.Node) bool {
	switch n := node.(type) {
	case *parser.Call:
		return n.Func.Name == "round"
	case *parser.BinaryExpr:
		return n.Op == parser.DIV || n.Op == parser.MUL
	}
	return false
}

// Annotations are drawn at the time in the values of their series, not at the time of the first point with them.
func TestAnnotationsStandAtTheirTime(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, a := range d.Annotations.List {
			if !a.UseValueForTime || !strings.HasPrefix(a.Expr, "1000 * ") {
				t.Errorf("%s: %s: %s", file, a.Name, a.Expr)
			}
		}
	}
}

func TestColorsSayWhatIsWrong(t *testing.T) {
	all := build(t, DefaultOptions())
	for _, test := range []struct {
		file, title string
		want        map[string]string
	}{
		{"service.json", "Notifications", map[string]string{"sent": "green", "failed": "red"}},
		{"service.json", "Records read", map[string]string{"accepted": "green", "rejected": "red"}},
		{"fleet.json", "Firing and muted alarms", map[string]string{"critical": "red", "warning": "orange", "info": "blue", "muted": "#8E8E99"}},
		{"retraining.json", "Webhook deliveries", map[string]string{"/ /": "red", "/ delivered$/": "green"}},
		{"retraining.json", "Retrainings by outcome", map[string]string{"met": "green", "missed": "red", "failed": "dark-red", "inconclusive": "yellow"}},
	} {
		i := slices.IndexFunc(all[test.file].Panels, func(p panel) bool { return p.Title == test.title })
		if i < 0 {
			t.Fatalf("%s has no panel %q", test.file, test.title)
		}
		if got := all[test.file].Panels[i].colors(t); !maps.Equal(got, test.want) {
			t.Errorf("%s: %q: colors %v, want %v", test.file, test.title, got, test.want)
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
				// Grafana turns schemes of one hue around in one of its themes, and those of two hues always: this one ends red.
				if c := p.Options.Color; c.Min != 0 || c.Max != 1 || c.Scheme != "RdYlGn" {
					t.Errorf("%s: the colors of %q do not go from green at 0 to red at 1", file, p.Title)
				}
				continue
			}
			if p.Type == "table" {
				continue
			}
			last := p.FieldConfig.Defaults.Thresholds.Steps
			if p.Type == "timeseries" && p.FieldConfig.Defaults.Custom.ThresholdsStyle.Mode != "dashed+area" || last[len(last)-1].Value != 1 {
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

// Durations that replace Grafana's own variables.
const (
	rateInterval = "5m"
	wholeRange   = "6h"
)

// substitute replaces variables as Grafana would: its own variables with durations, and the others with text.
func substitute(expr string) string {
	expr = strings.NewReplacer("$__rate_interval", rateInterval, "$__range", wholeRange).Replace(expr)
	return regexp.MustCompile(`\$[a-z_]+`).ReplaceAllString(expr, "x")
}

// problems returns the metrics in an expression that are not exported, and the counters that are not read as a rate or
// an increase.
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

// model is the part of a dashboard's JSON that the tests examine.
type model struct {
	Editable bool
	Panels   []panel // rows, and all panels including those of closed rows
	Rows     []panel `json:"-"` // panels and rows that the page shows before any row is opened
	Links    []struct {
		URL                   string
		IncludeVars, KeepTime bool
	}
	Templating struct {
		List []templateVariable
	}
	Annotations struct {
		List []struct {
			Name, Expr      string
			UseValueForTime bool
		}
	}
	raw []json.RawMessage // panels as JSON
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	Collapsed   bool
	Panels      []panel // of a closed row
	Links       []link
	Interval    string
	Targets     []target
	Options     struct {
		Color struct {
			Min, Max float64
			Scheme   string
		}
		PerPage int
		Legend  struct{ ShowLegend bool }
	}
	FieldConfig struct {
		Defaults struct {
			Unit       string
			NoValue    string
			Min, Max   *float64
			Links      []link
			Color      struct{ Mode string }
			Thresholds struct{ Steps []struct{ Value float64 } }
			Custom     struct {
				ThresholdsStyle struct{ Mode string }
				DrawStyle       string
				AxisSoftMax     *float64
			}
		}
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
}

type link struct{ URL string }

// hasTexts reports whether the panel shows labels as fields beside the values of its queries.
func (p panel) hasTexts() bool { return p.Type == "table" || p.Type == "barchart" }

// links returns the links of all fields, and those of single fields with their names.
func (p panel) links(t *testing.T) map[string]link {
	t.Helper()
	all := map[string]link{}
	for _, l := range p.FieldConfig.Defaults.Links {
		all[""] = l
	}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			var links []link
			if property.ID == "links" {
				if err := json.Unmarshal(property.Value, &links); err != nil || len(links) != 1 {
					t.Fatalf("%q: links %s: %v", p.Title, property.Value, err)
				}
				all[o.Matcher.Options] = links[0]
			}
		}
	}
	return all
}

// colors returns the colors of series by name.
func (p panel) colors(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			var color struct{ FixedColor string }
			if property.ID == "color" {
				if err := json.Unmarshal(property.Value, &color); err != nil {
					t.Fatalf("%q: color %s: %v", p.Title, property.Value, err)
				}
				all[o.Matcher.Options] = color.FixedColor
			}
		}
	}
	return all
}

// templateVariable is a variable of a dashboard.
type templateVariable struct {
	Name, Type, Label, AllValue string
	Multi                       bool
	Refresh                     int
	Datasource                  struct{ UID string }
	Query                       any
}

// metric returns the selector whose labels a variable offers; empty if it offers something else.
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
	Legend     string `json:"legendFormat"`
	Instant    bool
	Format     string
	Datasource struct{ UID string }
}

// expressions returns every query of the dashboard: of panels, annotations and variables.
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
		text := read(t, filepath.Join(dir, file))
		var whole struct{ Panels []json.RawMessage }
		if err := errors.Join(json.Unmarshal(text, &m), json.Unmarshal(text, &whole)); err != nil {
			t.Fatal(err)
		}
		m.unfold(t, whole.Panels)
		if len(m.Panels) == 0 || len(m.expressions()) <= len(m.Panels)/2 || len(m.Annotations.List) != 2 {
			t.Fatalf("%s holds %d panels, %d queries, %d annotations", file, len(m.Panels), len(m.expressions()), len(m.Annotations.List))
		}
		out[file] = m
	}
	return out
}

// unfold lists the panels of closed rows after their row.
func (m *model) unfold(t *testing.T, raw []json.RawMessage) {
	t.Helper()
	m.Rows = m.Panels
	m.Panels = nil
	for i, p := range m.Rows {
		var inside struct{ Panels []json.RawMessage }
		if err := json.Unmarshal(raw[i], &inside); err != nil {
			t.Fatal(err)
		}
		m.Panels, m.raw = append(m.Panels, p), append(m.raw, raw[i])
		m.Panels, m.raw = append(m.Panels, p.Panels...), append(m.raw, inside.Panels...)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The row of an incident says in words whether anyone was alerted and, if there is room, what its cause means.
func TestIncidentsAreInWords(t *testing.T) {
	for _, file := range []string{"policy.json", "fleet.json"} {
		m := build(t, DefaultOptions())[file]
		at := slices.IndexFunc(m.Panels, func(p panel) bool { return p.Title == "Open incidents" })
		if at < 0 {
			t.Fatalf("%s has no open incidents", file)
		}
		text := string(m.raw[at])
		for _, cause := range alerts.Causes() {
			if file == "policy.json" && !regexp.MustCompile(`"`+string(cause)+`":\s*\{[^}]*"text":\s*"[A-Z]`).MatchString(text) {
				t.Errorf("%s: no phrase for the cause %s", file, cause)
			}
			if file == "fleet.json" && !namesCause(text, cause) {
				t.Errorf("%s: the cause %s is shown as its metric has it", file, cause)
			}
		}
		for state := alerts.ByRules; state <= alerts.Silenced; state++ {
			if !regexp.MustCompile(fmt.Sprintf(`"%d":\s*\{[^}]*"text":\s*"[a-z]`, state)).MatchString(text) {
				t.Errorf("%s: no word for the state %d of an alert", file, state)
			}
		}
	}
}

// The causes of closed incidents are in words as well.
func TestCausesOfClosedIncidentsAreInWords(t *testing.T) {
	m := build(t, DefaultOptions())["policy.json"]
	at := slices.IndexFunc(m.Panels, func(p panel) bool { return p.Title == "Closed incidents by cause" })
	for _, cause := range alerts.Causes() {
		if !namesCause(string(m.raw[at]), cause) {
			t.Errorf("the cause %s is shown as its metric has it", cause)
		}
	}
}

// Every step of every kind of request is told as an event, without the ids of metrics.
func TestStepsOfRequestsAreInWords(t *testing.T) {
	event := regexp.MustCompile(`^[A-Z][a-z]+( [a-z]+){1,3}$`)
	for _, kind := range retrain.Kinds() {
		for _, step := range retrain.Steps() {
			if text := stepTaken(kind, step); !event.MatchString(text) || strings.Contains(text, "dead") {
				t.Errorf("%s %s is shown as %q", kind, step, text)
			}
		}
	}
}

// namesCause reports whether a panel shows a cause without underscores.
func namesCause(text string, cause alerts.Cause) bool {
	return regexp.MustCompile(`"` + string(cause) + `":\s*\{[^}]*"text":\s*"` + strings.ReplaceAll(string(cause), "_", " ") + `"`).MatchString(text)
}

// The title says what a dashed line is that is not in the legend. Otherwise only the description would.
func TestBaselinesAreNamed(t *testing.T) {
	comparison := regexp.MustCompile(`(vs[.]|from) (baseline|limit|thresholds)$`)
	found := 0
	for file, d := range build(t, DefaultOptions()) {
		for i, p := range d.Panels {
			if p.Type != "timeseries" || !strings.Contains(string(d.raw[i]), `"byFrameRefID"`) {
				continue
			}
			found++
			if !comparison.MatchString(p.Title) || !strings.Contains(p.Description, "Dashed: ") {
				t.Errorf("%s: nothing says what the dashed line of %q is", file, p.Title)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d panels have a baseline", found)
	}
}

// An empty chart or table says what is missing.
func TestEmptyPanelsSayWhatIsMissing(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, p := range d.Panels {
			if p.Type != "row" && p.Type != "stat" && p.FieldConfig.Defaults.NoValue == "" {
				t.Errorf("%s: %q shows \"No data\" if it is empty", file, p.Title)
			}
		}
	}
}

// Values that are shown as texts or times are on the left, like other texts. An empty cell does not repeat the text for
// an empty table.
func TestTextsInTablesAreOnTheLeft(t *testing.T) {
	found := 0
	for file, d := range build(t, DefaultOptions()) {
		for _, p := range d.Panels {
			if p.Type != "table" {
				continue
			}
			for _, o := range p.FieldConfig.Overrides {
				set := map[string]string{}
				for _, property := range o.Properties {
					set[property.ID] = string(property.Value)
				}
				isText := set["mappings"] != "" || strings.Contains(set["unit"], "dateTime")
				if isText {
					found++
				}
				if isText != (set["custom.align"] == `"left"`) {
					t.Errorf("%s: %q: the alignment of the column %s is %q", file, p.Title, o.Matcher.Options, set["custom.align"])
				}
				if set["noValue"] == "" {
					t.Errorf("%s: %q: the column %s has no text for empty cells", file, p.Title, o.Matcher.Options)
				}
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d columns with texts were found", found)
	}
}
