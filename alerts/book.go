package alerts

import (
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// What a Book keeps of each group, so that a stream that comes and goes for months does not fill the memory.
const (
	keptIncidents = 50  // closed ones
	keptAlarms    = 100 // of an incident; beyond it the oldest resolved ones are dropped, firing ones never
	keptFaults    = 32  // ended faults of streams, for the cause of alarms whose onset lies before their end
)

// Book folds the findings of one policy into alarms, incidents and telemetry faults. It is owned by one goroutine and
// does nothing but keep books: no clock, no I/O. The same findings give the same changes and the same ids.
type Book struct {
	groups map[ingest.Group]*groupBook
	order  []*groupBook // as they came
}

// groupBook is what a Book knows of one group. Slices inside its alarms and incidents are replaced, never written to,
// because copies of them have been handed out.
type groupBook struct {
	Group      ingest.Group
	Open       *Incident     // nil where none is
	Closed     []Incident    // the oldest first
	Faulty     []streamFault // streams that are in a telemetry fault, in the order in which they fell into it
	FaultSince bank.UnitRef  // when the first of them did
	PastFaults []streamFault // ended ones, the oldest first

	changed bool // since it was saved
}

// streamFault is one telemetry fault of one stream.
type streamFault struct {
	Signal, Rule string
	Since        bank.UnitRef
	Ended        bool
	Until        bank.UnitRef // valid where Ended
}

// NewBook makes an empty book.
func NewBook() *Book {
	return &Book{groups: map[ingest.Group]*groupBook{}}
}

// Apply folds one finding in and gives what it changed, in order; nil where nothing did. Findings must come in the
// order in which the bank made them.
func (b *Book) Apply(f bank.Finding) []Change {
	g := b.group(f.Group)
	g.changed = true
	switch f.Kind {
	case bank.GroupQuiet:
		return g.quiet(f.At)
	case bank.StreamUpdated:
		return g.renew(f)
	default:
		return g.moved(f)
	}
}

// Incidents gives the open incidents and those that closed lately, group by group, the newest of a group last.
func (b *Book) Incidents() []Incident {
	var out []Incident
	for _, g := range b.order {
		out = append(out, g.Closed...)
		if g.Open != nil {
			out = append(out, *copyIncident(g.Open))
		}
	}
	return out
}

// Alarms gives the alarms that fire. Those that have resolved stand in their incidents.
func (b *Book) Alarms() []Alarm {
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

// Faults gives the telemetry faults that have not ended, one a group at most.
func (b *Book) Faults() []Fault {
	var out []Fault
	for _, g := range b.order {
		if len(g.Faulty) > 0 {
			out = append(out, *g.fault())
		}
	}
	return out
}

// group finds the book of a group, or starts one.
func (b *Book) group(group ingest.Group) *groupBook {
	g := b.groups[group]
	if g == nil {
		g = &groupBook{Group: group}
		b.add(g)
	}
	return g
}

func (b *Book) add(g *groupBook) {
	b.groups[g.Group] = g
	b.order = append(b.order, g)
}

// moved handles a stream that went to another state. Only the state that it went to counts, so that a stream that
// comes back from a telemetry fault into drift keeps the alarm that it had.
func (g *groupBook) moved(f bank.Finding) []Change {
	if f.To == bank.TelemetryFault {
		return g.beginFault(f)
	}
	changes := g.endFault(f)
	if f.To == bank.Drift {
		return append(changes, g.drifted(f)...)
	}
	return append(changes, g.recovered(f)...)
}

// drifted opens an alarm, and the group's incident where there is none.
func (g *groupBook) drifted(f bank.Finding) []Change {
	if g.firing(f.Signal) != nil {
		return g.renew(f)
	}
	alarm := newAlarm(f, g.faults())
	if g.Open == nil {
		g.Open = newIncident(f, alarm.ID)
	}
	alarm.Incident = g.Open.ID
	g.Open.join(alarm)
	return []Change{g.change(&alarm, true)}
}

// renew takes over how far a firing stream has gone by now, and judges its cause anew. The onset stays as it was told.
func (g *groupBook) renew(f bank.Finding) []Change {
	a := g.firing(f.Signal)
	if a == nil {
		return nil
	}
	a.measure(f)
	if len(f.Shifts) > 0 {
		a.settle(f, g.faults())
		g.Open.attribute()
	}
	return []Change{g.change(a, false)}
}

// recovered resolves the alarm of a stream that came back, or that started again with a new baseline.
func (g *groupBook) recovered(f bank.Finding) []Change {
	a := g.firing(f.Signal)
	if a == nil {
		return nil
	}
	return []Change{g.resolve(a, f.At)}
}

func (g *groupBook) resolve(a *Alarm, at bank.UnitRef) Change {
	a.Resolved, a.ResolvedAt = true, at
	return g.change(a, false)
}

// quiet closes the group's incident.
func (g *groupBook) quiet(at bank.UnitRef) []Change {
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

// beginFault notes a stream's telemetry fault. Alarms stay, but what made them is in doubt from now on.
func (g *groupBook) beginFault(f bank.Finding) []Change {
	fault := streamFault{Signal: f.Signal, Rule: f.Reason, Since: f.At}
	if i := g.faulty(f.Signal); i >= 0 {
		g.Faulty[i].Rule = f.Reason
	} else {
		if len(g.Faulty) == 0 {
			g.FaultSince = f.At
		}
		g.Faulty = append(g.Faulty, fault)
	}
	return append([]Change{{Fault: g.fault()}}, g.blame(fault)...)
}

// blame attributes the firing alarms of the group to a fault that has just been found.
func (g *groupBook) blame(fault streamFault) []Change {
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

// endFault notes that a stream has left its telemetry fault, where it was in one.
func (g *groupBook) endFault(f bank.Finding) []Change {
	i := g.faulty(f.Signal)
	if i < 0 {
		return nil
	}
	change := Change{Fault: g.fault()}
	past := g.Faulty[i]
	past.Ended, past.Until = true, f.At
	g.PastFaults = keepLast(append(g.PastFaults, past), keptFaults)
	g.Faulty = slices.Delete(g.Faulty, i, i+1)
	if len(g.Faulty) > 0 {
		change.Fault = g.fault()
	} else {
		change.Fault.Ended = true
	}
	return []Change{change}
}

// firing finds the alarm of a signal that has not resolved; nil where there is none.
func (g *groupBook) firing(signal string) *Alarm {
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

// faulty finds the fault that a signal is in; -1 where it is in none.
func (g *groupBook) faulty(signal string) int {
	return slices.IndexFunc(g.Faulty, func(s streamFault) bool { return s.Signal == signal })
}

// faults gives the faults that are known of the group, ended ones first.
func (g *groupBook) faults() []streamFault {
	return slices.Concat(g.PastFaults, g.Faulty)
}

// fault sums up the streams that are in a fault.
func (g *groupBook) fault() *Fault {
	f := &Fault{Group: g.Group, Since: g.FaultSince, Streams: map[string]string{}}
	for _, s := range g.Faulty {
		f.Streams[s.Signal] = s.Rule
	}
	return f
}

// change copies an alarm and its incident for the world outside.
func (g *groupBook) change(a *Alarm, fired bool) Change {
	alarm := *a
	return Change{Alarm: &alarm, Fired: fired, Incident: copyIncident(g.Open)}
}

func newAlarm(f bank.Finding, faults []streamFault) Alarm {
	a := Alarm{
		ID: alarmID(f), Group: f.Group, Signal: f.Signal, Provisional: f.Baseline.Provisional,
		Score: f.Score, At: f.At, Onset: f.Onset, OnsetFrom: f.OnsetFrom, OnsetTo: f.OnsetTo,
		OnsetOffsets: f.OnsetOffsets,
		Baseline:     cloneBaseline(f.Baseline), Promise: f.Promise, Before: f.Before, After: f.After,
	}
	a.measure(f)
	a.settle(f, faults)
	return a
}

// measure takes over how far the signal, and all others, have gone by now.
func (a *Alarm) measure(f bank.Finding) {
	a.Score = max(a.Score, f.Score)
	a.Detectors = slices.Clone(f.Detectors)
	a.Effect, a.Histogram = f.Effect, f.Histogram
	a.Offsets = slices.Clone(f.Offsets)
	if len(f.Shifts) > 0 {
		a.Shifts, a.Return = foremost(f.Shifts), f.Return
	}
}

func newIncident(f bank.Finding, id string) *Incident {
	return &Incident{
		ID: id, Group: f.Group, Severity: severity(f.Signal, f.Baseline.Provisional),
		Provisional: f.Baseline.Provisional, Opened: f.At,
	}
}

// join adds an alarm and attributes the incident anew.
func (i *Incident) join(a Alarm) {
	i.Alarms = append(i.Alarms, a)
	if len(i.Alarms) > keptAlarms {
		i.dropOldestResolved()
	}
	i.attribute()
}

func (i *Incident) dropOldestResolved() {
	at := slices.IndexFunc(i.Alarms, func(a Alarm) bool { return a.Resolved })
	if at >= 0 {
		i.Alarms = slices.Delete(i.Alarms, at, at+1)
		i.Omitted++
	}
}

// Firing counts the alarms that have not resolved.
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

func cloneBaseline(b bank.BaselineRef) bank.BaselineRef {
	b.Offsets = slices.Clone(b.Offsets)
	return b
}

// keepLast drops the oldest where there are more than n, into new memory: copies of the old have been handed out.
func keepLast[T any](s []T, n int) []T {
	if len(s) <= n {
		return s
	}
	return slices.Clone(s[len(s)-n:])
}
