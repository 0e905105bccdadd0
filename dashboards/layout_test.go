package dashboards

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// The space around the panels on Grafana's page. The menu has the width of a docked menu in a new Grafana; otherwise it
// takes 56 pixels, and the header 101.
const (
	screenHeight      = 768
	menuWidth         = 230
	pageMargin        = 16
	headHeight        = 130 // navigation, breadcrumbs and variables
	gridUnit, gridGap = 30, 8
	titleMargin       = 15
	iconWidth         = 32 // of the description, and of each link
)

// screen is the width of a window in pixels.
type screen int

// Grafana stacks panels if a window is narrower than stacks, and hides its menu.
const (
	phone, laptop, large screen = 390, 1366, 1920
	stacks               screen = 769
)

func screens() []screen { return []screen{phone, laptop, large} }

// panelWidth returns the width of a panel in pixels.
func (s screen) panelWidth(columns int) float64 {
	if s < stacks {
		return float64(s - 2*pageMargin)
	}
	return float64(s-menuWidth-2*pageMargin+gridGap)*float64(columns)/full - gridGap
}

// advances are the widths of the letters of Inter, in hundredths of the size.
var advances = map[string]float64{
	"ijl": 24, "I": 27, " ": 28, "!,.:": 29, "';": 30, "t|": 33, "()/[]": 36, "f": 37, "r": 38, "1": 41, "{}": 43, "-_": 46, "\"^": 47,
	"*": 50, "?": 51, "s": 53, "kxz": 55, "avy": 56, "7JLc": 57, "e": 58, "5Fhnu": 59, "Eo": 60, "2bdgpq": 61, "3689": 62, "#0Z": 63,
	"$&PRS": 64, "4BT": 65, "+<=>~": 66, "K": 67, "XY": 68, "AV": 69, "D": 72, "C": 73, "HU": 74, "GN": 75, "OQ": 76, "w": 82, "m": 88,
	"M": 90, "@": 97, "%": 98, "W": 99,
}

// bolder is the ratio of the widths of titles and texts: titles are bolder, with space between letters.
const bolder = 1.03

// textWidth returns the width of a text in pixels.
func textWidth(text string, size float64) float64 {
	hundredths := 0.
	for _, r := range text {
		hundredths += advance(r)
	}
	return hundredths / 100 * size
}

// advance returns the width of a letter. Others than those of English are as wide as the widest.
func advance(letter rune) float64 {
	for letters, width := range advances {
		if strings.ContainsRune(letters, letter) {
			return width
		}
	}
	return 100
}

// pageHeight returns the height of the page in pixels while its rows are closed.
func (m model) pageHeight() int {
	units := 0
	for _, p := range m.Rows {
		units = max(units, p.GridPos.Y+p.GridPos.H)
	}
	return headHeight + units*(gridUnit+gridGap)
}

func TestPagesAnswerOnTheirFirstScreens(t *testing.T) {
	most := map[string]int{"policy.json": 2, "fleet.json": 3, "retraining.json": 2, "service.json": 2}
	for file, d := range build(t, DefaultOptions()) {
		if got := d.pageHeight(); got > most[file]*screenHeight {
			t.Errorf("%s is %d pixels high, want at most %d screens of %d", file, got, most[file], screenHeight)
		}
	}
}

// Panels for experts are in closed rows, and link to the documentation of their terms.
func TestRowsAreClosed(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		rows, below := 0, false
		for _, p := range d.Rows {
			if p.Type != "row" {
				if below {
					t.Errorf("%s: %q stands below a row, and hides when it is closed", file, p.Title)
				}
				continue
			}
			rows++
			below = true
			if !p.Collapsed || len(p.Panels) == 0 || p.GridPos.H != 1 {
				t.Errorf("%s: the row %q is open or empty", file, p.Title)
			}
			for _, inside := range p.Panels {
				if len(inside.Links) != 1 || !strings.HasPrefix(inside.Links[0].URL, "https://github.com/rewardwatch/rewardwatch/blob/main/docs/") {
					t.Errorf("%s: %q does not link to the documentation", file, inside.Title)
				}
				checkDocument(t, file, inside)
			}
		}
		if rows == 0 {
			t.Errorf("%s has no row", file)
		}
	}
}

// checkDocument checks that the page and the section of a panel's link exist.
func checkDocument(t *testing.T, file string, p panel) {
	t.Helper()
	for _, l := range p.Links {
		page, section, _ := strings.Cut(l.URL[strings.LastIndex(l.URL, "/")+1:], "#")
		found := section == ""
		for line := range strings.Lines(string(read(t, "../docs/"+page))) {
			found = found || strings.HasPrefix(line, "#") && anchor(line) == section
		}
		if !found {
			t.Errorf("%s: %q links to %s, which has no such section", file, p.Title, l.URL)
		}
	}
}

// anchor returns the anchor that GitHub generates for a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#"))))
}

// Panels neither overlap nor leave gaps on the page, while rows are closed and after one is opened.
func TestPanelsFillTheGrid(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		check := func(where string, panels []panel) {
			cells := map[[2]int]string{}
			for _, p := range panels {
				for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
					for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
						if other := cells[[2]int{x, y}]; other != "" {
							t.Fatalf("%s: %s: %q covers %q", file, where, p.Title, other)
						}
						cells[[2]int{x, y}] = p.Title
					}
				}
			}
		}
		check("page", d.Rows)
		for _, row := range d.Rows {
			check(row.Title, row.Panels)
		}
	}
}

func TestTitlesFit(t *testing.T) {
	longest := strings.NewReplacer("$signal", "observation.inventory_level") // a long name, as in the examples
	for file, d := range build(t, DefaultOptions()) {
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			title := longest.Replace(p.Title)
			for _, s := range screens() {
				room := s.panelWidth(p.GridPos.W) - 2*titleMargin - iconWidth*float64(1+len(p.Links))
				if width := bolder * textWidth(title, 14); width > room {
					t.Errorf("%s: %q takes %.0f of %.0f pixels on a screen of %d", file, title, width, room, s)
				}
			}
		}
	}
}

// A series that is always 0 is drawn on an axis up to 1: Grafana's default goes up to 100.
func TestAxesFromZeroHaveAnEnd(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, p := range d.Panels {
			if p.Type != "timeseries" {
				continue
			}
			f := p.FieldConfig.Defaults
			if f.Min != nil && f.Max == nil && f.Custom.AxisSoftMax == nil {
				t.Errorf("%s: the axis of %q goes to 100 if all is 0", file, p.Title)
			}
		}
	}
}

// Counts of events are bars of intervals that do not overlap.
func TestEventsAreBars(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, p := range d.Panels {
			if p.Type != "timeseries" || !strings.Contains(p.Targets[0].Expr, "increase(") {
				continue
			}
			if p.FieldConfig.Defaults.Custom.DrawStyle != "bars" || p.Interval != "1m" {
				t.Errorf("%s: %q draws events as %q at least every %q", file, p.Title, p.FieldConfig.Defaults.Custom.DrawStyle, p.Interval)
			}
		}
	}
}

func causes() (all []string) {
	for _, c := range alerts.Causes() {
		all = append(all, strings.ReplaceAll(string(c), "_", " "))
	}
	return all
}

// Series with a meaning have the same color everywhere: those with their own name, and those named by a label with
// known values.
func TestNamesHaveColors(t *testing.T) {
	known := map[string][]string{
		"{{severity}}": {"critical", "warning", "info"}, "{{confidence}}": {"kept", "reduced", "provisional", "unconfirmed", "none"},
		"{{cause}}":   causes(),
		"{{outcome}}": {"met", "missed", "inconclusive", "failed"}, "{{kind}}": {"partition", "policy"},
		"{{state}}": {"queued", "awaiting approval", "open", "delivered", "running", "verifying", "met", "missed", "inconclusive", "failed", "rejected", "expired", "not delivered", "withdrawn"},
	}
	checked := 0
	for file, d := range build(t, DefaultOptions()) {
		for i, p := range d.Panels {
			if p.Type != "timeseries" {
				continue
			}
			colors := p.colors(t)
			for _, q := range p.Targets {
				names := known[q.Legend]
				if strings.Contains(strings.Join(names, ""), " ") && !strings.Contains(string(d.raw[i]), `"renameByRegex"`) {
					t.Errorf("%s: %q shows names as their metric has them, with underscores", file, p.Title)
				}
				if !strings.Contains(q.Legend, "{{") {
					names = []string{q.Legend}
				}
				for _, name := range names {
					checked++
					if colors[name] == "" && !colorOfPattern(colors, name) {
						t.Errorf("%s: %q draws %s in any color", file, p.Title, name)
					}
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d names were looked at", checked)
	}
}

// colorOfPattern reports whether a pattern /.../ sets a color for the name.
func colorOfPattern(colors map[string]string, name string) bool {
	for pattern := range colors {
		if inside, ok := strings.CutPrefix(pattern, "/"); ok && regexp.MustCompile(strings.TrimSuffix(inside, "/")).MatchString(name) {
			return true
		}
	}
	return false
}

// Grafana displays its own unit of events per second as "c/s", and that of events as "eps".
func TestRatesAreSpelled(t *testing.T) {
	for file, d := range build(t, DefaultOptions()) {
		for _, p := range d.Panels {
			switch unit := p.FieldConfig.Defaults.Unit; unit {
			case "cps", "eps", "ops", "reqps":
				t.Errorf("%s: %q is in %s", file, p.Title, unit)
			}
		}
	}
}

// Times have the same form as in the console, or are relative to now.
func TestTimesHaveOneFormat(t *testing.T) {
	unit := regexp.MustCompile(`"(?:unit|value)":\s*"((?:time:|dateTime)[^"]*)"`)
	found := 0
	for file, d := range build(t, DefaultOptions()) {
		for i, p := range d.Panels {
			for _, m := range unit.FindAllStringSubmatch(string(d.raw[i]), -1) {
				found++
				if m[1] != toTheSecond && m[1] != "dateTimeFromNow" {
					t.Errorf("%s: %q shows times in %s", file, p.Title, m[1])
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d times were found", found)
	}
}
