package plots

import (
	"fmt"
	"math"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// The curve of what can be seen, in its own pixels: units to the right, on a logarithmic scale, sizes from 0 upwards.
const (
	curveWidth  = 360
	curveTop    = 14
	curveHeight = 96
	curveMargin = 18 // between the axis of sizes and the first point, and behind the last one
)

// Curve draws the smallest change that is found against the number of units within which it is.
type Curve struct {
	Line   string // points of a polyline
	Points []curvePoint
	Text   string
	Title  string // of the axis of units
	Sizes  string // of the axis of sizes
}

// curvePoint is the smallest change that is found within a number of units. Coordinates are text for the template.
type curvePoint struct {
	X, Y, Above string // Above is where its size is written
	Units, Size string
	Label       string // the size without the unit, which the axis names
	Title       string
}

// CurveOf draws the reach of a stream; nil if fewer than two sizes are known. What is found only once the rate of rare
// values is known is not drawn.
func CurveOf(s *finding.StreamSummary, unit finding.UnitName) *Curve {
	shown := words.ReachCurve(s.Reach)
	if len(shown) < 2 {
		return nil
	}
	largest := 0.
	for _, r := range shown {
		largest = max(largest, r.Size)
	}
	first, last := math.Log(float64(shown[0].Units)), math.Log(float64(shown[len(shown)-1].Units))
	c := &Curve{Title: unit.Many() + " since the change", Sizes: "shift in baseline SD"}
	if shown[0].OfRate {
		c.Sizes = "drop in the rate"
	}
	var line, text []string
	for _, r := range shown {
		x := curveMargin + (curveWidth-2*curveMargin)*(math.Log(float64(r.Units))-first)/(last-first)
		y := curveTop + curveHeight*(1-r.Size/largest)
		p := curvePoint{X: Pixels(x), Y: Pixels(y), Above: Pixels(y - 6), Units: words.Grouped(int64(r.Units)), Size: words.ReachSize(r)}
		p.Label = strings.TrimSuffix(p.Size, " SD")
		p.Title = fmt.Sprintf("%s within %s", p.Size, unit.Count(int64(r.Units)))
		c.Points = append(c.Points, p)
		line, text = append(line, p.X+","+p.Y), append(text, p.Title)
	}
	c.Line = strings.Join(line, " ")
	c.Text = "Smallest change that is detected in 9 of 10 cases: " + strings.Join(text, ", ")
	return c
}
