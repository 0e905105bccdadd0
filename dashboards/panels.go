package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/barchart"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Grafana's grid is 24 wide.
const (
	full    = 24
	half    = 12
	third   = 8
	quarter = 6
	sixth   = 4
)

const (
	graphHeight = 8
	statHeight  = 4
)

// Names of colors, which Grafana fits to its theme.
const (
	green  = "green"
	yellow = "yellow"
	red    = "red"
	blue   = "blue"
	purple = "purple"
	gray   = "text"
)

func datasource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// lines draws the course of each query.
func lines(title, description, unit string, queries ...query) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().
		Title(title).Description(description).Unit(unit).
		Datasource(datasource()).Targets(targets(queries)).
		Height(graphHeight).Span(half).
		FillOpacity(0).ShowPoints(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// againstOne is lines with the threshold of every detector drawn in: 1.
func againstOne(title, description string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, description, "short", queries...).
		Min(0).AxisSoftMax(1.2).
		Thresholds(steps(green, step{1, red})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashedAndArea))
}

// heat draws a row for each series, in colors from 0 to 1 and beyond.
func heat(title, description string, q query) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Title(title).Description(description).Unit("short").
		Datasource(datasource()).Targets(targets([]query{q})).
		Height(graphHeight).Span(half).
		Calculate(false).CellGap(1).ShowValue(common.VisibilityModeNever).
		YAxis(heatmap.NewYAxisConfigBuilder().AxisPlacement(common.AxisPlacementLeft)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().
			Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Steps(64).
			Scale(heatmap.HeatmapColorScaleLinear).Exponent(1).Fill("dark-red").Min(0).Max(1)).
		ShowLegend()
}

// stacked is lines as areas upon each other.
func stacked(title, description, unit string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, description, unit, queries...).
		FillOpacity(40).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// number shows the latest value of a query, with the color of the step that it has reached.
func number(title, description, unit string, colors *dashboard.ThresholdsConfigBuilder, q query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(title).Description(description).Unit(unit).
		Datasource(datasource()).Targets(targets([]query{q})).
		Height(statHeight).Span(sixth).
		Thresholds(colors).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// bars compares the baseline with the current sample, by the values of one label.
func bars(title, description, label string, baseline, current string) *barchart.PanelBuilder {
	return barchart.NewPanelBuilder().
		Title(title).Description(description).Unit("percentunit").Min(0).
		Datasource(datasource()).
		Targets(targets([]query{{expr: baseline, legend: "baseline", table: true}, {expr: current, legend: "current", table: true}})).
		Height(graphHeight).Span(half).
		XField(label).ShowValue(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderNone)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Transformations(joined(label))
}

// joined makes one table of two: a row for each value of the label, the columns baseline and current.
func joined(label string) []dashboard.DataTransformerConfig {
	return []dashboard.DataTransformerConfig{
		{Id: "joinByField", Options: map[string]any{"byField": label, "mode": "outer"}},
		{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "Time 1": true, "Time 2": true},
			"renameByName":  map[string]string{"Value #A": "baseline", "Value #B": "current"},
		}},
		{Id: "sortBy", Options: map[string]any{"sort": []map[string]any{{"field": label}}}},
	}
}

// states draws the state of each series over time.
func states(title, description string, q query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(title).Description(description).Unit("none").
		Datasource(datasource()).Targets(targets([]query{q})).
		Height(graphHeight).Span(full).
		Mappings(stateNames()).
		Thresholds(steps(gray)).
		ShowValue(common.VisibilityModeNever).MergeValues(true).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// labelsNow lists the label values of the series of a query; hide names the columns that say nothing.
func labelsNow(title, description string, q query, hide ...string) *table.PanelBuilder {
	hidden := map[string]bool{}
	for _, column := range hide {
		hidden[column] = true
	}
	return table.NewPanelBuilder().
		Title(title).Description(description).Unit("none").
		Datasource(datasource()).Targets(targets([]query{q})).
		Height(graphHeight).Span(half).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": hidden}})
}

// sideBySide makes one table of the tables of several queries, with the labels of their series and a column for the value of each.
func sideBySide(title, description string, columns []string, queries ...query) *table.PanelBuilder {
	names := map[string]string{}
	for i, column := range columns {
		queries[i].table = true
		names["Value #"+refID(i)] = column
	}
	return table.NewPanelBuilder().
		Title(title).Description(description).Unit("short").Decimals(3).
		Datasource(datasource()).Targets(targets(queries)).
		Height(graphHeight).Span(full).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": map[string]bool{"Time": true}, "renameByName": names}})
}

// inUnit gives a column a unit of its own.
func inUnit(unit string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "unit", Value: unit}}
}

// band fills the area down to another series.
func band(to, color string) []dashboard.DynamicConfigValue {
	return append(colored(color),
		dashboard.DynamicConfigValue{Id: "custom.fillBelowTo", Value: to}, dashboard.DynamicConfigValue{Id: "custom.fillOpacity", Value: 20})
}

func colored(color string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": color}}}
}

// step is a value from which on a color holds.
type step struct {
	from  float64
	color string
}

func steps(base string, rest ...step) *dashboard.ThresholdsConfigBuilder {
	all := []dashboard.Threshold{{Color: base}}
	for _, s := range rest {
		all = append(all, dashboard.Threshold{Value: cog.ToPtr(s.from), Color: s.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(all)
}

// dashed draws the series whose name matches as a dashed line: the baseline, which does not move.
func dashed() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}},
	}
}
