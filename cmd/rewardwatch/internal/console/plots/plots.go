package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// The sizes of drawings, in their own units, which a browser scales.
const (
	histogramWidth  = 480.0
	histogramHeight = 150.0
	scoreWidth      = 640.0
	scoreHeight     = 150.0
)

// Histogram draws the baseline and the current values over each other.
type Histogram struct {
	Title             string
	Baseline, Current string // the outlines, as points of a polygon
	BaselineUnits     int64
	CurrentUnits      int64
	X, Y              string // titles of the axes
	Edges, Levels     []edge // of bins, and shares
}

// HistogramOf draws shares of units, so that samples of different sizes are comparable. It returns nil without a
// histogram.
func HistogramOf(title string, unit finding.UnitName, h *finding.Histogram) *Histogram {
	if h == nil {
		return nil
	}
	before, now := h.Units()
	baseline, current := shares(h.Baseline, before), shares(h.Current, now)
	largest := max(slices.Max(baseline), slices.Max(current))
	return &Histogram{
		Title: title, Baseline: outline(baseline, largest), Current: outline(current, largest),
		BaselineUnits: int64(before), CurrentUnits: int64(now),
		X: shorten(title, 40), Y: "share of " + unit.Many(), Edges: binEdges(h), Levels: levels(largest),
	}
}

// binEdges returns about five edges of bins, including the first and the last.
func binEdges(h *finding.Histogram) (edges []edge) {
	bins := len(h.Baseline)
	steps := min(bins, 4)
	for i := range steps + 1 {
		share := float64(i*bins/steps) / float64(bins)
		edges = append(edges, edge{X: Pixels(histogramWidth * share), Text: words.Short(h.Low*(1-share) + h.High*share)})
	}
	return edges
}

// levels returns the shares at the bottom, in the middle and at the top of an axis.
func levels(largest float64) []edge {
	var out []edge
	for _, part := range []float64{0, .5, 1} {
		out = append(out, edge{Y: int(histogramHeight * (1 - part)), Text: fmt.Sprintf("%.3g%%", 100*largest*part)})
	}
	return out
}

// shares returns the share of units in each bin.
func shares(counts []int, units int) []float64 {
	out := make([]float64, len(counts))
	for i, c := range counts {
		out[i] = float64(c) / float64(max(1, units))
	}
	return out
}

// outline returns points along the tops of the bars and back along the axis.
func outline(shares []float64, largest float64) string {
	var b strings.Builder
	cell := histogramWidth / float64(len(shares))
	point(&b, 0, histogramHeight)
	for i, share := range shares {
		y := histogramHeight * (1 - share/largest)
		point(&b, float64(i)*cell, y)
		point(&b, float64(i+1)*cell, y)
	}
	point(&b, histogramWidth, histogramHeight)
	return b.String()
}

// point appends a point, to a tenth of a unit.
func point(b *strings.Builder, x, y float64) {
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	fmt.Fprintf(b, "%.1f,%.1f", x, y)
}

// Score is the score of a stream over time, with the threshold.
type Score struct {
	Title       string
	Lines       []string // points of polylines: one for each period without a missing score
	Threshold   string   // distance of score 1 from the top
	Alarms      []scoreMark
	Versions    []scoreMark
	First, Last string
	Top         string // the highest score
	TopY        string // distance from the top, "" if its text would touch that of the threshold
	X           string // title of the time axis
}

// scoreMark is an event between two positions, which may be equal.
type scoreMark struct {
	X, Width, Title string
}

// ScoreOf draws the past scores of a signal. It returns nil if the signal never had one.
func ScoreOf(c Course, unit finding.UnitName, signal string, alarms []alerts.Alarm) *Score {
	scores := c.Scores[signal]
	highest := 1.0
	known := false
	for _, s := range scores {
		if s == s {
			highest, known = max(highest, float64(s)), true
		}
	}
	if !known || len(c.At) == 0 {
		return nil
	}
	top := 1.15 * highest
	p := &Score{
		Title: signal, Threshold: fmt.Sprintf("%.1f", scoreHeight*(1-1/top)), Top: words.Short(highest),
		First: momentText(c.At[0], unit), Last: momentText(c.At[len(c.At)-1], unit),
		X: timeTitle(c.At[0].TS != 0, unit.Sized()),
	}
	if (highest-1)/top*scoreHeight > 22 {
		p.TopY = fmt.Sprintf("%.1f", scoreHeight*(1-highest/top))
	}
	p.draw(c, scores, top)
	for _, a := range alarms {
		p.Alarms = append(p.Alarms, c.mark(a.Onset.Ordinal+1, a.At.Ordinal+1, words.Stamped(fmt.Sprintf("alarm %s: since %s, detected at %s", a.ID, a.Onset.Words(unit), a.At.Words(unit)))))
	}
	for _, v := range c.Changes {
		p.Versions = append(p.Versions, c.mark(v.Unit, v.Unit, "now "+words.Versions(v.To)))
	}
	return p
}

// timeTitle returns the title of a time axis, or of a unit axis without a clock.
func timeTitle(clock bool, units string) string {
	if clock {
		return "time (UTC)"
	}
	return units
}

func (p *Score) draw(c Course, scores []float32, top float64) {
	var b strings.Builder
	for i, s := range scores {
		if math.IsNaN(float64(s)) {
			p.end(&b)
			continue
		}
		point(&b, c.x(c.At[i].Unit), scoreHeight*(1-float64(s)/top))
	}
	p.end(&b)
}

func (p *Score) end(b *strings.Builder) {
	if b.Len() > 0 {
		p.Lines = append(p.Lines, b.String())
		b.Reset()
	}
}

// x returns the horizontal position after a number of units.
func (c *Course) x(units int64) float64 {
	first, last := c.At[0].Unit, c.At[len(c.At)-1].Unit
	if first == last {
		return scoreWidth / 2
	}
	return scoreWidth * min(1, max(0, float64(units-first)/float64(last-first)))
}

func (c *Course) mark(from, to int64, title string) scoreMark {
	x := c.x(from)
	return scoreMark{X: fmt.Sprintf("%.1f", x), Width: fmt.Sprintf("%.1f", max(1.5, c.x(to)-x)), Title: title}
}

// momentText describes a moment by its time, or by its units if there is no clock.
func momentText(m Moment, unit finding.UnitName) string {
	return words.Stamped(finding.UnitRef{Ordinal: m.Unit - 1, TS: m.TS}.Moment(unit))
}
