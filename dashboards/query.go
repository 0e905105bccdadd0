package dashboards

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// query is one PromQL expression of a panel.
type query struct {
	expr, legend string
	// table asks for the values now, one row a series, instead of their course.
	table bool
}

// targets makes the queries of a panel, with the reference ids A, B, ...
func targets(queries []query) []cog.Builder[variants.Dataquery] {
	out := make([]cog.Builder[variants.Dataquery], len(queries))
	for i, q := range queries {
		target := prometheus.NewDataqueryBuilder().
			Datasource(datasource()).
			RefId(refID(i)).
			Expr(q.expr).
			LegendFormat(q.legend)
		if q.table {
			target.Instant().Format(prometheus.PromQueryFormatTable)
		} else {
			target.Range()
		}
		out[i] = target
	}
	return out
}

func refID(i int) string { return string(rune('A' + i)) }

// scope is what a dashboard shows: the chosen policies, or the one, and the chosen groups of it.
type scope struct {
	policy string // matcher of the policy
	labels []string
}

func fleetScope(opts Options) scope {
	return scope{policy: `policy=~"$policy"`, labels: opts.GroupBy}
}

func policyScope(opts Options) scope {
	return scope{policy: `policy="$policy"`, labels: opts.GroupBy}
}

// of picks the series of a metric in the scope that meet the further matchers.
func (s scope) of(metric string, matchers ...string) string {
	var groups []string
	for _, label := range s.labels {
		groups = append(groups, label+`=~"$`+label+`"`)
	}
	return s.policies(metric, slices.Concat(groups, matchers)...)
}

// policies is of for a metric without the labels of a group.
func (s scope) policies(metric string, matchers ...string) string {
	return s.service(metric, append([]string{s.policy}, matchers...)...)
}

// service picks the series of a metric that is of no policy.
func (s scope) service(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job=~"$job"`}, matchers...), ",") + "}"
}

// ofSignal is of for the chosen signal.
func (s scope) ofSignal(metric string, matchers ...string) string {
	return s.of(metric, append([]string{`signal="$signal"`}, matchers...)...)
}

// groups is the list of labels that name a group, for `by (...)`.
func (s scope) groups(more ...string) string {
	return strings.Join(slices.Concat([]string{"policy"}, s.labels, more), ", ")
}

// legend names the group that a series belongs to, and the further labels.
func (s scope) legend(more ...string) string {
	return "{{" + strings.Join(slices.Concat([]string{"policy"}, s.labels, more), "}} {{") + "}}"
}

// perSecond is the rate of a counter, summed by labels.
func perSecond(selector, by string) string {
	return "sum by (" + by + ") (rate(" + selector + "[$__rate_interval]))"
}

// orNone gives 0 under the label "none" where an expression has no series, so that a panel of things that are seldom there shows that
// there are none.
func orNone(expr, label string) string {
	return expr + ` or label_replace(vector(0), "` + label + `", "none", "", "")`
}

// overRange is how much a counter grew over the time shown, summed by labels.
func overRange(selector, by string) string {
	return "sum by (" + by + ") (increase(" + selector + "[$__range]))"
}
