package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// text prints a story: the alarm, its plots, the shifts of other signals, and the consequences.
func (s *storyJSON) text(w io.Writer) error {
	_, err := io.WriteString(w, s.textWithin(terminal.PaintFor(w), terminal.Columns(w)))
	return err
}

// textWithin returns the story in lines of at most most columns. If most is 0, there is no limit.
func (s *storyJSON) textWithin(p terminal.Paint, most int) string {
	a := s.alarm
	parts := []string{
		terminal.FactsText(p, most, a, terminal.StoryOf(a)), histogramText(p, most, a), s.historyText(p, most), s.scoresText(p, most),
		shiftsText(p, most, a.UnitName(), a.Shifts), s.incidentText(p, most),
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "\n")
}

// plotCells is the length of the longest bar, in characters, and leastCells on a narrow terminal.
const plotCells, leastCells = 24, 8

// histogramText draws the baseline and the units since the onset side by side, with two bins of the histogram per line.
func histogramText(p terminal.Paint, most int, a alerts.Alarm) string {
	h, unit := a.Histogram, a.UnitName()
	if h == nil {
		return ""
	}
	before, now := h.Units()
	heading := []string{
		strings.ToUpper(terminal.Printable(words.Quantity(a))), "BASELINE, " + unit.Count(int64(before)), "", "SINCE THE ONSET, " + unit.Count(int64(now)), "",
	}
	cells, widths := barsText(h, heading, plotCells)
	var b strings.Builder
	if most > 0 && lineWidth(widths) > most {
		b.WriteString(terminal.Indented(most, fmt.Sprintf("%s: %s; %s", heading[0], heading[1], heading[3])))
		heading = []string{"", "BASELINE", "", "NOW", ""}
		_, widths = barsText(h, heading, plotCells)
		cells, widths = barsText(h, heading, min(plotCells, max(leastCells, plotCells-(lineWidth(widths)-most+1)/2)))
	}
	for r, row := range cells {
		line := "  "
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-terminal.Width(cell)))
			switch {
			case r > 0 && i == 1:
				cell = p.In(terminal.Faint, cell)
			case r > 0 && i == 3:
				cell = p.In(terminal.Yellow, cell)
			}
			line += cell + pad + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// barsText returns the heading and the lines of a histogram, and the widths of its columns. The longest bar has longest
// characters.
func barsText(h *finding.Histogram, heading []string, longest int) (cells [][]string, widths []int) {
	before, now := h.Units()
	baseline, current := pairedShares(h.Baseline, before), pairedShares(h.Current, now)
	largest := max(slices.Max(baseline), slices.Max(current))
	rows := [][]string{heading}
	for i := range baseline {
		if i > 0 && h.Low == h.High {
			break // every value is the same
		}
		rows = append(rows, []string{
			binText(h, i, len(baseline)),
			bar(baseline[i]/largest, longest), shareText(baseline[i]), bar(current[i]/largest, longest), shareText(current[i]),
		})
	}
	cells, widths = terminal.Measured(rows)
	widths[1], widths[3] = max(widths[1], longest), max(widths[3], longest)
	return cells, widths
}

// lineWidth returns the width of a line of a histogram, whose last column contains a percentage.
func lineWidth(widths []int) int {
	total := 2 + len(shareText(1))
	for _, width := range widths[:len(widths)-1] {
		total += width + 2
	}
	return total
}

// pairedShares returns the share of units in each pair of bins.
func pairedShares(counts []int, units int) []float64 {
	out := make([]float64, (len(counts)+1)/2)
	for i, n := range counts {
		out[i/2] += float64(n) / float64(max(1, units))
	}
	return out
}

// binText names the values of bin i of bins. The outermost bins also contain the values beyond them.
func binText(h *finding.Histogram, i, bins int) string {
	edge := func(i int) string {
		f := float64(i) / float64(bins)
		x := h.Low*(1-f) + h.High*f
		if step := (h.High/2 - h.Low/2) / float64(bins) * 2; math.Abs(x) < step/1e6 {
			x = 0
		}
		return detectors.Figure(x, 3)
	}
	switch {
	case h.Low == h.High:
		return edge(0)
	case i == 0:
		return "below " + edge(1)
	case i == bins-1:
		return edge(i) + " and more"
	}
	return edge(i) + " to " + edge(i+1)
}

func shareText(share float64) string { return fmt.Sprintf("%5.1f%%", 100*share) }

// bar draws a share as up to longest characters, to an eighth of a character. A share above 0 is always visible.
func bar(share float64, longest int) string {
	eighths := int(math.Round(share * float64(8*longest)))
	if share > 0 {
		eighths = max(1, eighths)
	}
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}

// The plot of the score: its maximum width in units, and its rows, each a quarter of the threshold high, up to twice
// the threshold.
const (
	scoreColumns = 72
	scoreRow     = .25
	scoreTop     = 2
)

// scoresText draws the score of the alarm's stream around the alarm, with a line for the threshold.
func (s *storyJSON) scoresText(p terminal.Paint, most int) string {
	scores := s.around()
	if len(scores) == 0 {
		return ""
	}
	columns := squeezed(scores, scoreColumns)
	highest := 0.0
	for _, x := range columns {
		highest = max(highest, x)
	}
	var b strings.Builder
	b.WriteString(terminal.Indented(most, fmt.Sprintf("SCORE of the %s that ended at records %d to %d; maximum %s (threshold 1)",
		s.alarm.UnitName().Many(), scores[0].Index, scores[len(scores)-1].Index, words.Short(highest))))
	for row := int(min(scoreTop, max(highest, 1)) / scoreRow); row >= 0; row-- {
		b.WriteString(scoreRowText(p, columns, row))
	}
	return b.String()
}

// scoreRowText draws the part of the columns that lies within a row; row 0 is the lowest. The line of the threshold is
// at the bottom of the row that begins with the threshold.
func scoreRowText(p terminal.Paint, columns []float64, row int) string {
	label, empty := "      ", " "
	switch low := float64(row) * scoreRow; low {
	case 1:
		label, empty = "  1.0 ", p.In(terminal.Red, "─")
	case 0:
		label = "  0.0 "
	}
	line := ""
	for _, x := range columns {
		filled := int(math.Round(8 * (x/scoreRow - float64(row))))
		switch {
		case filled <= 0:
			line += empty
		case x >= 1:
			line += p.In(terminal.Red, string([]rune("▁▂▃▄▅▆▇█")[min(filled, 8)-1]))
		default:
			line += string([]rune("▁▂▃▄▅▆▇█")[min(filled, 8)-1])
		}
	}
	return strings.TrimRight(label+line, " ") + "\n"
}

// around returns the scores from well before the onset until well after the alarm was raised.
func (s *storyJSON) around() []scoredUnitJSON {
	onset, _ := slices.BinarySearchFunc(s.Scores, s.Alarm.Onset.FirstOffset, scoredUnitJSON.compare)
	found, _ := slices.BinarySearchFunc(s.Scores, s.Alarm.At.Offset, scoredUnitJSON.compare)
	margin := max(20, 2*(found-onset))
	return s.Scores[max(0, onset-margin):min(len(s.Scores), found+margin/2+1)]
}

func (u scoredUnitJSON) compare(index int64) int { return cmp.Compare(u.Index, index) }

// squeezed returns the highest score of each column, for at most most columns.
func squeezed(scores []scoredUnitJSON, most int) []float64 {
	per := (len(scores) + most - 1) / most
	out := make([]float64, (len(scores)+per-1)/per)
	for i, s := range scores {
		out[i/per] = max(out[i/per], float64(s.Score))
	}
	return out
}

// shiftsText lists how the most prominent signals have moved since the onset.
func shiftsText(p terminal.Paint, most int, unit finding.UnitName, shifts []finding.Shift) string {
	if len(shifts) == 0 {
		return ""
	}
	rows := [][]string{{"SIGNAL", "QUANTITY", "BASELINE", "NOW", "SHIFT", "Z", strings.ToUpper(unit.Many()), "ALARM"}}
	for _, s := range shifts {
		alarm := "-"
		if s.Drifted {
			alarm = "yes"
		}
		rows = append(rows, []string{
			s.Signal, finding.QuantityWords(s.Quantity), words.Short(s.BaselineMean), words.Short(s.CurrentMean),
			fmt.Sprintf("%+.2f SD", s.StandardShift), fmt.Sprintf("%+.1f", s.Z), fmt.Sprint(s.Units), alarm,
		})
	}
	return terminal.IndentedTable(p, most, rows)
}

// incidentText describes the incident: its state, its alarms, people's decisions and the retrain requests.
func (s *storyJSON) incidentText(p terminal.Paint, most int) string {
	i := s.Incident
	if i == nil {
		return ""
	}
	head := fmt.Sprintf("  INCIDENT %s", terminal.Printable(i.ID))
	if i.State != "" {
		head += " is " + p.In(terminal.StateColour(i.State), i.State)
	}
	if i.Severity != "" {
		head += ", severity " + string(i.Severity)
	}
	if i.MutedUntil != nil {
		head += ", muted until " + words.Stamp(*i.MutedUntil)
	}
	rows := [][]string{{"ALARM", "SIGNAL", terminal.StateColumn, "SCORE", "SINCE", "CHANGE"}}
	for _, a := range foremostFirst(i.Alarms) {
		rows = append(rows, []string{
			a.ID, a.Signal, words.AlarmState(a), words.Short(a.Score), a.Onset.Moment(a.UnitName()), a.EffectWords(a.Effect),
		})
	}
	var facts [][]string
	for _, d := range i.Decisions {
		facts = append(facts, []string{"decision", decisionText(d)})
	}
	for _, q := range s.Requests {
		facts = append(facts, []string{"request", orderText(q.Request)})
	}
	return head + "\n" + terminal.IndentedTable(p, most, rows) + terminal.IndentedTable(p, most, facts)
}

// orderText describes the order of a request, and its result.
func orderText(q ledger.Request) string {
	s := fmt.Sprintf("%s: %s, opened at %s: %s", q.ID, actionText(q), words.Stamp(q.OpenedAt), words.StateOf(q))
	if q.NewVersion != "" {
		s += ", new version " + q.NewVersion
	}
	if q.Reason != "" {
		s += " (" + q.Reason + ")"
	}
	if waits := words.WaitsFor(q); waits != "" {
		s += "; waiting for " + waits
	}
	return s
}
