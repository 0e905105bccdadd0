// Package words says in words what the verbs print and the console shows, so that both say the same.
package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Bounds of what a person may say of a decision, in characters: it is kept with the state and goes out with alerts.
const (
	MaxBy  = 200
	MaxWhy = 1000
)

// CheckText refuses what is empty or longer than most characters. The error is for who wrote it.
func CheckText(name, text string, most int) error {
	if n := utf8.RuneCountInString(text); n == 0 || n > most {
		return fmt.Errorf("%s must be a text of 1 to %d characters", name, most)
	}
	return nil
}

// Fact is a line of what people are told of something: a name and a value. A line that goes on with what the one before tells has no
// name.
type Fact [2]string

// Name gives the name of the line.
func (f Fact) Name() string { return f[0] }

// Value gives what the line tells.
func (f Fact) Value() string { return f[1] }

// Printable replaces what is no visible character: names come from telemetry, and one that holds a control sequence would reach the
// terminal, or turn round the writing after it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Short gives a number to four significant digits.
func Short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// Whole gives a number of units without decimals or exponent, to four significant digits.
func Whole[N ~float64](x N) string {
	rounded, err := strconv.ParseFloat(Short(float64(x)), 64)
	if err != nil {
		return Short(float64(x))
	}
	return strconv.FormatFloat(math.Round(rounded), 'f', 0, 64)
}

// Grouped writes a count with a separator between groups of three digits.
func Grouped(n int64, separator string) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + separator + s[i:]
	}
	return s
}

// Time gives a time as people are shown it.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Instant gives a time in Unix nanoseconds as RFC 3339 in UTC, with as many decimals as are not 0.
func Instant(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

// Plain gives a name such as telemetry_fault as words.
func Plain[T ~string](name T) string { return strings.ReplaceAll(string(name), "_", " ") }

// Baseline names a baseline.
func Baseline(b bank.BaselineRef) string {
	if b.ID == "" {
		return "none"
	}
	s := fmt.Sprintf("%s, %d units", b.ID, b.Units)
	if b.Provisional {
		s += ", provisional"
	}
	return s
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

// Place names a unit and one of its records.
func Place(u bank.UnitRef, record ingest.Position) string {
	return fmt.Sprintf("%s, record %d of partition %d", u, record.Offset, record.Partition)
}

// Promise says how seldom false alarms may come, and how seldom they are expected to.
func Promise(p bank.Promise) string {
	s := fmt.Sprintf("one false alarm in %s units", Whole(p.N))
	if p.ARL0 > 0 {
		s += fmt.Sprintf(", expected one in %s (%s to %s)", Whole(p.ARL0), Whole(p.Low), Whole(p.High))
	}
	if p.Confidence != "" {
		s += "; promise: " + p.Confidence
	}
	return strings.Join(append([]string{s}, p.Caveats...), "; ")
}

// Missing says what keeps a stream from being judged: what it lacks, or the rule of its telemetry fault.
func Missing(s bank.StreamSummary) string {
	if s.State == bank.TelemetryFault && s.Fault != "" {
		return "telemetry fault: " + s.Fault
	}
	return s.Missing
}

// AlarmState is firing or resolved.
func AlarmState(a alerts.Alarm) string {
	if a.Resolved {
		return "resolved"
	}
	return "firing"
}

// Quantity names what the effect of an alarm compares.
func Quantity(a alerts.Alarm) string {
	name := bank.QuantityWords(a.Effect.Quantity)
	if name == a.Signal || name == "" {
		return a.Signal
	}
	return name + " of " + a.Signal
}

// Score gives the largest score of the detectors that have one, and whether any has.
func Score(s *bank.StreamSummary) (largest float64, any bool) {
	for _, d := range s.Detectors {
		if d.Threshold != 0 && (!any || d.Score > largest) {
			largest, any = d.Score, true
		}
	}
	return largest, any
}

// Group makes a group of what the API shows of it. The labels are sorted by name: their own order is not known.
func Group(policy string, labels map[string]string) ingest.Group {
	var sorted []ingest.Label
	for name, value := range labels {
		sorted = append(sorted, ingest.Label{Name: name, Value: value})
	}
	slices.SortFunc(sorted, func(a, b ingest.Label) int { return strings.Compare(a.Name, b.Name) })
	return ingest.NewGroup(policy, sorted...)
}
