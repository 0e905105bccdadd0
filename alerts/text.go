package alerts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/alerts/annotation"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// summary describes in one line which signals of which group an incident is about, and why. It contains nothing that
// changes with every unit, because a new summary is pushed at once.
func (i *Incident) summary() string {
	own, later := i.firingSignals()
	if d, ended := i.Ended(); ended && d.Kind == Released {
		return fmt.Sprintf("%s: guard %s: released by %s", i.Group.Policy, i.Guard().Name, d.By)
	}
	if g := i.Guard(); g != nil {
		if i.Closed {
			return fmt.Sprintf("%s: guard %s: released because the policy is within the limit again", i.Group.Policy, g.Name)
		}
		return fmt.Sprintf("%s: guard %s: %s since %s (cause: %s)", i.Group.Policy, g.Name, g.State, i.Opened.Moment(i.UnitName()), i.Cause)
	}
	if d, ended := i.Ended(); ended {
		if d.Kind == Reset {
			return fmt.Sprintf("%s: closed because the baseline was reset; collecting a new one", i.Group)
		}
		return fmt.Sprintf("%s: accepted as the new normal by %s; collecting a new baseline", i.Group, d.By)
	}
	since, joined := i.Earliest().Onset, ""
	switch {
	case len(own)+len(later) == 0:
		return fmt.Sprintf("%s: all signals have returned to their baseline (cause: %s)", i.Group, i.causeWords())
	case len(own) == 0:
		own, since = later, i.Headline().Onset
	case len(later) > 0:
		joined = ", later " + annotation.List(later, ", ")
	}
	return fmt.Sprintf("%s: %s %s since %s%s (cause: %s)", i.Group, annotation.List(own, ", "), i.verb(len(own)), since.Moment(i.UnitName()), joined, i.causeWords())
}

// verb returns the verb phrase for a number of signals of the incident.
func (i *Incident) verb(signals int) string {
	switch {
	case i.Improvement && signals > 1:
		return "have been better than the baseline"
	case i.Improvement:
		return "has been better than the baseline"
	case signals > 1:
		return "have drifted from the baseline"
	}
	return "has drifted from the baseline"
}

// decisions lists what people decided on the incident, one per line.
func (i *Incident) decisions() string {
	var out []string
	for _, d := range i.Decisions {
		out = append(out, d.String())
	}
	return strings.Join(out, "\n")
}

// String describes who decided what, when and why.
func (d Decision) String() string {
	s := fmt.Sprintf("%s by %s at %s", d.Kind, d.By, finding.Stamp(d.At))
	if d.Kind == Muted {
		s += " until " + finding.Stamp(d.Until)
	}
	return s + ": " + d.Why
}

// Guard returns the guard whose trip opened the incident; nil for drift.
func (i *Incident) Guard() *finding.Guard {
	if len(i.Alarms) == 0 {
		return nil
	}
	return i.Alarms[len(i.Alarms)-1].Guard
}

// LaterThan reports whether the alarm's signal began to drift only after an incident had opened.
func (a *Alarm) LaterThan(i *Incident) bool { return a.OnsetFrom.Ordinal > i.Opened.Ordinal }

// firingSignals returns the signals that drift now, by importance: those of the incident's onset, and later ones.
func (i *Incident) firingSignals() (own, later []string) {
	for k := range i.Alarms {
		switch a := &i.Alarms[k]; {
		case a.Resolved:
		case a.LaterThan(i):
			later = append(later, a.Signal)
		default:
			own = append(own, a.Signal)
		}
	}
	return Ranked(own), Ranked(later)
}

// describe describes every alarm on a separate line: firing alarms first, each part ordered by the rank of the signal.
func (i *Incident) describe() string {
	var firing, resolved []string
	alarms := pointers(i.Alarms)
	slices.SortStableFunc(alarms, func(a, b *Alarm) int { return cmp.Compare(signals.Rank(a.Signal), signals.Rank(b.Signal)) })
	for _, a := range alarms {
		if a.Resolved {
			resolved = append(resolved, fmt.Sprintf("%s: resolved at %s", a.Signal, a.ResolvedAt.Words(a.UnitName())))
		} else {
			firing = append(firing, a.describe())
		}
	}
	lines := annotation.List(append(firing, resolved...), "\n")
	if question := i.Question(); question != "" {
		return question + "\n" + lines
	}
	return lines
}

// Question asks whether a lasting change that began while the baseline was being collected is the new normal. It
// returns "" for other incidents and for closed ones.
func (i *Incident) Question() string {
	confirmed := func(a Alarm) bool { return a.Baseline.Provisional && !a.Provisional }
	if i.Closed || !slices.ContainsFunc(i.Alarms, confirmed) {
		return ""
	}
	return "The change began while the baseline was being collected, and persists. If it is the new normal, accept it (rewardwatch incident accept " +
		i.ID + ") to collect a new baseline. If not, fix or retrain the policy; the baseline will be completed afterwards."
}

func (a *Alarm) describe() string {
	if g := a.Guard; g != nil {
		return fmt.Sprintf("%s; since %s; proven at %s", g.Why, a.Onset.Moment(a.UnitName()), a.At.Moment(a.UnitName()))
	}
	effect := a.Foremost()
	s := fmt.Sprintf("%s; since %s; score %s (threshold 1) by %s", effect.Words(a.UnitName()), a.Onset.Words(a.UnitName()),
		finding.Figure(a.Score), strings.Join(a.Detectors, ", "))
	if a.Signal != effect.Quantity {
		s = a.Signal + ": " + s
	}
	if a.Improvement {
		s += "; an improvement"
	}
	if a.Provisional {
		s += "; on a provisional baseline"
	}
	return s
}

// describeOffsets lists ranges.
func describeOffsets(ranges []ingest.Range) string {
	var out []string
	for _, r := range ranges {
		out = append(out, r.String())
	}
	return annotation.List(out, ", ")
}

// offsets returns the offset ranges of all alarms, one per partition.
func (i *Incident) offsets() []ingest.Range {
	var out []ingest.Range
	for k := range i.Alarms {
		out = ingest.Widen(out, i.Alarms[k].Offsets...)
	}
	slices.SortFunc(out, func(a, b ingest.Range) int { return int(a.Partition) - int(b.Partition) })
	return out
}

// Earliest returns the alarm with the earliest onset. An incident has at least one alarm.
func (i *Incident) Earliest() *Alarm {
	first := &i.Alarms[0]
	for k := range i.Alarms {
		if a := &i.Alarms[k]; a.Onset.Ordinal < first.Onset.Ordinal {
			first = a
		}
	}
	return first
}

// UnitName returns the name of the units that the alarm's group counts.
func (a *Alarm) UnitName() finding.UnitName { return a.Promise.UnitNameOf(a.At) }

// UnitName returns the name of the units that the incident's group counts.
func (i *Incident) UnitName() finding.UnitName {
	if len(i.Alarms) == 0 {
		return finding.UnitName{}
	}
	return i.Earliest().UnitName()
}

// since says when the signal drifted: the most likely unit and the confidence interval.
func (a *Alarm) since() string {
	s := a.Onset.Words(a.UnitName())
	if i := a.OnsetInterval(); i != nil {
		s += "; with 90% confidence " + i.Words(a.UnitName())
	}
	return s
}

// baselines lists the baselines that the alarms were compared with.
func (i *Incident) baselines() string {
	var out []string
	for k := range i.Alarms {
		b := i.Alarms[k].Baseline
		if b.ID == "" { // a guard has none
			continue
		}
		size := i.Alarms[k].UnitName().Count(int64(b.Units))
		if b.Provisional {
			size += ", provisional"
		}
		out = appendNew(out, fmt.Sprintf("%s (%s)", b.ID, size))
	}
	return annotation.List(out, ", ")
}

// streams lists the streams of a fault as signal (rule), sorted.
func (f *Fault) streams() string {
	var out []string
	for signal, rule := range f.Streams {
		out = append(out, fmt.Sprintf("%s (%s)", signal, rule))
	}
	slices.Sort(out)
	return annotation.List(out, ", ")
}

func (f *Fault) summary() string {
	return fmt.Sprintf("%s: the telemetry of %s is faulty", f.Group, f.streams())
}

func (f *Fault) describe() string {
	s := fmt.Sprintf("Since %s. ", f.Since)
	for _, rule := range f.Streams {
		if fault.Suspends(rule) {
			return s + "Signals with wrong values are not judged until 20 episodes (or blocks of steps) without the fault have arrived."
		}
	}
	for _, rule := range f.Streams {
		if rule == fault.Late {
			return s + "Steps that arrive after the end of their episode are ignored. Episodes are judged without them."
		}
	}
	return s + "The values themselves are correct, so drift detection continues."
}
