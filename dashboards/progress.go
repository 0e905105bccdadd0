package dashboards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"

	"github.com/rewardwatch/rewardwatch/detectors/metrics"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
)

const notLearning = "Not a policy that learns, or too few episodes"

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
		lines("Change of the return", "Change of the return over the most recent quarter of the past week, with its 99% confidence interval (dashed). Above 0: improving. Below 0: regressing.", "short",
			change("estimate", ""), change("low", " low"), change("high", " high")).
			OverrideByRegexp("/ (low|high)$/", dashed()).
			AxisCenteredZero(true).AxisSoftMin(-1).AxisSoftMax(1).NoValue(notLearning))
}

// progressStates returns a panel with the progress of each group over time.
func progressStates(s scope) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title("Progress of the return").
		Description("Collapsed: the return has lost more than half of what was reached. Plateau: it shows no significant change.").
		Unit("none").
		Datasource(datasource()).Targets(targets([]query{{expr: "max by (" + s.groups() + ") (" + s.of(metrics.MetricProgress) + ")", legend: s.legend()}})).
		Height(graphHeight).Span(half).NoValue(notLearning).
		Mappings(progressNames()).
		// Without a step and this mode, Grafana colors by a continuous scale, and has no legend.
		Thresholds(steps(gray)).ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		ShowValue(common.VisibilityModeNever).MergeValues(true).RowHeight(.9).PerPage(statesPerPage).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// progressNames maps the values of progress_state to names.
func progressNames() []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for state, color := range map[progress.State]string{
		progress.Improving: green, progress.Plateau: blue, progress.Regressing: orange, progress.Collapsed: red,
	} {
		options[strconv.Itoa(int(state))] = dashboard.ValueMappingResult{
			Text: cog.ToPtr(state.String()), Color: cog.ToPtr(color), Index: cog.ToPtr(int32(state)),
		}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: options}}}
}
