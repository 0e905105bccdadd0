package dashboards

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// The conventions of Grafana's dashboard linter that other tests do not check.
func TestDashboardsKeepTheConventionsOfTheLinter(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		if d.Editable {
			t.Errorf("%s can be edited in Grafana, where the next version would take it back", file)
		}
		for _, problem := range d.templateProblems() {
			t.Errorf("%s: %s", file, problem)
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				if q.Datasource.UID != "${datasource}" {
					t.Errorf("%s: %q asks the datasource %q", file, p.Title, q.Datasource.UID)
				}
				for _, problem := range rangeProblems(t, q.Expr) {
					t.Errorf("%s: %q: %s in %s", file, p.Title, problem, q.Expr)
				}
			}
		}
	}
}

// templateProblems returns what is wrong with the variables for the datasource and the job.
func (m model) templateProblems() (found []string) {
	if len(m.Templating.List) < 2 {
		return []string{"it has no variables"}
	}
	source, job := m.Templating.List[0], m.Templating.List[1]
	if source.Name != "datasource" || source.Type != "datasource" || source.Label != "Data source" || source.Query != "prometheus" {
		found = append(found, "its first variable is not the datasource")
	}
	if job.Name != "job" || job.Type != "query" || job.Label != "Job" || !job.Multi || job.AllValue != ".+" {
		found = append(found, "its second variable is not the job")
	}
	for _, v := range m.Templating.List[1:] {
		if v.Datasource.UID != "${datasource}" || v.Refresh != 2 {
			found = append(found, v.Name+" is not of the chosen datasource, or stays when the time range changes")
		}
	}
	return found
}

// rangeProblems returns the rates over a range other than $__rate_interval and the windows of a budget's burn rate; the
// increases over a range other than the first of these, the displayed time and the thirty days of a budget; and the
// series that are not limited to the chosen jobs.
func rangeProblems(t *testing.T, expr string) (found []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(substitute(expr))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	rate, whole, budget := duration(t, rateInterval), duration(t, wholeRange), 30*24*time.Hour
	burns := []time.Duration{time.Hour, 6 * time.Hour}
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			call, ok := path[len(path)-1].(*parser.Call)
			switch {
			case ok && call.Func.Name == "max_over_time" && n.Range == whole:
			case !ok || call.Func.Name != "rate" && call.Func.Name != "increase":
				found = append(found, "a range in no rate or increase")
			case call.Func.Name == "rate" && slices.Contains(burns, n.Range):
			case n.Range != rate && (call.Func.Name == "rate" || n.Range != whole && n.Range != budget):
				found = append(found, call.Func.Name+" over something other than $__rate_interval")
			}
		case *parser.VectorSelector:
			if !ofChosenJobs(n) {
				found = append(found, n.Name+" of any job")
			}
		}
		return nil
	})
	return found
}

// ofChosenJobs reports whether a selector matches job=~"$job", in the form that substitute leaves.
func ofChosenJobs(n *parser.VectorSelector) bool {
	for _, m := range n.LabelMatchers {
		if m.Name == "job" && m.Type == labels.MatchRegexp && m.Value == substitute("$job") {
			return true
		}
	}
	return false
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLinterFindsProblems(t *testing.T) {
	for expr, want := range map[string]int{
		`sum(rate(a_total{job=~"$job"}[$__rate_interval]))`:                    0,
		`sum(rate(a_total{job=~"$job"}[1m]))`:                                  1,
		`sum(rate(a_total{job=~"$job"}[2h]))`:                                  1,
		`sum(rate(a_total{job=~"$job"}[1h]))`:                                  0,
		`max_over_time(a{job=~"$job"}[$__range] @ end())`:                      0,
		`increase(a_total{job=~"$job"}[$__range])`:                             0,
		`increase(a_total{job=~"$job"}[1h])`:                                   1,
		`max_over_time(a{job=~"$job"}[$__rate_interval])`:                      1,
		`a{job="$job"} + b`:                                                    2,
		`avg_over_time((a{job=~"$job"} * 2)[$__range:$__rate_interval]) > 0.1`: 0,
	} {
		if got := rangeProblems(t, expr); len(got) != want {
			t.Errorf("%s: problems %q, want %d", expr, got, want)
		}
	}
	good := build(t, DefaultOptions())["fleet.json"]
	good.Templating.List[1].AllValue = ""
	if got := good.templateProblems(); len(got) != 1 {
		t.Errorf("a job without a pattern for all: problems %q", got)
	}
}
