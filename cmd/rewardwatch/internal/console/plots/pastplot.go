package plots

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// Drawing is a signal over time, as on the page of an incident, for a page without scripts. It has the size of a plot
// of scores.
type Drawing struct {
	Title                        string
	Band, Mean                   string // points of the band of one standard deviation, and of the rolling mean
	BaseY, BaseHeight, BaseMean  string // "" without a baseline
	Hovers                       []hover
	Marks                        []pastMark
	X, Y                         string // titles of the axes
	High, Low, First, Last, Text string
}

// hover is the part of a drawing in which the browser shows the values of a point.
type hover struct {
	X, Width, Title string
}

// pastMark is an onset or a version change.
type pastMark struct {
	Kind, X, Title string
}

// Draw draws the past of a signal together with its baseline, which is nil if unknown. It returns nil without values.
func (p *Past) Draw(signal string, baseline *Level, incident *alerts.Incident) *Drawing {
	return draw(p.course(signal, baseline, incident))
}

func draw(c *courseJSON) *Drawing {
	if c == nil {
		return nil
	}
	low, high := c.limits()
	x := func(at float64) float64 {
		first, last := c.X[0], c.X[len(c.X)-1]
		if first == last {
			return scoreWidth / 2
		}
		return scoreWidth * min(1, max(0, (at-first)/(last-first)))
	}
	y := func(value float64) float64 { return scoreHeight * (high - value) / (high - low) }
	p := &Drawing{Title: c.Titles.Y, High: words.Short(high), Low: words.Short(low), First: c.moment(c.X[0]), Last: c.moment(c.X[len(c.X)-1])}
	p.X, p.Y = timeTitle(c.Clock, c.Titles.X), fitting(c.Titles.Y)
	var band, mean strings.Builder
	for i, m := range c.Lines[0].Y {
		if m != nil && c.Band.High[i] != nil && c.Band.Low[i] != nil {
			point(&mean, x(c.X[i]), y(*m))
			point(&band, x(c.X[i]), y(*c.Band.High[i]))
		}
	}
	for i, m := range slices.Backward(c.Lines[0].Y) {
		if m != nil && c.Band.High[i] != nil && c.Band.Low[i] != nil {
			point(&band, x(c.X[i]), y(*c.Band.Low[i]))
		}
	}
	p.Band, p.Mean = band.String(), mean.String()
	p.Hovers = c.hovers(x)
	if b := c.Baseline; b != nil {
		p.BaseY, p.BaseHeight, p.BaseMean = Pixels(y(b.High)), Pixels(max(1, y(b.Low)-y(b.High))), Pixels(y(b.Mean))
	}
	for _, m := range c.Marks {
		p.Marks = append(p.Marks, pastMark{Kind: m.Kind, X: Pixels(x(m.X)), Title: m.Text})
	}
	p.Text = fmt.Sprintf("%s from %s to %s, range %s to %s", p.Title, p.First, p.Last, p.Low, p.High)
	return p
}

// hovers divides the width of a drawing between its points, halfway between neighbors.
func (c *courseJSON) hovers(x func(float64) float64) (out []hover) {
	for i, m := range c.Lines[0].Y {
		if m == nil || c.Band.High[i] == nil {
			continue
		}
		from, to := 0., float64(scoreWidth)
		if i > 0 {
			from = (x(c.X[i-1]) + x(c.X[i])) / 2
		}
		if i < len(c.X)-1 {
			to = (x(c.X[i]) + x(c.X[i+1])) / 2
		}
		title := fmt.Sprintf("%s: %s ± %s", c.moment(c.X[i]), words.Short(*m), words.Short(*c.Band.High[i]-*m))
		out = append(out, hover{Pixels(from), Pixels(to - from), title})
	}
	return out
}

// fitting returns the title of an axis, without the signal if it is too long: the heading of the chart names the
// signal.
func fitting(title string) string {
	const most = 22
	if of, _, found := strings.Cut(title, " "); found && utf8.RuneCountInString(title) > most {
		return of
	}
	return shorten(title, most)
}

// limits returns the lowest and the highest value of the drawing, which always differ.
func (c *courseJSON) limits() (low, high float64) {
	all := append(values(c.Band.Low), values(c.Band.High)...)
	if b := c.Baseline; b != nil {
		all = append(all, b.Low, b.High)
	}
	low, high = slices.Min(all), slices.Max(all)
	if low == high {
		low, high = low-1, high+1
	}
	return low, high
}

// moment describes a position on the axis.
func (c *courseJSON) moment(x float64) string {
	if c.Clock {
		return words.Stamp(time.Unix(int64(x), 0))
	}
	return fmt.Sprintf("%s %.0f", c.Unit, x)
}
