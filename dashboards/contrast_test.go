package dashboards

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The minimum contrast between a text and the panel behind it, which WCAG 2.1 requires for text (AA) and for large
// text.
const (
	leastContrast      = 4.5
	leastContrastLarge = 3
)

// shown contains Grafana's colors in its light and its dark theme, as defined by @grafana/data 13.2.3.
var shown = map[string][2]string{
	"text":  {"#24292e", "#ccccdc"},
	"green": {"#56A64B", "#73BF69"}, "semi-dark-green": {"#37872D", "#56A64B"},
	"yellow": {"#F2CC0C", "#FADE2A"}, "light-yellow": {"#FADE2A", "#FFEE52"}, "dark-yellow": {"#CC9D00", "#E0B400"},
	"orange": {"#FF780A", "#FF9830"}, "dark-orange": {"#E55400", "#FA6400"},
	"red": {"#E02F44", "#F2495C"}, "dark-red": {"#AD0317", "#C4162A"},
	"blue": {"#3274D9", "#5794F2"}, "super-light-blue": {"#8AB8FF", "#C0D8FF"}, "light-blue": {"#5794F2", "#8AB8FF"}, "semi-dark-blue": {"#1F60C4", "#3274D9"},
	"purple": {"#A352CC", "#B877D9"},
	faint:    {faint, faint},
}

// behind is the background color of a panel in both themes.
var behind = [2]string{"#ffffff", "#181b1f"}

// luminance returns the relative luminance of a color, as defined by WCAG 2.1.
func luminance(t *testing.T, hex string) (sum float64) {
	t.Helper()
	for i, weight := range []float64{.2126, .7152, .0722} {
		part, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		linear := math.Pow((float64(part)/255+.055)/1.055, 2.4)
		if part < 11 {
			linear = float64(part) / 255 / 12.92
		}
		sum += weight * linear
	}
	return sum
}

// contrastOf returns the contrast between a color and the panel behind it, the lower of both themes.
func contrastOf(t *testing.T, color string) float64 {
	t.Helper()
	hexes, known := shown[color]
	if !known {
		t.Fatalf("the color %q is missing in the test", color)
	}
	least := math.Inf(1)
	for theme, hex := range hexes {
		lights := []float64{luminance(t, hex), luminance(t, behind[theme])}
		least = min(least, (slices.Max(lights)+.05)/(slices.Min(lights)+.05))
	}
	return least
}

// colorsIn returns the colors of the steps and mappings in a part of a panel.
func colorsIn(t *testing.T, part json.RawMessage) (colors []string) {
	t.Helper()
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, inside := range v {
				if color, is := inside.(string); is && key == "color" {
					colors = append(colors, color)
				}
				walk(inside)
			}
		case []any:
			for _, inside := range v {
				walk(inside)
			}
		}
	}
	var whole any
	if err := json.Unmarshal(part, &whole); err != nil {
		t.Fatal(err)
	}
	walk(whole)
	return colors
}

// Colored numbers, and colored texts in tables, are legible in the light and the dark theme.
func TestColoredTextsHaveContrast(t *testing.T) {
	numbers, cells := 0, 0
	check := func(where string, part json.RawMessage, least float64) (checked int) {
		for _, color := range colorsIn(t, part) {
			checked++
			if got := contrastOf(t, color); got < least {
				t.Errorf("%s: text in %q has a contrast of %.2f, want at least %g", where, color, got, least)
			}
		}
		return checked
	}
	for file, m := range build(t, DefaultOptions()) {
		for i, p := range m.Panels {
			var raw struct {
				Options     struct{ ColorMode string }
				FieldConfig struct {
					Defaults struct{ Thresholds json.RawMessage }
				}
			}
			if err := json.Unmarshal(m.raw[i], &raw); err != nil {
				t.Fatal(err)
			}
			if p.Type == "stat" && raw.Options.ColorMode == "value" {
				numbers += check(file+": "+p.Title, raw.FieldConfig.Defaults.Thresholds, leastContrastLarge)
			}
			for _, o := range p.FieldConfig.Overrides {
				colored := slices.ContainsFunc(o.Properties, func(one struct {
					ID    string
					Value json.RawMessage
				},
				) bool {
					return one.ID == "custom.cellOptions" && strings.Contains(string(one.Value), `"color-text"`)
				})
				for _, one := range o.Properties {
					if colored && (one.ID == "mappings" || one.ID == "thresholds") {
						cells += check(file+": "+p.Title+": "+o.Matcher.Options, one.Value, leastContrast)
					}
				}
			}
		}
	}
	if numbers < 30 || cells < 30 {
		t.Errorf("only %d colors of numbers and %d of cells were checked", numbers, cells)
	}
}
