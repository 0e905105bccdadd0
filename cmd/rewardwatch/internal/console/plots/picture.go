package plots

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// The picture of two distributions, in its own pixels: ten bins side by side, and below them both ranges to scale.
const (
	binWidth    = 36
	binsHeight  = 96
	binsTop     = 6
	rangeLeft   = 12
	rangeRight  = 10*binWidth - 12
	rangeSpread = .08 // part of the range that is left free on both sides
	edgeRow     = 13  // height of a row of values
)

// Picture draws baseline and current units over each other. Its bins are the deciles of the baseline, so that the
// baseline is flat and a drift accumulates on one side.
type Picture struct {
	Bins            []bin
	Edges           []edge
	Baseline, Range span // the 10 % to 90 % range to scale, of the baseline and of the current units
	Text            string
	Title, Shares   string // of the axes
	Level, LevelY   string // share of the baseline in a bin, if all are equal, and its position on the share axis
	Top             string // share at the top of that axis
}

// bin is one of the ten bins. Coordinates are text for the template.
type bin struct {
	X, Inner                      string // left edges of the two bars
	BaselineY, BaselineH, Y, H    string
	Title                         string
	BaselineWidth, CurrentWidth   string
	BaselineShare, CurrentPercent string
}

// edge is a value between two bins.
type edge struct {
	X       string
	Tick, Y int // end of its tick, and position of its text
	Text    string
}

// span is a line from Q10 to Q90 with its median.
type span struct{ X1, X2, Middle string }

// shorten truncates a name to most characters, because it must fit beside an axis.
func shorten(name string, most int) string {
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return string(runes[:most-1]) + "…"
}

// PictureOf draws a signal whose baseline and current units are known.
func PictureOf(s *finding.StreamSummary, unit finding.UnitName) *Picture {
	b, c := s.Baseline.HistogramRatio, s.Current.HistogramRatio
	highest := max(slices.Max(b[:]), slices.Max(c[:]), .2)
	p := &Picture{Text: "Share of the last " + unit.Many() + " in each decile of the baseline: "}
	for i := range b {
		left, high, now := float64(i*binWidth), binsHeight*b[i]/highest, binsHeight*c[i]/highest
		p.Bins = append(p.Bins, bin{
			X: Pixels(left), Inner: Pixels(left + 8), BaselineWidth: Pixels(binWidth - 1), CurrentWidth: Pixels(binWidth - 17),
			BaselineY: Pixels(binsTop + binsHeight - high), BaselineH: Pixels(high), Y: Pixels(binsTop + binsHeight - now), H: Pixels(now),
			Title: binTitle(s.Deciles, i), BaselineShare: Percent(b[i]), CurrentPercent: Percent(c[i]),
		})
		if i > 0 {
			p.Text += ", "
		}
		p.Text += Percent(c[i])
	}
	p.Top, p.Level, p.LevelY = fmt.Sprintf("%.0f%%", 100*highest), "10%", Pixels(binsTop+binsHeight*(1-.1/highest))
	for i, decile := range s.Deciles {
		row := i % 2 // neighbors are in different rows, so that numbers with ten characters do not touch
		p.Edges = append(p.Edges, edge{X: Pixels(float64((i + 1) * binWidth)), Tick: 106 + edgeRow*row, Y: 118 + edgeRow*row, Text: words.Short(decile)})
	}
	p.Title, p.Shares = "deciles of the baseline of "+shorten(s.Signal, 30), "share of "+unit.Many()
	low, high := min(s.Baseline.Q10, s.Current.Q10), max(s.Baseline.Q90, s.Current.Q90)
	p.Baseline, p.Range = spanOf(s.Baseline, low, high), spanOf(s.Current, low, high)
	return p
}

func binTitle(deciles [9]float64, i int) string {
	switch i {
	case 0:
		return "below " + words.Short(deciles[0])
	case len(deciles):
		return "from " + words.Short(deciles[i-1])
	}
	return words.Short(deciles[i-1]) + " to " + words.Short(deciles[i])
}

// spanOf positions a range on the scale from low to high.
func spanOf(d finding.Distribution, low, high float64) span {
	at := func(x float64) string {
		if high <= low {
			return Pixels((rangeLeft + rangeRight) / 2)
		}
		share := (x - low) / (high - low)
		return Pixels(rangeLeft + (rangeRight-rangeLeft)*(rangeSpread+(1-2*rangeSpread)*share))
	}
	return span{X1: at(d.Q10), X2: at(d.Q90), Middle: at(d.Q50)}
}
