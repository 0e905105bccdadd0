package alerts

import (
	"slices"
	"time"
)

// DecisionKind is the kind of a person's decision on an incident.
type DecisionKind string

// The kinds of decisions. Accepted and Reset end the incident: what drifted is the new normal, and the group collects a
// new baseline. Muted keeps the incident open without notifications until a given time; Unmuted ends that early.
// Commented changes nothing: it is a note for the next person.
const (
	Accepted  DecisionKind = "accepted"
	Muted     DecisionKind = "muted"
	Unmuted   DecisionKind = "unmuted"
	Reset     DecisionKind = "reset"
	Commented DecisionKind = "commented"
	Released  DecisionKind = "released" // ends the incident of a guard; agents then stop obeying the guard
)

// DecisionKinds returns all kinds.
func DecisionKinds() []DecisionKind {
	return []DecisionKind{Accepted, Muted, Unmuted, Reset, Commented, Released}
}

// keptDecisions is the number of decisions that an incident keeps, and keptComments the number of comments among them.
const (
	keptDecisions = 20
	keptComments  = 15
)

// Decision is a person's decision on an incident.
type Decision struct {
	Kind  DecisionKind
	By    string // who
	Why   string
	At    time.Time
	Until time.Time // end of the mute, if Kind is Muted
}

// same reports whether two decisions are equal apart from their times.
func (d Decision) same(other Decision) bool {
	return d.Kind == other.Kind && d.By == other.By && d.Why == other.Why && d.Until.Equal(other.Until)
}

// IsMuted reports whether the incident is muted now.
func (i *Incident) IsMuted() bool { return !i.MutedUntil.IsZero() }

// Ends reports whether the decision ends its incident.
func (k DecisionKind) Ends() bool { return k == Accepted || k == Reset || k == Released }

// firingSince returns a text that identifies the current firing of an incident: each end of a mute begins a new one.
func (i *Incident) firingSince() string {
	for _, d := range slices.Backward(i.Decisions) {
		if d.Kind == Muted {
			return d.At.UTC().Format(time.RFC3339Nano)
		}
	}
	return "opening"
}

// Ended returns the decision that ended the incident, and false if there is none.
func (i *Incident) Ended() (Decision, bool) {
	for _, d := range slices.Backward(i.Decisions) {
		if d.Kind.Ends() {
			return d, true
		}
	}
	return Decision{}, false
}

// Incident returns the incident with an id, open or recently closed.
func (b *Tracker) Incident(id string) (Incident, bool) {
	for _, i := range b.Incidents() {
		if i.ID == id {
			return i, true
		}
	}
	return Incident{}, false
}

// End records the decision that ends an open incident. Its alarms resolve and it closes with the next findings of the
// bank, in which its baseline ends. End reports whether the incident was open.
func (b *Tracker) End(id string, d Decision) bool {
	i := b.open(id)
	if i == nil {
		return false
	}
	i.decide(d)
	i.MutedUntil = time.Time{}
	return true
}

// Mute suppresses the notifications of an open incident until a given time, or ends the mute if the decision is
// Unmuted. It returns the changes: none if the newest decision is the same, if there is no mute to end, or if no such
// incident is open.
func (b *Tracker) Mute(id string, d Decision) []Change {
	i := b.open(id)
	if i == nil || !i.IsMuted() && d.Kind == Unmuted || i.IsMuted() && i.newestIs(d) {
		return nil
	}
	i.decide(d)
	i.MutedUntil = d.Until // the zero time ends it
	return []Change{{Incident: copyIncident(i)}}
}

// Comment records a comment on an incident, open or recently closed. It returns the changes: none if the newest comment
// is the same, or if there is no such incident.
func (b *Tracker) Comment(id string, d Decision) []Change {
	for _, g := range b.order {
		i := g.incident(id)
		if i == nil {
			continue
		}
		for _, before := range slices.Backward(i.Decisions) {
			if before.Kind == Commented {
				if before.same(d) {
					return nil
				}
				break
			}
		}
		g.changed = true
		i.decide(d)
		return []Change{{Incident: copyIncident(i)}}
	}
	return nil
}

// incident returns an incident of the group, or nil if there is none with that id. It replaces the slice of closed
// incidents before the caller writes to it, because copies of that slice have been handed out.
func (g *groupTracker) incident(id string) *Incident {
	if g.Open != nil && g.Open.ID == id {
		return g.Open
	}
	at := slices.IndexFunc(g.Closed, func(i Incident) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	g.Closed = slices.Clone(g.Closed)
	return &g.Closed[at]
}

// EndMutes ends the mutes that have expired.
func (b *Tracker) EndMutes(now time.Time) []Change {
	var changes []Change
	for _, g := range b.order {
		if i := g.Open; i != nil && i.IsMuted() && !now.Before(i.MutedUntil) {
			i.MutedUntil, g.changed = time.Time{}, true
			changes = append(changes, Change{Incident: copyIncident(i)})
		}
	}
	return changes
}

// open returns the open incident with an id, or nil. It marks the group as changed, because the caller decides on it.
func (b *Tracker) open(id string) *Incident {
	for _, g := range b.order {
		if g.Open != nil && g.Open.ID == id {
			g.changed = true
			return g.Open
		}
	}
	return nil
}

// newestIs reports whether a decision repeats the newest one. Comments do not count as decisions.
func (i *Incident) newestIs(d Decision) bool {
	for _, before := range slices.Backward(i.Decisions) {
		if before.Kind != Commented {
			return before.same(d)
		}
	}
	return false
}

// decide records a decision. It drops old comments first, or the decision that ended the incident could be lost.
func (i *Incident) decide(d Decision) {
	kept := append(slices.Clone(i.Decisions), d)
	comments := 0
	for at := len(kept) - 1; at >= 0; at-- {
		if kept[at].Kind != Commented {
			continue
		}
		if comments++; comments > keptComments {
			kept = slices.Delete(kept, at, at+1)
		}
	}
	i.Decisions = keepLast(kept, keptDecisions)
}
