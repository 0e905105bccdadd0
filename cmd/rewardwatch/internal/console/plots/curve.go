package plots

import (
	"fmt"
	"math"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// The curve of detectable changes, in its own pixels: the horizontal axis shows units, on a logarithmic scale, and the
// vertical axis sizes from 0 upwards.
const (
	curveWidth  = 360
	curveTop    = 14
	curveHeight = 96
	curveMargin = 18 // between the size axis and the first point, and after the last point
)

// Curve draws the smallest detectable change against the number of units within which it is detected.
type Curve struct {
	Line   string // points of a polyline
	Points []curvePoint
	Text   string
	Title  string // of the unit axis
	Sizes  string // of the size axis
}

// curvePoint is the smallest change that is detected within a number of units. Coordinates are text for the template.
type curvePoint struct {
	X, Y, Above string // Above is the position of the size
	Units, Size string
	Label       string // size without the unit, which the axis names
	Title       string
}

// CurveOf draws the reach of a stream, or returns nil if fewer than two sizes are known. It omits changes that can only
// be detected once the rate of rare values is known.
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
