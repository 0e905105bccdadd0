package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// text tells a story: the alarm, its plots, what the other signals did, and what came of it.
func (s *storyJSON) text(w io.Writer) error {
	p, a := paintFor(w), s.alarm
	parts := []string{
		factsText(p, a, storyOf(a)), histogramText(p, words.Quantity(a), a.Histogram), s.scoresText(p), shiftsText(p, a.Shifts), s.incidentText(p),
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// storyOf tells all that is known of an alarm.
func storyOf(a alerts.Alarm) []words.Fact {
	facts := slices.Concat(what(a), why(a, len(a.Evidence)), otherCauses(a), versionFacts(a), where(a))
	if more := effectText(a.Effect); more != "" {
		since := slices.IndexFunc(facts, func(f words.Fact) bool { return f.Name() == "since" })
		facts = slices.Insert(facts, since, words.Fact{"", more})
	}
	return facts
}

// effectText tells what of an effect its own text leaves out.
func effectText(e bank.Effect) string {
	var parts []string
	add := func(name string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			parts = append(parts, name+" "+words.Short(x))
		}
	}
	add("median moved by", e.MedianShift)
	add("10 % point by", e.Q10Shift)
	add("90 % point by", e.Q90Shift)
	add("spread times", e.SpreadRatio)
	add("Wasserstein distance", e.Wasserstein)
	if e.AtLeast > 0 {
		add("distribution moved by at least", e.AtLeast)
	}
	return strings.Join(parts, ", ")
}

// otherCauses tells the evidence for and against causes other than the one that holds.
func otherCauses(a alerts.Alarm) (facts []words.Fact) {
	name := "or"
	for _, c := range a.Causes {
		if c.Cause == a.Cause {
			continue
		}
		for _, e := range c.Evidence {
			if !slices.Contains(a.Evidence, e) {
				facts = append(facts, words.Fact{name, fmt.Sprintf("%s %.2f: %s", c.Cause, c.Weight, e)})
				name = ""
			}
		}
	}
	return facts
}

// versionFacts tells which versions acted before the onset and after it.
func versionFacts(a alerts.Alarm) (facts []words.Fact) {
	name := "versions"
	for _, v := range []struct{ of, before, after string }{
		{"policy_version", a.Before.Policy, a.After.Policy},
		{"env_version", a.Before.Env, a.After.Env},
		{"reward_version", a.Before.Reward, a.After.Reward},
	} {
		switch {
		case v.before == "" && v.after == "":
			continue
		case v.before == v.after:
			facts = append(facts, words.Fact{name, v.of + " " + v.after})
		default:
			facts = append(facts, words.Fact{name, fmt.Sprintf("%s %s, before the onset %s", v.of, dash(v.after), dash(v.before))})
		}
		name = ""
	}
	return facts
}

// plotCells is how many characters the longest bar has.
const plotCells = 24

// histogramText draws the baseline and the units since the onset side by side, two bins of the histogram a line.
func histogramText(p paint, name string, h *bank.Histogram) string {
	if h == nil {
		return ""
	}
	before, now := h.Units()
	baseline, current := pairedShares(h.Baseline, before), pairedShares(h.Current, now)
	largest := max(slices.Max(baseline), slices.Max(current))
	rows := [][]string{{
		strings.ToUpper(printable(name)), fmt.Sprintf("BASELINE, %s", plural(before, "unit")), "",
		fmt.Sprintf("SINCE THE ONSET, %s", plural(now, "unit")), "",
	}}
	for i := range baseline {
		if i > 0 && h.Low == h.High {
			break // every value is the same
		}
		rows = append(rows, []string{
			binText(h, i, len(baseline)), bar(baseline[i] / largest), shareText(baseline[i]), bar(current[i] / largest), shareText(current[i]),
		})
	}
	cells, widths := measured(rows)
	widths[1], widths[3] = max(widths[1], plotCells), max(widths[3], plotCells)
	var b strings.Builder
	for r, row := range cells {
		line := "  "
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-width(cell)))
			switch {
			case r > 0 && i == 1:
				cell = p.in(faint, cell)
			case r > 0 && i == 3:
				cell = p.in(yellow, cell)
			}
			line += cell + pad + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// pairedShares gives the share of so many units in each two bins.
func pairedShares(counts []int, units int) []float64 {
	out := make([]float64, (len(counts)+1)/2)
	for i, n := range counts {
		out[i/2] += float64(n) / float64(max(1, units))
	}
	return out
}

// binText names the values of one of so many bins. The outermost hold what lies beyond too.
func binText(h *bank.Histogram, i, bins int) string {
	edge := func(i int) string {
		f := float64(i) / float64(bins)
		x := h.Low*(1-f) + h.High*f
		if step := (h.High/2 - h.Low/2) / float64(bins) * 2; math.Abs(x) < step/1e6 {
			x = 0
		}
		return fmt.Sprintf("%.3g", x)
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

func shareText(share float64) string { return fmt.Sprintf("%5.1f %%", 100*share) }

// bar draws a share of plotCells, to an eighth of a character. What is there at all is seen.
func bar(share float64) string {
	eighths := int(math.Round(share * plotCells * 8))
	if share > 0 {
		eighths = max(1, eighths)
	}
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}

// The plot of the score: so many units wide at most, a row a quarter of the threshold, up to twice that.
const (
	scoreColumns = 72
	scoreRow     = .25
	scoreTop     = 2
)

// scoresText draws the score of the alarm's stream around the alarm, with the threshold as a line.
func (s *storyJSON) scoresText(p paint) string {
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
	fmt.Fprintf(&b, "  SCORE, units that ended at record %d to %d; highest %s, 1 is the threshold\n", scores[0].Index, scores[len(scores)-1].Index,
		words.Short(highest))
	for row := int(min(scoreTop, max(highest, 1)) / scoreRow); row >= 0; row-- {
		b.WriteString(scoreRowText(p, columns, row))
	}
	return b.String()
}

// scoreRowText draws what of the columns lies within a row, the lowest of which is 0. The line of the threshold lies along the foot of
// the row that begins with it.
func scoreRowText(p paint, columns []float64, row int) string {
	label, empty := "      ", " "
	switch low := float64(row) * scoreRow; low {
	case 1:
		label, empty = "  1.0 ", p.in(red, "─")
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
			line += p.in(red, string([]rune("▁▂▃▄▅▆▇█")[min(filled, 8)-1]))
		default:
			line += string([]rune("▁▂▃▄▅▆▇█")[min(filled, 8)-1])
		}
	}
	return strings.TrimRight(label+line, " ") + "\n"
}

// around gives the scores from well before the onset until well after the alarm was raised.
func (s *storyJSON) around() []scoredUnitJSON {
	onset, _ := slices.BinarySearchFunc(s.Scores, s.Alarm.Onset.FirstOffset, scoredUnitJSON.compare)
	found, _ := slices.BinarySearchFunc(s.Scores, s.Alarm.At.Offset, scoredUnitJSON.compare)
	margin := max(20, 2*(found-onset))
	return s.Scores[max(0, onset-margin):min(len(s.Scores), found+margin/2+1)]
}

func (u scoredUnitJSON) compare(index int64) int { return cmp.Compare(u.Index, index) }

// squeezed gives the highest score of each of so many columns at most.
func squeezed(scores []scoredUnitJSON, most int) []float64 {
	per := (len(scores) + most - 1) / most
	out := make([]float64, (len(scores)+per-1)/per)
	for i, s := range scores {
		out[i/per] = max(out[i/per], float64(s.Score))
	}
	return out
}

// shiftsText lists what the signals that stand out have done since the onset.
func shiftsText(p paint, shifts []bank.Shift) string {
	if len(shifts) == 0 {
		return ""
	}
	rows := [][]string{{"  SIGNAL", "QUANTITY", "BASELINE", "NOW", "SHIFT", "Z", "UNITS", "ALARM"}}
	for _, s := range shifts {
		alarm := "-"
		if s.Drifted {
			alarm = "yes"
		}
		rows = append(rows, []string{
			"  " + s.Signal, bank.QuantityWords(s.Quantity), words.Short(s.BaselineMean), words.Short(s.CurrentMean),
			fmt.Sprintf("%+.2f sd", s.StandardShift), fmt.Sprintf("%+.1f", s.Z), fmt.Sprint(s.Units), alarm,
		})
	}
	return tableText(p, rows)
}

// incidentText tells of the incident: its state, its alarms, what people decided of it and what was ordered for it.
func (s *storyJSON) incidentText(p paint) string {
	i := s.Incident
	if i == nil {
		return ""
	}
	head := fmt.Sprintf("  INCIDENT %s", printable(i.ID))
	if i.State != "" {
		head += " is " + p.in(stateColour(i.State), i.State)
	}
	if i.Severity != "" {
		head += ", severity " + string(i.Severity)
	}
	if i.MutedUntil != nil {
		head += ", muted until " + words.Time(*i.MutedUntil)
	}
	rows := [][]string{{"  ALARM", "SIGNAL", stateColumn, "SCORE", "SINCE", "BY"}}
	for k := range i.Alarms {
		a := i.Alarms[k].alarm()
		rows = append(rows, []string{
			"  " + a.ID, a.Signal, words.AlarmState(a), words.Short(a.Score), a.Onset.Moment(), a.Effect.String(),
		})
	}
	var facts [][]string
	for _, d := range i.Decisions {
		facts = append(facts, []string{"  decided", d.text()})
	}
	for _, q := range s.Requests {
		facts = append(facts, []string{"  ordered", orderText(q.Request)})
	}
	return head + "\n" + tableText(p, rows) + tableText(p, facts)
}

// orderText tells what a request orders, and what came of it.
func orderText(q retrain.Request) string {
	s := fmt.Sprintf("%s %s by recipe %s, of %s, at %s: %s", q.Kind, q.ID, dash(q.Recipe), q.Target, words.Time(q.OpenedAt), words.Plain(q.State))
	if q.NewVersion != "" {
		s += ", new version " + q.NewVersion
	}
	if q.Reason != "" {
		s += " (" + q.Reason + ")"
	}
	if waits := words.WaitsFor(q); waits != "" {
		s += "; waits for " + waits
	}
	return s
}
