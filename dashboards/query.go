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
	// table requests the current values, one row per series, instead of a time series.
	table bool
}

// targets returns the queries of a panel, with the reference ids A, B, ...
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

// scope selects the series that a dashboard shows: those of the selected policies, or of a single one, and of its
// groups.
type scope struct {
	policy string // matcher of the policy
	single bool   // whether it shows a single policy
	labels []string
}

func fleetScope(opts Options) scope {
	return scope{policy: `policy=~"$policy"`, labels: opts.GroupBy}
}

func policyScope(opts Options) scope {
	return scope{policy: `policy="$policy"`, single: true, labels: opts.GroupBy}
}

// of selects the series of a metric in the scope that meet the further matchers.
func (s scope) of(metric string, matchers ...string) string {
	var groups []string
	for _, label := range s.labels {
		groups = append(groups, label+`=~"$`+label+`"`)
	}
	return s.policies(metric, slices.Concat(groups, matchers)...)
}

// policies is like of, for a metric without group labels.
func (s scope) policies(metric string, matchers ...string) string {
	return s.service(metric, append([]string{s.policy}, matchers...)...)
}

// service selects the series of a metric that belongs to no policy.
func (s scope) service(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job=~"$job"`}, matchers...), ",") + "}"
}

// ofSignal is like of, for the selected signal.
func (s scope) ofSignal(metric string, matchers ...string) string {
	return s.of(metric, append([]string{`signal="$signal"`}, matchers...)...)
}

// groups returns the labels that identify a group, for `by (...)`.
func (s scope) groups(more ...string) string {
	return strings.Join(slices.Concat([]string{"policy"}, s.labels, more), ", ")
}

// legend returns the legend for the group of a series, and for further labels. It omits the policy on a dashboard of
// one policy, which shows the name elsewhere.
func (s scope) legend(more ...string) string {
	of := s.labels
	if !s.single || len(s.labels) == 0 {
		of = append([]string{"policy"}, s.labels...)
	}
	return "{{" + strings.Join(slices.Concat(of, more), "}} {{") + "}}"
}

// perSecond returns the rate of a counter, summed by labels.
func perSecond(selector, by string) string {
	return "sum by (" + by + ") (rate(" + selector + "[$__rate_interval]))"
}

// orZero returns an expression that is 0 if expr has no series but of has some, such as muted alarms among all alarms.
// If of has none either, as for a policy that does not exist, the expression has no value.
func orZero(expr, of string) string {
	return expr + " or 0 * sum(" + of + ")"
}

// orNone is orZero with the label value "none".
func orNone(expr, of, label string) string {
	return expr + ` or label_replace(0 * sum(` + of + `), "` + label + `", "none", "", "")`
}

// The windows over which events are counted: the displayed time range, and the interval of one point.
const (
	overRange = "$__range"
	overPoint = "$__rate_interval"
)

// counted returns the expression for the number of events over a window, summed by labels if there are any. It is
// rounded, because increase() extrapolates to the ends of the window, which turns 4 into 4.01.
func counted(selector, stretch string, by ...string) string {
	sum := "sum "
	if len(by) > 0 {
		sum = "sum by (" + strings.Join(by, ", ") + ") "
	}
	return "round(" + sum + "(increase(" + selector + "[" + stretch + "])))"
}
