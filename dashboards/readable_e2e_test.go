//go:build e2e

package dashboards

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// How much of a panel's height Grafana uses, in pixels.
const (
	panelTitle, timeAxis, legendLine, pager = 32, 28, 24, 36
	leastRow                                = 14 // a line of text of 12 pixels
)

// unreadable returns what a person could not read or distinguish in the drawing of a panel.
func (d drawing) unreadable() (found []string) {
	for _, s := range d.Series {
		if s.Name == "" || wrong.MatchString(s.Name) || strings.ContainsAny(s.Name, "{}") {
			found = append(found, fmt.Sprintf("a series is called %q", s.Name))
		}
	}
	switch d.panel.Type {
	case "timeseries":
		found = append(found, d.unreadableCurves()...)
	case "state-timeline":
		found = append(found, d.unreadableStates()...)
	case "heatmap":
		found = append(found, d.unreadableHeat()...)
	}
	for _, s := range screens() {
		for _, problem := range d.tooWide(s) {
			found = append(found, fmt.Sprintf("at %d px: %s", s, problem))
		}
	}
	return append(found, d.empty()...)
}

// tooWide returns what does not fit on a screen.
func (d drawing) tooWide(s screen) (found []string) {
	switch d.panel.Type {
	case "timeseries":
		width, n := 0., 0
		for _, series := range d.Series {
			if series.InLegend {
				width, n = width+textWidth(series.Name, 12)+40, n+1
			}
		}
		if lines := width / s.panelWidth(d.panel.GridPos.W); lines > 4 {
			found = append(found, fmt.Sprintf("its legend of %d series takes %.1f lines", n, lines))
		}
	case "state-timeline", "heatmap":
		for _, series := range d.Series {
			if most := d.mostOfNames(s); textWidth(series.Name, 12) > most {
				found = append(found, fmt.Sprintf("the name %q takes more than %.0f pixels", series.Name, most))
			}
		}
	case "table":
		found = d.unreadableCells(s)
	}
	return found
}

// mostOfNames returns the maximum width of the names of rows: a third of the width for states. On a phone, and in a
// heat map, whose cells need less room, it is what leaves a third of a phone to the data.
func (d drawing) mostOfNames(s screen) float64 {
	width := s.panelWidth(d.panel.GridPos.W)
	if d.panel.Type == "state-timeline" && s >= stacks {
		return width / 3
	}
	return width - phone.panelWidth(full)/3
}

// empty returns the parts of a panel that show nothing although there is something. A panel of problems may be empty,
// and says so. The demo has no off-policy estimates, no policy that learns, and no tenants.
func (d drawing) empty() []string {
	if len(d.Series) > 0 || len(d.Rows) > 0 {
		return nil
	}
	mayBe := func(t target) bool {
		return strings.HasSuffix(t.Expr, " > 0") || strings.Contains(t.Expr, "rewardwatch_off_policy_") || strings.Contains(t.Expr, "rewardwatch_progress_") || strings.Contains(t.Expr, "rewardwatch_tenant_")
	}
	if d.panel.FieldConfig.Defaults.NoValue != "" && !slices.ContainsFunc(d.panel.Targets, func(t target) bool { return !mayBe(t) }) {
		return nil
	}
	return []string{"is empty"}
}

func (d drawing) unreadableCurves() (found []string) {
	names, looks := map[string]bool{}, map[string]string{}
	for _, s := range d.Series {
		if !s.InLegend {
			continue
		}
		if names[s.Name] {
			found = append(found, fmt.Sprintf("two series are called %q", s.Name))
		}
		names[s.Name] = true
		look := fmt.Sprint(s.Color, s.Dashed)
		if other := looks[look]; other != "" && s.Mode != "shades" {
			found = append(found, fmt.Sprintf("%q and %q look alike", other, s.Name))
		}
		looks[look] = s.Name
	}
	if len(d.Axis) == 2 && d.Axis[0] == 0 && d.Axis[1] == 100 {
		found = append(found, "its axis goes to 100 where all is 0")
	}
	return append(found, d.pairs()...)
}

// pairs returns the series that are compared with another one of the same name and have a different color.
func (d drawing) pairs() (found []string) {
	for _, s := range d.Series {
		if !s.InLegend && s.Mode == "palette-classic-by-name" && (!s.Dashed || !slices.ContainsFunc(d.Series, func(o drawnSeries) bool {
			return o.InLegend && o.Name == s.Name && o.Color == s.Color && !o.Dashed
		})) {
			found = append(found, fmt.Sprintf("the baseline of %q is not dashed in its color", s.Name))
		}
	}
	return found
}

func (d drawing) unreadableStates() (found []string) {
	rows := min(len(d.Series), max(d.panel.Options.PerPage, 1))
	room := d.panel.GridPos.H*(gridUnit+gridGap) - gridGap - panelTitle - timeAxis - legendLine - pager
	if rows > 0 && room/rows < leastRow {
		found = append(found, fmt.Sprintf("its %d rows have %d pixels each", rows, room/rows))
	}
	if len(d.Series) > 0 && len(d.Legend) == 0 {
		found = append(found, "has no legend")
	}
	for _, state := range d.Legend {
		if want := stateColors[state[0]]; want == "" || state[1] != want {
			found = append(found, fmt.Sprintf("the state %q is %s, want %q", state[0], state[1], want))
		}
	}
	return found
}

// stateColors are the colors of Grafana's dark theme for states and progress.
var stateColors = map[string]string{
	"ok": "#73BF69", "drift": "#F2495C", "telemetry fault": "#B877D9", "warming up": "#8E8E99",
	"improving": "#73BF69", "plateau": "#5794F2", "regressing": "#FF9830", "collapsed": "#F2495C",
}

func (d drawing) unreadableHeat() (found []string) {
	if room := d.panel.GridPos.H*(gridUnit+gridGap) - gridGap - panelTitle - timeAxis - 2*legendLine; len(d.Series) > 0 && room/len(d.Series) < leastRow {
		found = append(found, fmt.Sprintf("its %d rows have %d pixels each", len(d.Series), room/len(d.Series)))
	}
	for _, color := range d.Reds {
		if !isRed(color) {
			found = append(found, "a score of 1 or more is drawn in "+color)
		}
	}
	if len(d.Reds) == 0 {
		found = append(found, "has no colors")
	}
	return found
}

// The space to the left and right of a text in its cell, and of a table.
const (
	cellMargin  = 12
	tableMargin = 16
	cellFont    = 14
)

// unreadableCells returns whether a table scrolls sideways, and which texts are cut. On a phone, it may scroll.
func (d drawing) unreadableCells(s screen) (found []string) {
	widths := d.columnWidths(s)
	room := s.panelWidth(d.panel.GridPos.W) - tableMargin
	for _, width := range widths {
		room -= width
	}
	if s >= stacks && room < -1 {
		found = append(found, fmt.Sprintf("its %d columns are %.0f pixels wider than it", len(widths), -room))
	}
	for i, width := range widths {
		texts := []string{d.Columns[i][0]}
		for _, row := range d.Rows {
			texts = append(texts, row[i])
		}
		for _, text := range texts {
			if got := textWidth(text, cellFont) + cellMargin; got > width {
				found = append(found, fmt.Sprintf("%q takes %.0f of %.0f pixels of its column", text, got, width))
			}
		}
	}
	return found
}

// columnWidths returns the widths of the columns as Grafana computes them. Those without a width share what the others
// leave, but none is narrower than its minimum, even if the table then scrolls.
func (d drawing) columnWidths(s screen) []float64 {
	room, free := s.panelWidth(d.panel.GridPos.W)-tableMargin, 0.
	for _, w := range d.Widths {
		room -= float64(w)
		if w == 0 {
			free++
		}
	}
	widths := make([]float64, len(d.Widths))
	for i, w := range d.Widths {
		widths[i] = float64(w)
		if w == 0 {
			widths[i] = max(room/free, float64(d.Leasts[i]))
		}
	}
	return widths
}

var anRGB = regexp.MustCompile(`^rgb\((\d+), (\d+), (\d+)\)$`)

// isRed reports whether a color has much more red than green and blue.
func isRed(color string) bool {
	found := anRGB.FindStringSubmatch(color)
	if found == nil {
		return false
	}
	r, _ := strconv.Atoi(found[1])
	g, _ := strconv.Atoi(found[2])
	b, _ := strconv.Atoi(found[3])
	return r >= 2*g && r >= 2*b && r > 100
}

// maskedSeries returns the names of the displayed series and states. It omits those that a filter removes while nothing
// is wrong, as they may or may not exist.
func (d drawing) maskedSeries() string {
	if len(d.Series) == 0 || slices.ContainsFunc(d.panel.Targets, func(t target) bool { return strings.HasSuffix(t.Expr, " > 0") }) {
		return ""
	}
	var names []string
	for _, s := range d.Series {
		name := s.Name
		if s.Dashed {
			name += " (dashed)"
		}
		names = append(names, anAddress.ReplaceAllString(name, "<address>"))
	}
	slices.Sort(names)
	text := fmt.Sprintf("%s\n  %s\n", d.Where, strings.Join(names, " | "))
	if len(d.Legend) > 0 {
		text += "  legend\n"
	}
	return text
}

var anAddress = regexp.MustCompile(`127[.]0[.]0[.]1:\d+`)

// The check finds the problems that it is for.
func TestE2EUnreadableIsFound(t *testing.T) {
	series := func(n int, name string) (all []drawnSeries) {
		for i := range n {
			all = append(all, drawnSeries{Name: fmt.Sprintf(name, i), Color: fmt.Sprint(i), InLegend: true})
		}
		return all
	}
	look := func(kind string, height, perPage int) (p panel) {
		p.Type, p.GridPos.W, p.GridPos.H, p.Options.PerPage = kind, half, height, perPage
		return p
	}
	legend := [][2]string{{"ok", stateColors["ok"]}}
	for name, test := range map[string]struct {
		drawing drawing
		want    string
	}{
		"good lines": {drawing{panel: look("timeseries", 8, 0), Series: series(3, "group %d"), Axis: []float64{0, 1}}, ""},
		"no name":    {drawing{panel: look("timeseries", 8, 0), Series: []drawnSeries{{Name: "undefined"}}}, "a series is called"},
		"no data":    {drawing{panel: look("timeseries", 8, 0)}, "is empty"},
		"no data of what is always there": {drawing{panel: func() panel {
			p := look("timeseries", 8, 0)
			p.FieldConfig.Defaults.NoValue, p.Targets = "No data", []target{{Expr: "a > 0"}, {Expr: "b"}}
			return p
		}()}, "is empty"},
		"one name twice":                {drawing{panel: look("timeseries", 8, 0), Series: []drawnSeries{{Name: "a", Color: "1", InLegend: true}, {Name: "a", Color: "2", InLegend: true}}}, "two series"},
		"one color twice":               {drawing{panel: look("timeseries", 8, 0), Series: []drawnSeries{{Name: "a", Color: "1", InLegend: true}, {Name: "b", Color: "1", InLegend: true}}}, "look alike"},
		"a long legend":                 {drawing{panel: look("timeseries", 8, 0), Series: series(40, "checkout-agent-%02d prod-eu")}, "legend of 40"},
		"flat zero":                     {drawing{panel: look("timeseries", 8, 0), Series: series(1, "%d"), Axis: []float64{0, 100}}, "goes to 100"},
		"other baseline":                {drawing{panel: look("timeseries", 8, 0), Series: []drawnSeries{{Name: "a", Color: "1", Dashed: true, Mode: "palette-classic-by-name"}}}, "the baseline of"},
		"good states":                   {drawing{panel: look("state-timeline", 16, 20), Series: series(40, "group %d"), Legend: legend}, ""},
		"crowded states":                {drawing{panel: look("state-timeline", 8, 40), Series: series(40, "group %d"), Legend: legend}, "its 40 rows"},
		"states unnamed":                {drawing{panel: look("state-timeline", 16, 20), Series: series(1, "group %d")}, "no legend"},
		"states in others":              {drawing{panel: look("state-timeline", 16, 20), Series: series(1, "group %d"), Legend: [][2]string{{"drift", "green"}}}, "the state"},
		"good table":                    {drawing{panel: look("table", 8, 0), Columns: [][2]string{{"policy", "string"}, {"score", "number"}}, Widths: []int{0, 90}, Leasts: []int{150, 150}, Rows: [][]string{{"ranker", "1.2"}}}, ""},
		"a wide table":                  {drawing{panel: look("table", 8, 0), Columns: make([][2]string, 5), Widths: make([]int, 5), Leasts: []int{150, 150, 150, 150, 150}}, "wider than it"},
		"a cut text":                    {drawing{panel: look("table", 8, 0), Columns: [][2]string{{"policy", "string"}}, Widths: []int{60}, Leasts: []int{150}, Rows: [][]string{{"warehouse-router"}}}, "of its column"},
		"a text that a phone cuts":      {drawing{panel: look("table", 8, 0), Columns: [][2]string{{"policy", "string"}, {"cause", "string"}}, Widths: []int{0, 0}, Leasts: []int{150, 150}, Rows: [][]string{{"warehouse-router-of-harbour", "policy"}}}, "at 390 px"},
		"a legend too long for a phone": {drawing{panel: look("timeseries", 8, 0), Series: series(10, "checkout-agent-%02d prod-eu")}, "at 390 px: its legend of 10"},
		"names too long for a phone":    {drawing{panel: look("state-timeline", 16, 20), Series: series(2, "warehouse-router-of-the-harbour %d prod-eu"), Legend: legend}, "at 390 px: the name"},
		"good heat":                     {drawing{panel: look("heatmap", 12, 0), Series: series(20, "group %d"), Reds: []string{"rgb(165, 0, 38)"}}, ""},
		"crowded heat":                  {drawing{panel: look("heatmap", 8, 0), Series: series(40, "group %d"), Reds: []string{"rgb(165, 0, 38)"}}, "its 40 rows"},
		"white heat":                    {drawing{panel: look("heatmap", 12, 0), Series: series(2, "group %d"), Reds: []string{"rgb(255, 245, 235)"}}, "is drawn in"},
	} {
		got := strings.Join(test.drawing.unreadable(), "; ")
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
