package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
)

const notLearning = "The policy does not learn, or there are too few episodes"

// policyProgress shows how the return of a policy that learns changes.
func policyProgress(d *dashboard.DashboardBuilder, s scope) {
	change := func(bound, suffix string) query {
		return query{
			expr:   "max by (" + s.groups() + ") (" + s.of(metrics.MetricProgressChange, `bound="`+bound+`"`) + ")",
			legend: s.legend() + suffix,
		}
	}
	folded(d, "Progress while learning", "learning.md#progress",
		progressStates(s),
		lines("Change in return", "Change in the return over the most recent quarter of the past week, with its 99% confidence interval (dashed). Above 0: improving. Below 0: regressing.", "short",
			change("estimate", ""), change("low", " low"), change("high", " high")).
			OverrideByRegexp("/ (low|high)$/", dashed()).
			AxisCenteredZero(true).AxisSoftMin(-1).AxisSoftMax(1).NoValue(notLearning))
}

// progressStates returns a panel with the progress of each group over time.
func progressStates(s scope) *statetimeline.PanelBuilder {
	return timeline("Return progress",
		"Collapsed: the return has lost more than half of its gain. Plateau: it shows no significant change.", half, progressNames(),
		query{expr: "max by (" + s.groups() + ") (" + s.of(metrics.MetricProgress) + ")", legend: s.legend()}).
		NoValue(notLearning)
}

// progressNames maps the values of progress_state to names.
func progressNames() []dashboard.ValueMapping {
	options := valueTexts{}
	for state, color := range map[progress.State]string{
		progress.Improving: green, progress.Plateau: blue, progress.Regressing: orange, progress.Collapsed: red,
	} {
		options.as(strconv.Itoa(int(state)), int(state), state.String(), color)
	}
	return options.mappings()
}
