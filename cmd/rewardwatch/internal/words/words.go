// Package words formats texts for commands and the console, so that both use the same words.
package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/alerts/annotation"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Limits on a person's texts about a decision, in characters, because they are kept with the state and sent with
// alerts.
const (
	MaxBy  = 200
	MaxWhy = 1000
)

// CheckText refuses text that is empty or longer than most characters. The error is for the author of the text.
func CheckText(name, text string, most int) error {
	if n := utf8.RuneCountInString(text); n == 0 || n > most {
		return fmt.Errorf("%s must be 1 to %d characters long", name, most)
	}
	return nil
}

// Fact is a line of a description: a name and a value. A line that continues the previous one has no name.
type Fact [2]string

// Name returns the name of the line.
func (f Fact) Name() string { return f[0] }

// Value returns the text of the line.
func (f Fact) Value() string { return f[1] }

// Printable replaces invisible characters: names come from telemetry.
func Printable(s string) string { return annotation.Printable(s) }

// Short formats a number to four significant digits.
func Short(x float64) string { return finding.Figure(x) }

// Moved describes the share of a signal's values that has certainly moved, by a certificate (finding.Effect). It
// returns "" below one percent.
func Moved(atLeast float64) string {
	percent := math.Floor(100*atLeast + 1e-9)
	if !(percent >= 1) {
		return ""
	}
	return fmt.Sprintf("at least %.0f%% of the values shifted", percent)
}

// Whole formats a number of units without decimals or exponent, to four significant digits.
func Whole[N ~float64](x N) string {
	digits := strconv.FormatFloat(float64(x), 'g', 4, 64)
	rounded, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return digits
	}
	return strconv.FormatFloat(math.Round(rounded), 'f', 0, 64)
}

// Grouped formats a count with commas between groups of three digits.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Stamp formats a time for people, to the second (finding.Stamp). It is the one format of such times.
func Stamp(t time.Time) string { return finding.Stamp(t) }

// Sparkline draws values, which are finite, as a row of characters from the lowest to the highest.
func Sparkline(values []float64) string {
	const levels = "▁▂▃▄▅▆▇█"
	if len(values) == 0 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	var b strings.Builder
	for _, x := range values {
		at := 0
		if high > low {
			at = int((x - low) / (high - low) * 7.999)
		}
		b.WriteRune([]rune(levels)[at])
	}
	return b.String()
}

// Plain returns a name such as telemetry_fault as words.
func Plain[T ~string](name T) string { return strings.ReplaceAll(string(name), "_", " ") }

// Baseline describes a baseline. unit is the name of its units.
func Baseline(b finding.BaselineRef, unit finding.UnitName) string {
	if b.ID == "" {
		return "none"
	}
	s := b.ID + ", " + unit.Count(int64(b.Units))
	if b.Provisional {
		s += ", provisional"
	}
	return s
}

// VersionChange names the versions that have changed.
func VersionChange(before, after ingest.Versions) string {
	var parts []string
	for _, v := range []struct{ name, before, after string }{
		{"policy", before.Policy, after.Policy}, {"environment", before.Env, after.Env}, {"reward", before.Reward, after.Reward},
	} {
		if v.after != v.before {
			parts = append(parts, v.name+" "+cmp.Or(v.after, "none"))
		}
	}
	return strings.Join(parts, ", ")
}

// Offsets lists ranges by partition.
func Offsets(ranges []ingest.Range) string {
	if len(ranges) == 0 {
		return "none"
	}
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b ingest.Range) int { return cmp.Compare(a.Partition, b.Partition) })
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}

// Place describes a unit and one of its records.
func Place(u finding.UnitRef, unit finding.UnitName, record ingest.Position) string {
	return fmt.Sprintf("%s, record %d of partition %s", u.Words(unit), record.Offset, record.Partition)
}

// Promise describes whether the budget of false alarms is met, how often a false alarm is expected, and how often the
// budget allows one. A caveat is a separate sentence. The text does not end with a full stop.
func Promise(p finding.Promise) string {
	limit, unit := rounded(float64(p.N), 4), p.UnitName().Sized()
	s := fmt.Sprintf("at most 1 false alarm per %s %s", limit, unit)
	if p.ARL0 > 0 {
		s = fmt.Sprintf("about 1 false alarm per %s %s (budget: 1 per %s)", rounded(float64(p.ARL0), 2), unit, limit)
	}
	if p.Confidence != "" {
		s = Confidence(p) + ": " + s
	}
	for _, c := range p.Caveats {
		s += ". " + strings.ToUpper(c[:1]) + c[1:]
	}
	return s
}

// Confidence says whether a budget of false alarms is met.
func Confidence(p finding.Promise) string {
	switch p.Confidence {
	case finding.ConfidenceKept:
		return "met"
	case finding.ConfidenceReduced:
		return "probably met"
	case finding.ConfidenceUnconfirmed:
		return "not confirmed"
	case finding.ConfidenceNone:
		return "no detector active"
	}
	return p.Confidence
}

// rounded formats a positive number with this many significant digits, at least two.
func rounded(x float64, digits int) string {
	if x < 10 {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	size := max(1, math.Pow(10, math.Floor(math.Log10(x))+1-float64(digits)))
	return Grouped(int64(math.Round(x/size) * size))
}

// Missing describes why a stream is not judged: what it lacks, or the rule of its telemetry fault.
func Missing(s finding.StreamSummary) string {
	if s.State == finding.TelemetryFault && s.Fault != "" {
		return "telemetry fault: " + s.Fault
	}
	return s.Missing
}

// AlarmState returns firing or resolved.
func AlarmState(a alerts.Alarm) string {
	if a.Resolved {
		return "resolved"
	}
	return "firing"
}

// Quantity names the quantity that the effect of an alarm compares.
func Quantity(a alerts.Alarm) string {
	name := finding.QuantityWords(a.Effect.Quantity)
	if name == a.Signal || name == "" {
		return a.Signal
	}
	return name + " of " + a.Signal
}

// Score returns the largest score of the detectors that have one, and whether any has.
func Score(s *finding.StreamSummary) (largest float64, any bool) {
	for _, d := range s.Detectors {
		if d.Threshold != 0 && (!any || d.Score > largest) {
			largest, any = d.Score, true
		}
	}
	return largest, any
}

// Group builds a group from the API's representation. Labels are sorted by name, since their original order is unknown.
func Group(policy string, labels map[string]string) ingest.Group {
	var sorted []ingest.Label
	for name, value := range labels {
		sorted = append(sorted, ingest.Label{Name: name, Value: value})
	}
	slices.SortFunc(sorted, func(a, b ingest.Label) int { return strings.Compare(a.Name, b.Name) })
	return ingest.NewGroup(policy, sorted...)
}

// Versions formats versions in one line, or returns "" if none is known.
func Versions(v ingest.Versions) string {
	var parts []string
	for _, v := range []struct{ name, value string }{{"policy", v.Policy}, {"environment", v.Env}, {"reward", v.Reward}} {
		if v.value != "" {
			parts = append(parts, v.name+" "+v.value)
		}
	}
	return strings.Join(parts, ", ")
}
