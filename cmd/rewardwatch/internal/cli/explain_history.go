package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The plot of a signal over time: its width and height in characters, and the minimum number of units that a value of
// the rolling mean covers.
const (
	historyColumns = 64
	historyRows    = 8
	historyRolled  = 20
)

// pastOf reads the history of the alarm's signal. Without an answer, the rest of the story is still printed.
func pastOf(ctx context.Context, c *terminal.Console, service *client.Client, a *wire.Alarm) *wire.History {
	query := url.Values{"signal": {a.Signal}}
	for name, value := range a.Group {
		query.Add("label", name+"="+value)
	}
	var h wire.History
	if err := service.Query(ctx, &h, query, "policies", a.Policy, "history"); err != nil {
		c.Tell("rewardwatch: cannot read the history of %s: %v", terminal.Printable(a.Signal), err)
		return nil
	}
	return &h
}

// coursePlot is a signal over time, drawn with characters. Columns are equal intervals of time or, without a clock, of
// units.
type coursePlot struct {
	means       []float64 // by column
	low, high   float64   // values of the lowest and the highest row
	base        *wire.Level
	onset       int            // column
	versions    map[int]string // what changed, by column
	first, last string
}

// historyText draws the rolling mean of the alarm's signal with the band of its baseline and the onset.
func (s *storyJSON) historyText(p terminal.Paint, most int) string {
	if s.History == nil || len(s.History.Spans) < 2 {
		return ""
	}
	plot, unit := plotOf(s.History, s.alarm.Onset, s.alarm.UnitName()), s.alarm.UnitName()
	heading := fmt.Sprintf("%s over time: • rolling mean over at least %d %s", strings.ToUpper(terminal.Printable(s.Alarm.Signal)), historyRolled, unit.Many())
	if plot.base != nil {
		heading += fmt.Sprintf(", ░ baseline %s ± %s", words.Short(float64(plot.base.Mean)), words.Short(float64(plot.base.SD)))
	}
	heading += ", │ onset"
	if len(plot.versions) > 0 {
		heading += ", ┆ new version"
	}
	var b strings.Builder
	b.WriteString(terminal.Indented(most, heading))
	for row := historyRows - 1; row >= 0; row-- {
		b.WriteString(plot.row(p, row))
	}
	b.WriteString(plot.axis())
	for _, column := range slices.Sorted(maps.Keys(plot.versions)) {
		fmt.Fprintf(&b, "  %10s ┆ %s\n", "", terminal.Printable(plot.versions[column]))
	}
	return b.String()
}

// plotOf draws the time since the onset, and three times as much before it, as far as the history reaches.
func plotOf(h *wire.History, onset finding.UnitRef, unit finding.UnitName) coursePlot {
	start, end := h.Spans[0], h.Spans[len(h.Spans)-1]
	clock := start.From != nil && end.To != nil && *end.To > *start.From
	ends := func(s wire.HistorySpan) float64 {
		if clock && s.To != nil {
			return float64(*s.To)
		}
		return float64(s.FirstUnit + s.Units)
	}
	from, to, at := float64(start.FirstUnit), ends(end), float64(onset.Ordinal)
	if clock {
		from, at = float64(*start.From), float64(onset.TS)
	}
	if at > from && at < to {
		from = max(from, at-3*(to-at))
	}
	name := func(x float64) string {
		if clock {
			return words.Stamp(time.Unix(0, int64(x)))
		}
		return fmt.Sprintf("%s %.0f", unit.One(), x)
	}
	out := coursePlot{base: h.Baseline, first: name(from), last: name(to), versions: map[int]string{}}
	step := (to - from) / historyColumns
	out.onset = int(math.Floor((at - from) / step)) // outside the columns if the onset was more than a week ago
	for _, c := range h.Changes {
		x := float64(c.Unit)
		if clock && c.TS != nil {
			x = float64(*c.TS)
		}
		if column := int(math.Floor((x - from) / step)); column >= 0 && column < historyColumns {
			said := words.VersionChange(ingest.Versions(c.Before), ingest.Versions(c.After)) + " since " + name(x)
			out.versions[column] = strings.TrimPrefix(out.versions[column]+"; "+said, "; ")
		}
	}
	out.fill(h, func(span, column int) bool { return ends(h.Spans[span]) < from+(float64(column)+.5)*step })
	return out
}

// fill sets the mean of each column to that of the span at its middle. before reports whether a span ends before that
// middle.
func (c *coursePlot) fill(h *wire.History, before func(span, column int) bool) {
	var buckets []history.Bucket
	for _, s := range h.Spans {
		buckets = append(buckets, history.Bucket{N: s.Values, Mean: float32(s.Mean), SD: float32(s.SD)})
	}
	rolling, span := history.Rolling(buckets, historyRolled), 0
	for i := range historyColumns {
		for span < len(h.Spans)-1 && before(span, i) {
			span++
		}
		c.means = append(c.means, float64(rolling[span].Mean))
	}
	c.low, c.high = slices.Min(c.means), slices.Max(c.means)
	if c.base != nil {
		c.low, c.high = min(c.low, float64(c.base.Mean-c.base.SD)), max(c.high, float64(c.base.Mean+c.base.SD))
	}
}

// rowOf returns the row that shows a value.
func (c *coursePlot) rowOf(x float64) int {
	if !(c.high > c.low) {
		return 0
	}
	return int(math.Round((x - c.low) / (c.high - c.low) * (historyRows - 1)))
}

// row draws a row; row 0 is the lowest.
func (c *coursePlot) row(p terminal.Paint, row int) string {
	label := ""
	if row == 0 || row == historyRows-1 {
		label = words.Short(c.low + (c.high-c.low)*float64(row)/(historyRows-1))
	}
	banded := c.base != nil && row >= c.rowOf(float64(c.base.Mean-c.base.SD)) && row <= c.rowOf(float64(c.base.Mean+c.base.SD))
	line := ""
	for i, mean := range c.means {
		switch {
		case c.rowOf(mean) == row:
			line += p.In(terminal.Yellow, "•")
		case i == c.onset:
			line += p.In(terminal.Red, "│")
		case c.versions[i] != "":
			line += "┆"
		case banded:
			line += p.In(terminal.Faint, "░")
		default:
			line += " "
		}
	}
	return strings.TrimRight(fmt.Sprintf("  %10s %s", label, line), " ") + "\n"
}

// axis draws the time axis, with its ends.
func (c *coursePlot) axis() string {
	line := []rune(strings.Repeat("─", historyColumns))
	for column := range c.versions {
		line[column] = '┴'
	}
	if c.onset >= 0 && c.onset < historyColumns {
		line[c.onset] = '┴'
	}
	gap := max(1, historyColumns-len(c.first)-len(c.last))
	return fmt.Sprintf("  %10s %s\n  %10s %s%s%s\n", "", string(line), "", c.first, strings.Repeat(" ", gap), c.last)
}
