package alerts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Bounds of annotations: people read them on a phone, and receivers such as Slack refuse long ones.
const (
	maxListed     = 10
	maxAnnotation = 2000 // runes
)

// summary says in one line which signals of which group an incident is about, and why. It holds nothing that changes
// with every unit: a new summary is news.
func (i *Incident) summary() string {
	signals := i.firingSignals()
	if d, ended := i.Ended(); ended {
		return fmt.Sprintf("%s: accepted as the new normal by %s; a new baseline is collected", i.Group, d.By)
	}
	if len(signals) == 0 {
		return fmt.Sprintf("%s: every signal is back at its baseline (cause: %s)", i.Group, i.Cause)
	}
	verb := "drifts"
	if len(signals) > 1 {
		verb = "drift"
	}
	return fmt.Sprintf("%s: %s %s from the baseline since %s (cause: %s)", i.Group, listed(signals, ", "), verb,
		i.Earliest().Onset.Moment(), i.Cause)
}

// decisions tells what people decided of the incident, one line each.
func (i *Incident) decisions() string {
	var out []string
	for _, d := range i.Decisions {
		out = append(out, d.String())
	}
	return strings.Join(out, "\n")
}

// String says who decided what, when and why.
func (d Decision) String() string {
	s := fmt.Sprintf("%s by %s at %s", d.Kind, d.By, d.At.UTC().Format(time.RFC3339))
	if d.Kind == Muted {
		s += " until " + d.Until.UTC().Format(time.RFC3339)
	}
	return s + ": " + d.Why
}

// firingSignals gives the signals that drift now, in the order in which they joined.
func (i *Incident) firingSignals() []string {
	var signals []string
	for k := range i.Alarms {
		if a := &i.Alarms[k]; !a.Resolved {
			signals = append(signals, a.Signal)
		}
	}
	return signals
}

// describe tells of every alarm in one line each, the firing ones first.
func (i *Incident) describe() string {
	var firing, resolved []string
	for k := range i.Alarms {
		if a := &i.Alarms[k]; a.Resolved {
			resolved = append(resolved, fmt.Sprintf("%s: resolved at %s", a.Signal, a.ResolvedAt))
		} else {
			firing = append(firing, a.describe())
		}
	}
	return listed(append(firing, resolved...), "\n")
}

func (a *Alarm) describe() string {
	s := fmt.Sprintf("%s; since %s; score %s (threshold 1) by %s", a.Effect, a.Onset, number(a.Score),
		strings.Join(a.Detectors, ", "))
	if a.Signal != a.Effect.Quantity {
		s = a.Signal + ": " + s
	}
	if a.Provisional {
		s += "; the baseline is provisional"
	}
	return s
}

// describeOffsets lists ranges.
func describeOffsets(ranges []ingest.Range) string {
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return listed(out, ", ")
}

// offsets gives the offset ranges of all alarms, one a partition.
func (i *Incident) offsets() []ingest.Range {
	var out []ingest.Range
	for k := range i.Alarms {
		out = ingest.Widen(out, i.Alarms[k].Offsets...)
	}
	slices.SortFunc(out, func(a, b ingest.Range) int { return int(a.Partition) - int(b.Partition) })
	return out
}

// Earliest gives the alarm with the earliest onset. The incident has one at least.
func (i *Incident) Earliest() *Alarm {
	first := &i.Alarms[0]
	for k := range i.Alarms {
		if a := &i.Alarms[k]; a.Onset.Ordinal < first.Onset.Ordinal {
			first = a
		}
	}
	return first
}

// since says when the signal drifted: the likeliest unit, and between which ones with confidence.
func (a *Alarm) since() string {
	s := a.Onset.String()
	if i := a.OnsetInterval(); i != nil {
		s += fmt.Sprintf("; with 90 %% confidence %s", i)
	}
	return s
}

// baselines names the baselines that the alarms were held against.
func (i *Incident) baselines() string {
	var out []string
	for k := range i.Alarms {
		b := i.Alarms[k].Baseline
		s := fmt.Sprintf("%s (%d units)", b.ID, b.Units)
		if b.Provisional {
			s = fmt.Sprintf("%s (%d units, provisional)", b.ID, b.Units)
		}
		out = appendNew(out, s)
	}
	return listed(out, ", ")
}

// streams lists the streams of a fault as signal (rule), sorted.
func (f *Fault) streams() string {
	var out []string
	for signal, rule := range f.Streams {
		out = append(out, fmt.Sprintf("%s (%s)", signal, rule))
	}
	slices.Sort(out)
	return listed(out, ", ")
}

func (f *Fault) summary() string {
	return fmt.Sprintf("%s: the telemetry of %s is faulty", f.Group, f.streams())
}

func (f *Fault) describe() string {
	s := fmt.Sprintf("Since %s. ", f.Since)
	for _, rule := range f.Streams {
		if bank.FaultSuspends(rule) {
			return s + "Signals with wrong values are not judged for drift until 20 units have come without the fault."
		}
	}
	return s + "No values are wrong: what comes is judged for drift as ever."
}

// listed joins texts and counts those beyond the first few.
func listed(list []string, separator string) string {
	if len(list) > maxListed {
		list = append(slices.Clone(list[:maxListed]), fmt.Sprintf("and %d more", len(list)-maxListed))
	}
	return strings.Join(list, separator)
}

// truncate cuts a text off after n runes and says so by an ellipsis.
func truncate(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
