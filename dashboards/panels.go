package dashboards

import (
	"slices"
	"strconv"
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

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
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
	tallGraph   = 10 // for legends of many series
	statHeight  = 3
)

// Units that Grafana lacks.
const (
	records    = "suffix:records/s"
	episodes   = "suffix:episodes/s"
	budgets    = "suffix:× budget"
	deviations = "suffix:SD"
	bits       = "suffix:bits"
)

// toTheSecond is Grafana's unit for times such as 2026-11-20 10:00:00, in the time zone of the dashboard.
const toTheSecond = "dateTimeAsIso"

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
	amber  = "dark-orange" // for large numbers: yellow and orange ones are illegible in the light theme
)

// Texts that charts and tables show instead of data, if there is none.
const (
	noPolicies    = "No policies"
	noBaseline    = "No baseline yet"
	noScores      = "No scores yet"
	noVersions    = "No versions in the telemetry"
	noActions     = "No categorical actions"
	noRewards     = "No rewards"
	noEstimates   = "Not enough data for an estimate"
	noPartitions  = "No partitions"
	noCheckpoints = "No checkpoints"
	nothingJudged = "No episodes judged"
)

// confidenceLevels explains the levels of confidence in a false alarm budget.
const confidenceLevels = "Kept: none of the following applies. Reduced: episodes (or blocks) depend on each other, or the baseline covers less than a day. Provisional: the baseline is still small. Unconfirmed: no thresholds are certain to meet the budget. None: no detector is active."

// faint is the color for neutral values in drawings, where gray is nearly black or white.
const faint = "#8E8E99"

func datasource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// lines returns a panel that draws each query over time. Each series has a different color. Series whose color has a
// meaning are assigned theirs by name.
func lines(title, description, unit string, queries ...query) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().
		Title(title).Description(description).Unit(unit).
		Datasource(datasource()).Targets(targets(queries)).
		Height(graphHeight).Span(half).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)).
		FillOpacity(0).ShowPoints(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// levels returns lines whose axis starts at 0. If all values are 0, the axis ends at 1 instead of 100.
func levels(title, description, unit string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, description, unit, queries...).Min(0).AxisSoftMax(1)
}

// happened returns bars that count the events within the interval of each point, with the title of their axis. An
// interval is at least a minute:
// shorter ones overlap, and would show an event twice.
func happened(title, description, counted string, queries ...query) *timeseries.PanelBuilder {
	return levels(title, description, "short", queries...).AxisLabel(counted).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).LineWidth(0).Decimals(0).Interval("1m").
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// paired returns solid lines, each with a dashed line in the same color for the value that it is compared with, such as
// its baseline. Both have the same name, because Grafana chooses colors by name. The legend and the tooltip show only
// the first.
func paired(title, description, unit, legend, expr, against string) *timeseries.PanelBuilder {
	return lines(title, description, unit, query{expr: expr, legend: legend}, query{expr: against, legend: legend}).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassicByName)).
		OverrideByQuery(refID(1), append(dashed(), dashboard.DynamicConfigValue{
			Id: "custom.hideFrom", Value: map[string]bool{"legend": true, "tooltip": true, "viz": false},
		}))
}

// againstBaseline returns lines for the most recent units, paired with dashed lines for the baseline. The legend omits
// these, so the title must name the baseline.
func againstBaseline(title, description, unit, legend string, of func(sample string) string) *timeseries.PanelBuilder {
	return paired(title, description, unit, legend, of("current"), of("baseline")).NoValue(noBaseline)
}

// unlisted leaves series out of the legend.
func unlisted() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "custom.hideFrom", Value: map[string]bool{"legend": true, "tooltip": false, "viz": false}}}
}

// againstOne returns lines together with the threshold of every detector, which is 1.
func againstOne(title, description string, queries ...query) *timeseries.PanelBuilder {
	return lines(title, description, "short", queries...).
		AxisLabel("Score").Min(0).AxisSoftMax(1.2).
		Thresholds(steps(green, step{1, red})).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashedAndArea))
}

// heat returns a panel with a row for each series, colored from green at 0 to red at 1 and above. Of Grafana's schemes,
// only those with two hues look the same in both themes.
func heat(title, description string, q query) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Title(title).Description(description).Unit("short").
		Datasource(datasource()).Targets(targets([]query{q})).
		Height(graphHeight).Span(half).
		Calculate(false).CellGap(1).ShowValue(common.VisibilityModeNever).
		YAxis(heatmap.NewYAxisConfigBuilder().AxisPlacement(common.AxisPlacementLeft)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().
			Mode(heatmap.HeatmapColorModeScheme).Scheme("RdYlGn").Steps(64).
			Scale(heatmap.HeatmapColorScaleLinear).Exponent(1).Fill("dark-red").Min(0).Max(1)).
		ShowLegend()
}

// stacked returns levels as stacked areas.
func stacked(title, description, unit string, queries ...query) *timeseries.PanelBuilder {
	return levels(title, description, unit, queries...).
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
// The series of shares have that label, the labels of the group, and sample.
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
		OverrideByRegexp("/(baseline|current)$/", inUnit("percentunit")).
		OverrideByRegexp("/baseline$/", shadesOf(faint)).
		OverrideByRegexp("/current$/", shadesOf(blue))
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

// statesPerPage is the number of state rows that are legible at the height of their panel.
const statesPerPage = 20

// states returns a panel with the state of each series over time, the worst first: those that drift now, then those in a
// telemetry fault. by lists the labels of a series.
func states(title, description string, s scope, by, legend string) *statetimeline.PanelBuilder {
	of := func(at string) string { return "max by (" + by + ") (" + s.of(metrics.MetricStreamState) + at + ")" }
	now := func(state finding.State) query {
		return query{expr: of("") + " and on (" + by + ") (" + of(" @ end()") + " == " + strconv.Itoa(int(state)) + ")", legend: legend}
	}
	others := query{expr: of("") + " unless on (" + by + ") (" + of(" @ end()") + " >= " + strconv.Itoa(int(finding.Drift)) + ")", legend: legend}
	return timeline(title, description, full, stateNames(), now(finding.Drift), now(finding.TelemetryFault), others).NoValue("No signals")
}

// timeline returns a panel of values over time, displayed with the names and colors that they are mapped to.
func timeline(title, description string, span uint32, names []dashboard.ValueMapping, queries ...query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(title).Description(description).Unit("none").
		Datasource(datasource()).Targets(targets(queries)).
		Height(graphHeight).Span(span).
		Mappings(names).
		// Without a step and this mode, Grafana colors by a continuous scale, and has no legend.
		Thresholds(steps(gray)).ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		ShowValue(common.VisibilityModeNever).MergeValues(true).RowHeight(.9).PerPage(statesPerPage).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle).Sort(common.SortOrderNone)).
		Legend(common.NewVizLegendOptionsBuilder().
			ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// column is a column of a table. Units, links and other options are set per column: options of the whole table would
// also apply to texts, and show the name of a policy as a date.
type column struct {
	field   string // a label, or the value of a query
	title   string
	options []dashboard.DynamicConfigValue
}

func labelColumn(name string, options ...dashboard.DynamicConfigValue) column {
	return column{name, labelTitle(name), options}
}

// labelTitle returns a label as a title: Policy version for policy_version, and Region for label_region.
func labelTitle(label string) string {
	words := spacedName(strings.TrimPrefix(label, labelPrefix))
	if words == "" {
		return label
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// labelPrefix begins the names of event labels in metrics.
const labelPrefix = "label_"

// distinct returns columns whose titles differ. Options are set by title, so an event label with the title of another
// column would get the options of that column.
func distinct(columns []column) []column {
	titles := map[string]int{}
	for _, c := range columns {
		titles[c.title]++
	}
	columns = slices.Clone(columns)
	for i := range columns {
		if c := &columns[i]; titles[c.title] > 1 && strings.HasPrefix(c.field, labelPrefix) {
			c.title = "Label " + spacedName(strings.TrimPrefix(c.field, labelPrefix))
		}
	}
	return columns
}

func labelColumns(names ...string) (all []column) {
	for _, name := range names {
		all = append(all, labelColumn(name))
	}
	return all
}

// narrow returns columns for labels that leave the rest of the width to other columns.
func narrow(pixels int, names ...string) (all []column) {
	for _, name := range names {
		all = append(all, labelColumn(name, inWidth(pixels)...))
	}
	return all
}

// valueColumn returns the column with the value of the only query.
func valueColumn(title string, options ...[]dashboard.DynamicConfigValue) column {
	return column{"Value", title, slices.Concat(options...)}
}

// valueColumnOf returns the column with the value of one of several queries.
func valueColumnOf(i int, title string, options ...[]dashboard.DynamicConfigValue) column {
	return column{"Value #" + refID(i), title, slices.Concat(options...)}
}

// order is a column by which a table is sorted.
type order struct {
	field      string
	descending bool
}

// rows returns a table of the current series of queries, with a row for each set of labels. It is sorted by the given
// fields, or else by the columns from left to right. Fields without a column are hidden.
func rows(title, description string, columns []column, sorted []order, queries ...query) *table.PanelBuilder {
	columns = distinct(columns)
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
	if len(sorted) == 0 {
		for _, c := range columns {
			sorted = append(sorted, order{field: c.field})
		}
	}
	for _, o := range slices.Backward(sorted) {
		p.WithTransformation(sortedBy(o.field, o.descending))
	}
	p.WithTransformation(organized(columns, len(queries)))
	for _, c := range columns {
		p.OverrideByName(c.title, c.complete())
	}
	return p
}

// complete returns the options of a column with those that it does not set itself: "-" where a row has no value, instead
// of the text for an empty table, and texts and times on the left. Grafana aligns them like the numbers that they are
// mapped from.
func (c column) complete() []dashboard.DynamicConfigValue {
	sets := func(id string) bool {
		return slices.ContainsFunc(c.options, func(o dashboard.DynamicConfigValue) bool { return o.Id == id })
	}
	all := slices.Clone(c.options)
	if !sets("noValue") {
		all = append(all, ifAbsent("-")...)
	}
	if sets("mappings") || sets("unit") && slices.ContainsFunc(c.options, isTime) {
		all = append(all, dashboard.DynamicConfigValue{Id: "custom.align", Value: "left"})
	}
	return all
}

// isTime reports whether an option is a unit of times.
func isTime(o dashboard.DynamicConfigValue) bool {
	unit, ok := o.Value.(string)
	return ok && o.Id == "unit" && strings.HasPrefix(unit, "dateTime")
}

// organized names and orders columns. It hides the time of the queries, and also their values and the policy if there
// is no column for them.
func organized(columns []column, queries int) dashboard.DataTransformerConfig {
	hidden := map[string]bool{"Time": true, "Value": true, "policy": true}
	for i := range queries {
		hidden["Value #"+refID(i)] = true
	}
	names, position := map[string]string{}, map[string]int{}
	for i, c := range columns {
		names[c.field], position[c.field] = c.title, i
		delete(hidden, c.field)
	}
	return dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": hidden, "renameByName": names, "indexByName": position,
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

// readable returns the text color that corresponds to the color of a curve. Orange and yellow texts are illegible in
// the light theme, and dark red ones in the dark theme.
func readable(color string) string {
	switch color {
	case red, dark:
		return red
	case green, "semi-dark-green":
		return "semi-dark-green"
	case blue, "super-light-blue", "light-blue", "semi-dark-blue":
		return blue
	case purple:
		return purple
	}
	return gray
}

// inLimits colors the text of a column by the steps that its values reach.
func inLimits(limits *dashboard.ThresholdsConfigBuilder) []dashboard.DynamicConfigValue {
	built, err := limits.Build()
	if err != nil { // steps never returns thresholds that fail
		panic(err)
	}
	for i := range built.Steps {
		built.Steps[i].Color = readable(built.Steps[i].Color)
	}
	return []dashboard.DynamicConfigValue{
		{Id: "thresholds", Value: built}, {Id: "color", Value: map[string]any{"mode": "thresholds"}}, filledCell("color-text"),
	}
}

// filledCell colors the text ("color-text") or the background ("color-background") of a column by its values.
func filledCell(kind string) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: "custom.cellOptions", Value: map[string]any{"type": kind}}
}

// ifAbsent shows a text in rows that have no value in the column.
func ifAbsent(text string) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "noValue", Value: text}}
}

// atLeast sets the minimum width of a column. On a phone, the table then scrolls sideways instead of shrinking.
func atLeast(pixels int) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "custom.minWidth", Value: pixels}}
}

func inWidth(pixels int) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "custom.width", Value: pixels}}
}

// texts assigns a color to each of the given values of a label.
func texts(colors ...[2]string) []dashboard.DynamicConfigValue {
	return append(plain(colors...), filledCell("color-text"))
}

// plain shows the values of a label with spaces, such as reward function for reward_function, each with an optional
// color.
func plain(colors ...[2]string) []dashboard.DynamicConfigValue {
	options := valueTexts{}
	for i, c := range colors {
		color := c[1]
		if color != "" {
			color = readable(color)
		}
		options.as(c[0], i, spacedName(c[0]), color)
	}
	return mapped(options.mappings())
}

// valueTexts maps values to the texts that are displayed instead.
type valueTexts map[string]dashboard.ValueMappingResult

// as sets the text for a value, its position among all values, and its color, "" for none.
func (m valueTexts) as(value string, place int, text, color string) valueTexts {
	result := dashboard.ValueMappingResult{Text: cog.ToPtr(text), Index: cog.ToPtr(int32(place))}
	if color != "" {
		result.Color = cog.ToPtr(color)
	}
	m[value] = result
	return m
}

func (m valueTexts) mappings() []dashboard.ValueMapping {
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: m}}}
}

// ordinals maps the numbers of deciles, from 0, to their names.
func ordinals() []dashboard.ValueMapping {
	options := valueTexts{}
	for i, name := range []string{"1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"} {
		options.as(strconv.Itoa(i), i, name, "")
	}
	return options.mappings()
}

func spacedName(value string) string { return strings.ReplaceAll(value, "_", " ") }

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

// spaced shows the names of series, which are values of one label, with spaces: reward function, not reward_function.
func spaced(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.WithTransformation(renamed("/_/g", " "))
}

// detectorNames shows the names of detectors, which are at the end of the names of series, as people write them. It
// leaves wilcoxon: Grafana's colors by name would give Wilcoxon that of spread.
func detectorNames(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.WithTransformation(renamed(`/( |^)ks$/`, "$1KS")).
		WithTransformation(renamed(`/( |^)adwin( by chance)?$/`, "$1ADWIN$2")).
		WithTransformation(renamed(`/( |^)page_hinkley( by chance)?$/`, "$1Page-Hinkley$2"))
}

// inPlaceOf maps what a pattern matches in a text to other text.
func inPlaceOf(pattern, text string) dashboard.ValueMapping {
	return dashboard.ValueMapping{RegexMap: &dashboard.RegexMap{
		Type:    dashboard.MappingTypeRegexToText,
		Options: dashboard.DashboardRegexMapOptions{Pattern: pattern, Result: dashboard.ValueMappingResult{Text: cog.ToPtr(text)}},
	}}
}

// renamed replaces what a pattern matches in the names of series.
func renamed(pattern, by string) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: "renameByRegex", Options: map[string]any{"regex": pattern, "renamePattern": by}}
}

// step is a threshold: its color applies from that value on.
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

// asLine draws the matching series of a panel of bars as lines.
func asLine() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		{Id: "custom.drawStyle", Value: "line"},
		{Id: "custom.lineWidth", Value: 1},
		{Id: "custom.fillOpacity", Value: 0},
		{Id: "custom.stacking", Value: map[string]any{"mode": "none", "group": "B"}},
	}
}

// wide draws the matching series as wide lines.
func wide() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "custom.lineWidth", Value: 4}}
}

// dashed draws the matching series as dashed lines: the baseline, which does not move.
func dashed() []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{
		{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{8, 8}}},
	}
}
