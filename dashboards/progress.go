package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
)

const notLearning = "Not a learning policy, or too few episodes"

// policyProgress shows how the return of a policy that learns changes.
func policyProgress(d *dashboard.DashboardBuilder, s scope) {
	change := func(bound, suffix string) query {
		return query{
			expr:   "max by (" + s.groups() + ") (" + s.of(metrics.MetricProgressChange, `bound="`+bound+`"`) + ")",
			legend: s.legend() + suffix,
		}
	}
	folded(d, "Learning progress", "learning.md#progress",
		progressStates(s),
		lines("Change in return", "Change in the return over the most recent quarter of the past week. Dashed: 99% confidence interval. The return is improving if the interval is above 0, and regressing if it is below.", "short",
			change("estimate", ""), change("low", " low"), change("high", " high")).
			OverrideByRegexp("/ (low|high)$/", dashed()).
			AxisCenteredZero(true).AxisSoftMin(-1).AxisSoftMax(1).AxisLabel("Change").NoValue(notLearning))
}

// progressStates returns a panel with the progress of each group over time.
func progressStates(s scope) *statetimeline.PanelBuilder {
	return timeline("Return trend",
		"Trend of the return of each group whose policy learns. Plateau: no significant change. Collapsed: the return has lost more than half of its earlier gain. The trend raises no alarms.", half, progressNames(),
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
