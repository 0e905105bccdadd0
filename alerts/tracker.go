package alerts

import (
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Limits of what a Tracker keeps per group, so that a stream that comes and goes for months does not fill the memory.
const (
	keptIncidents = 50  // closed ones
	keptAlarms    = 100 // per incident; beyond that, the oldest resolved alarms are dropped, but never firing ones
	keptFaults    = 32  // ended faults of streams, for the cause of alarms whose onset lies before their end
)

// Tracker folds the findings of one policy into alarms, incidents and telemetry faults. One goroutine owns it. It uses
// no clock and no I/O: the same findings yield the same changes and the same ids.
type Tracker struct {
	groups map[ingest.Group]*groupTracker
	order  []*groupTracker // in the order of their first findings
}

// groupTracker is the state of one group. Slices inside its alarms and incidents are replaced, never written to,
// because copies of them have been handed out.
type groupTracker struct {
	Group      ingest.Group
	Open       *Incident       // nil if there is none
	Closed     []Incident      // the oldest first
	Faulty     []StreamFault   // streams in a telemetry fault, in the order in which their faults began
	FaultSince finding.UnitRef // when the first of these began
	PastFaults []StreamFault   // ended ones, the oldest first

	changed bool // since it was saved
}

// NewTracker returns an empty tracker.
func NewTracker() *Tracker {
	return &Tracker{groups: map[ingest.Group]*groupTracker{}}
}

// Apply processes one finding and returns the changes, in order; nil if there are none. Findings must come in the order
// in which the bank produced them.
func (b *Tracker) Apply(f finding.Finding) []Change {
	g := b.group(f.Group)
	g.changed = true
	switch f.Kind {
	case finding.GroupQuiet:
		return g.quiet(f.At)
	case finding.StreamUpdated:
		return g.renew(f)
	default:
		return g.moved(f)
	}
}

// Incidents returns the open incidents and those that closed recently, group by group, the newest of a group last.
func (b *Tracker) Incidents() []Incident {
	var out []Incident
	for _, g := range b.order {
		out = append(out, g.Closed...)
		if g.Open != nil {
			out = append(out, *copyIncident(g.Open))
		}
	}
	return out
}

// Alarms returns the firing alarms. Resolved ones are in their incidents.
func (b *Tracker) Alarms() []Alarm {
	var out []Alarm
	for _, g := range b.order {
		if g.Open == nil {
			continue
		}
		for _, a := range g.Open.Alarms {
			if !a.Resolved {
				out = append(out, a)
			}
		}
	}
	return out
}

// Faults returns the telemetry faults that have not ended, at most one per group.
func (b *Tracker) Faults() []Fault {
	var out []Fault
	for _, g := range b.order {
		if len(g.Faulty) > 0 {
			out = append(out, *g.fault())
		}
	}
	return out
}

// group returns the tracker of a group, and creates it if there is none.
func (b *Tracker) group(group ingest.Group) *groupTracker {
	g := b.groups[group]
	if g == nil {
		g = &groupTracker{Group: group}
		b.add(g)
	}
	return g
}

func (b *Tracker) add(g *groupTracker) {
	b.groups[g.Group] = g
	b.order = append(b.order, g)
}

// moved handles a stream that changed its state. Only the new state counts, so that a stream that returns from a
// telemetry fault to drift keeps its alarm.
func (g *groupTracker) moved(f finding.Finding) []Change {
	if f.To == finding.TelemetryFault {
		return g.beginFault(f)
	}
	changes := g.endFault(f)
	if f.To == finding.Drift {
		return append(changes, g.drifted(f)...)
	}
	return append(changes, g.recovered(f)...)
}

// drifted opens an alarm, and the group's incident if none is open.
func (g *groupTracker) drifted(f finding.Finding) []Change {
	if g.firing(f.Signal) != nil {
		return g.renew(f)
	}
	alarm := newAlarm(f, g.faults())
	if g.Open == nil {
		g.Open = newIncident(f, alarm.ID)
	}
	alarm.Incident = g.Open.ID
	g.Open.join(alarm)
	g.Open.judge(&alarm)
	return []Change{g.change(&alarm, true)}
}

// renew updates the alarm of a firing stream and judges its cause again. The onset stays as it was reported.
func (g *groupTracker) renew(f finding.Finding) []Change {
	a := g.firing(f.Signal)
	if a == nil {
		return nil
	}
	a.measure(f)
	g.Open.judge(a)
	if len(f.Shifts) > 0 {
		a.settle(f, g.faults())
		g.Open.attribute()
	}
	return []Change{g.change(a, false)}
}

// recovered resolves the alarm of a stream that returned to its baseline, or that started again with a new one.
func (g *groupTracker) recovered(f finding.Finding) []Change {
	a := g.firing(f.Signal)
	if a == nil {
		return nil
	}
	a.restoreHeight()
	return []Change{g.resolve(a, f.At)}
}

func (g *groupTracker) resolve(a *Alarm, at finding.UnitRef) Change {
	a.Resolved, a.ResolvedAt = true, at
	return g.change(a, false)
}

// quiet closes the group's incident.
func (g *groupTracker) quiet(at finding.UnitRef) []Change {
	if g.Open == nil {
		return nil
	}
	var changes []Change
	for i := range g.Open.Alarms {
		if a := &g.Open.Alarms[i]; !a.Resolved {
			changes = append(changes, g.resolve(a, at))
		}
	}
	closed := copyIncident(g.Open)
	closed.Closed, closed.ClosedAt, closed.MutedUntil = true, at, time.Time{}
	g.Open = nil
	g.Closed = keepLast(append(g.Closed, *closed), keptIncidents)
	return append(changes, Change{Incident: closed})
}

// beginFault records a stream's telemetry fault, which replaces a fault of the stream by another rule. Alarms stay
// open, but their cause is in doubt from now on.
func (g *groupTracker) beginFault(f finding.Finding) []Change {
	fault := StreamFault{Signal: f.Signal, Rule: f.Reason, Since: f.At}
	moved := []StreamFault{fault}
	if i := g.faulty(f.Signal); i >= 0 {
		moved = []StreamFault{g.pass(i, f.At), fault}
		g.Faulty[i] = fault
	} else {
		if len(g.Faulty) == 0 {
			g.FaultSince = f.At
		}
		g.Faulty = append(g.Faulty, fault)
	}
	return append([]Change{{Fault: g.fault(moved...)}}, g.blame(fault)...)
}

// blame attributes the firing alarms of the group to a fault that has just been found.
func (g *groupTracker) blame(fault StreamFault) []Change {
	if g.Open == nil || !fault.falsifies() {
		return nil
	}
	var blamed []*Alarm
	for i := range g.Open.Alarms {
		if a := &g.Open.Alarms[i]; !a.Resolved {
			a.blameTelemetry(fault)
			blamed = append(blamed, a)
		}
	}
	g.Open.attribute()
	var changes []Change
	for _, a := range blamed {
		changes = append(changes, g.change(a, false))
	}
	return changes
}

// endFault records that a stream has left its telemetry fault, if it was in one.
func (g *groupTracker) endFault(f finding.Finding) []Change {
	i := g.faulty(f.Signal)
	if i < 0 {
		return nil
	}
	last := g.fault()
	past := g.pass(i, f.At)
	g.Faulty = slices.Delete(g.Faulty, i, i+1)
	if len(g.Faulty) > 0 {
		return []Change{{Fault: g.fault(past)}}
	}
	last.Ended, last.Moved = true, []StreamFault{past}
	return []Change{{Fault: last}}
}

// pass adds the fault at index i of Faulty to the ended ones and returns it.
func (g *groupTracker) pass(i int, at finding.UnitRef) StreamFault {
	past := g.Faulty[i]
	past.Ended, past.Until = true, at
	g.PastFaults = keepLast(append(g.PastFaults, past), keptFaults)
	return past
}

// firing returns the alarm of a signal that has not resolved, or nil.
func (g *groupTracker) firing(signal string) *Alarm {
	if g.Open == nil {
		return nil
	}
	for i := range g.Open.Alarms {
		if a := &g.Open.Alarms[i]; a.Signal == signal && !a.Resolved {
			return a
		}
	}
	return nil
}

// faulty returns the index of the fault that a signal is in, or -1.
func (g *groupTracker) faulty(signal string) int {
	return slices.IndexFunc(g.Faulty, func(s StreamFault) bool { return s.Signal == signal })
}

// faults returns the known faults of the group, ended ones first.
func (g *groupTracker) faults() []StreamFault {
	return slices.Concat(g.PastFaults, g.Faulty)
}

// fault sums up the streams that are in a fault. moved are those whose faults have just begun or ended.
func (g *groupTracker) fault(moved ...StreamFault) *Fault {
	f := &Fault{Group: g.Group, Since: g.FaultSince, Streams: map[string]string{}, Moved: moved}
	for _, s := range g.Faulty {
		f.Streams[s.Signal] = s.Rule
	}
	return f
}

// change copies an alarm and its incident for the caller.
func (g *groupTracker) change(a *Alarm, fired bool) Change {
	alarm := *a
	return Change{Alarm: &alarm, Fired: fired, Incident: copyIncident(g.Open)}
}

func newAlarm(f finding.Finding, faults []StreamFault) Alarm {
	a := Alarm{
		ID: alarmID(f), Group: f.Group, Signal: f.Signal, Provisional: f.Provisional,
		Score: f.Score, At: f.At, Onset: f.Onset, OnsetFrom: f.OnsetFrom, OnsetTo: f.OnsetTo,
		OnsetOffsets: f.OnsetOffsets,
		Baseline:     cloneBaseline(f.Baseline), Promise: f.Promise, Before: f.Before, After: f.After, Guard: f.Guard,
	}
	a.measure(f)
	a.settle(f, faults)
	return a
}

// heightShare is the share of the highest score from which on a drift is at its height. The score of a drift that goes on
// varies by less than the rest of it.
const heightShare = .8

// measure updates how far the signal, and all others, have moved by now.
func (a *Alarm) measure(f finding.Finding) {
	a.Score = max(a.Score, f.Score)
	switch {
	case f.Improvement != a.Improvement: // another drift, whose score may never be as high
		a.Height, a.HeightHistogram = finding.Effect{}, nil
	case f.Score >= heightShare*a.Score:
		a.Height, a.HeightHistogram = f.Effect, f.Histogram
	}
	a.Detectors = slices.Clone(f.Detectors)
	a.Effect, a.Histogram = f.Effect, f.Histogram
	a.Improvement = f.Improvement
	a.Offsets = slices.Clone(f.Offsets)
	if len(f.Shifts) > 0 {
		a.Shifts, a.Return, a.Mix = foremost(f.Shifts, a.Signal), f.Return, f.Mix
	}
	if f.OffPolicy != nil {
		a.OffPolicy = f.OffPolicy
	}
}

// restoreHeight has a drift that is over report how far the signal had moved before it began to return. The newest
// measurement may include units from after that. Snapshots of old builds lack the height of alarms that were firing.
func (a *Alarm) restoreHeight() {
	if a.Height.Quantity != "" {
		a.Effect, a.Histogram = a.Height, a.HeightHistogram
	}
}

func newIncident(f finding.Finding, id string) *Incident {
	return &Incident{
		ID: id, Group: f.Group, Severity: severityOf(&f),
		Provisional: f.Provisional, Improvement: f.Improvement, Opened: f.At,
	}
}

// OffPolicy returns the newest off-policy estimate of the incident's alarms, or nil if there is none.
func (i *Incident) OffPolicy() (newest *finding.OffPolicy) {
	for k := range i.Alarms {
		if o := i.Alarms[k].OffPolicy; o != nil && (newest == nil || o.Units >= newest.Units) {
			newest = o
		}
	}
	return newest
}

// Shown returns what the newest off-policy estimate shows, or finding.NoSupport if there is none.
func (i *Incident) Shown() finding.Shown {
	if o := i.OffPolicy(); o != nil {
		return o.Shown
	}
	return finding.NoSupport
}

// join adds an alarm and determines the cause of the incident again.
func (i *Incident) join(a Alarm) {
	i.Alarms = append(i.Alarms, a)
	if len(i.Alarms) > keptAlarms {
		i.dropOldestResolved()
	}
	i.attribute()
}

// judge raises the severity of an improvement once an alarm is not, or is no longer, an improvement. The severity is
// never lowered: a page that was sent stands.
func (i *Incident) judge(a *Alarm) {
	if i.Improvement && !a.Improvement {
		i.Improvement, i.Severity = false, severity(a.Signal, false, a.Provisional)
	}
}

func (i *Incident) dropOldestResolved() {
	at := slices.IndexFunc(i.Alarms, func(a Alarm) bool { return a.Resolved })
	if at >= 0 {
		i.Alarms = slices.Delete(i.Alarms, at, at+1)
		i.Omitted++
	}
}

// Firing returns the number of alarms that have not resolved.
func (i *Incident) Firing() int {
	n := 0
	for k := range i.Alarms {
		if !i.Alarms[k].Resolved {
			n++
		}
	}
	return n
}

func copyIncident(i *Incident) *Incident {
	c := *i
	c.Alarms = slices.Clone(i.Alarms)
	return &c
}

func cloneBaseline(b finding.BaselineRef) finding.BaselineRef {
	b.Offsets = slices.Clone(b.Offsets)
	return b
}

// keepLast returns the last n elements. If it drops any, it allocates new memory, because copies of the old slice have
// been handed out.
func keepLast[T any](s []T, n int) []T {
	if len(s) <= n {
		return s
	}
	return slices.Clone(s[len(s)-n:])
}
