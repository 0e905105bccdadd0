package dashboards

import (
	"slices"
	"strings"

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

// Grafana's grid is 24 columns wide.
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

// Names of colors that Grafana adapts to its theme.
const (
	green  = "green"
	yellow = "yellow"
	orange = "orange"
	red    = "red"
	dark   = "dark-red"
	blue   = "blue"
	purple = "purple"
	gray   = "text"
)

func datasource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// lines returns a panel that draws each query over time.
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

// againstOne returns lines with the threshold of every detector, 1, drawn in.
func againstOne(title, description string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, description, "short", queries...).
		Min(0).AxisSoftMax(1.2).
		Thresholds(steps(green, step{1, red})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashedAndArea))
}

// heat returns a panel with a row for each series, in colors from 0 to 1 and beyond.
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

// stacked returns lines as stacked areas.
func stacked(title, description, unit string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, description, unit, queries...).
		FillOpacity(40).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// number returns a panel with the latest value of a query, in the color of the step that it has reached.
func number(title, description, unit string, colors *dashboard.ThresholdsConfigBuilder, q query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().
		Title(title).Description(description).Unit(unit).
		Datasource(datasource()).Targets(targets([]query{q})).
		Height(statHeight).Span(sixth).
		Thresholds(colors).
		ColorMode(common.BigValueColorModeValue).GraphMode(common.BigValueGraphModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// bars returns a panel that compares the baseline with the current sample of each group, by the values of one label.
// shares has that label, the labels of the group, and sample.
func bars(title, description, label string, s scope, shares string) *barchart.PanelBuilder {
	return barchart.NewPanelBuilder().
		Title(title).Description(description).Min(0).
		Datasource(datasource()).
		Targets(targets([]query{{expr: named(shares, slices.Concat(s.labels, []string{"sample"})), table: true}})).
		Height(graphHeight).Span(half).
		XField(label).ShowValue(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderNone)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Transformations(matrix(label)).
		OverrideByRegexp("/(baseline|current)$/", inUnit("percentunit"))
}

// named adds the label series, built from the values of other labels.
func named(expr string, labels []string) string {
	return `label_join(` + expr + `, "series", " ", "` + strings.Join(labels, `", "`) + `")`
}

// matrix returns the transformations to a table with a row for each value of a label and a column for each series.
func matrix(label string) []dashboard.DataTransformerConfig {
	return []dashboard.DataTransformerConfig{
		sortedBy("series", false),
		{Id: "groupingToMatrix", Options: map[string]any{"rowField": label, "columnField": "series", "valueField": "Value", "emptyValue": "null"}},
		{Id: "organize", Options: map[string]any{"renameByName": map[string]string{label + `\series`: label}}},
		sortedBy(label, false),
	}
}

func sortedBy(column string, descending bool) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: "sortBy", Options: map[string]any{"sort": []map[string]any{{"field": column, "desc": descending}}}}
}

// states returns a panel with the state of each series over time.
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

// column is a column of a table. Units, links and other options belong to single columns: those of a whole table would
// also apply to its texts, and show the name of a policy as a date.
type column struct {
	field   string // a label, or the value of a query
	title   string
	options []dashboard.DynamicConfigValue
}

func labelColumn(name string, options ...dashboard.DynamicConfigValue) column {
	return column{name, name, options}
}

func labelColumns(names ...string) (all []column) {
	for _, name := range names {
		all = append(all, labelColumn(name))
	}
	return all
}

// valueColumn returns the column of the value of the only query.
func valueColumn(title string, options ...[]dashboard.DynamicConfigValue) column {
	return column{"Value", title, slices.Concat(options...)}
}

// valueColumnOf returns the column of the value of one of several queries.
func valueColumnOf(i int, title string, options ...[]dashboard.DynamicConfigValue) column {
	return column{"Value #" + refID(i), title, slices.Concat(options...)}
}

// rows returns a table of the current series of queries: a row for each set of labels, sorted by the columns from left
// to right. The columns name all labels except policy.
func rows(title, description string, columns []column, queries ...query) *table.PanelBuilder {
	for i := range queries {
		queries[i].table = true
	}
	p := table.NewPanelBuilder().
		Title(title).Description(description).
		Datasource(datasource()).Targets(targets(queries)).
		Height(graphHeight).Span(half)
	if len(queries) > 1 {
		p.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	p.WithTransformation(organized(columns))
	for _, c := range slices.Backward(columns) {
		p.WithTransformation(sortedBy(c.title, false))
	}
	for _, c := range columns {
		if len(c.options) > 0 {
			p.OverrideByName(c.title, c.options)
		}
	}
	return p
}

// organized names and orders columns. It hides the time of the query, and its value and policy if no column shows them.
func organized(columns []column) dashboard.DataTransformerConfig {
	hidden := map[string]bool{"Time": true, "Value": true, "policy": true}
	names, order := map[string]string{}, map[string]int{}
	for i, c := range columns {
		names[c.field], order[c.field] = c.title, i
		delete(hidden, c.field)
	}
	return dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": hidden, "renameByName": names, "indexByName": order,
	}}
}

// inUnit sets the unit of a column.
func inUnit(unit string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "unit", Value: unit}}
}

func inDecimals(n int) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "decimals", Value: n}}
}

func mapped(mappings []dashboard.ValueMapping) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "mappings", Value: mappings}}
}

// band fills the area down to another series.
func band(to, color string) []dashboard.DynamicConfigValue {
	return append(colored(color),
		dashboard.DynamicConfigValue{Id: "custom.fillBelowTo", Value: to}, dashboard.DynamicConfigValue{Id: "custom.fillOpacity", Value: 20})
}

func colored(color string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "fixed", "fixedColor": color}}}
}

// shadesOf distinguishes series by shades of one color.
func shadesOf(color string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "color", Value: map[string]any{"mode": "shades", "fixedColor": color}}}
}

// inColors assigns colors to series by name, so that a name has the same color on every dashboard.
func inColors(p *timeseries.PanelBuilder, colors ...[2]string) *timeseries.PanelBuilder {
	for _, c := range colors {
		p.OverrideByName(c[0], colored(c[1]))
	}
	return p
}

// step is a value from which on a color applies.
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

// dashed draws the matching series as dashed lines: the baseline, which does not move.
func dashed() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}},
	}
}
