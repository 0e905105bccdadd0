package alerts

import (
	"slices"
	"time"
)

// DecisionKind says what a person decided.
type DecisionKind string

// The kinds of decisions. Accepted and Reset end the incident: what drifted is the new normal, and the group warms up
// a new baseline. Muted keeps it open and tells nobody of it until a time; Unmuted ends that early.
const (
	Accepted DecisionKind = "accepted"
	Muted    DecisionKind = "muted"
	Unmuted  DecisionKind = "unmuted"
	Reset    DecisionKind = "reset"
)

// keptDecisions is how many decisions an incident remembers.
const keptDecisions = 20

// Decision is what a person decided of an incident.
type Decision struct {
	Kind  DecisionKind
	By    string // who
	Why   string
	At    time.Time
	Until time.Time // end of the mute, where Kind is Muted
}

// same reports whether two decisions say the same, whenever they were taken.
func (d Decision) same(other Decision) bool {
	return d.Kind == other.Kind && d.By == other.By && d.Why == other.Why && d.Until.Equal(other.Until)
}

// IsMuted reports whether nobody is to be told of the incident now.
func (i *Incident) IsMuted() bool { return !i.MutedUntil.IsZero() }

// Ends reports whether the decision ends its incident.
func (k DecisionKind) Ends() bool { return k == Accepted || k == Reset }

// firingSince tells the firings of an incident apart: each end of a mute begins another one.
func (i *Incident) firingSince() string {
	for _, d := range slices.Backward(i.Decisions) {
		if d.Kind == Muted {
			return d.At.UTC().Format(time.RFC3339Nano)
		}
	}
	return "opening"
}

// Ended gives the decision that ended the incident, and false where none did.
func (i *Incident) Ended() (Decision, bool) {
	for _, d := range slices.Backward(i.Decisions) {
		if d.Kind.Ends() {
			return d, true
		}
	}
	return Decision{}, false
}

// Incident gives the incident of an id, open or closed lately.
func (b *Book) Incident(id string) (Incident, bool) {
	for _, i := range b.Incidents() {
		if i.ID == id {
			return i, true
		}
	}
	return Incident{}, false
}

// End notes the decision that ends an open incident. Its alarms resolve, and it closes, with the findings of the bank
// whose baseline is ended next. It reports whether there was such an incident.
func (b *Book) End(id string, d Decision) bool {
	i := b.open(id)
	if i == nil {
		return false
	}
	i.decide(d)
	i.MutedUntil = time.Time{}
	return true
}

// Mute has nobody told of an open incident until a time, or ends that where the decision is Unmuted, and gives what that
// changed: nothing where the newest decision says the same, where there is no mute to end, or no such incident is open.
func (b *Book) Mute(id string, d Decision) []Change {
	i := b.open(id)
	if i == nil || !i.IsMuted() && d.Kind == Unmuted ||
		i.IsMuted() && len(i.Decisions) > 0 && i.Decisions[len(i.Decisions)-1].same(d) {
		return nil
	}
	i.decide(d)
	i.MutedUntil = d.Until // the zero time ends it
	return []Change{{Incident: copyIncident(i)}}
}

// EndMutes ends the mutes whose time has come.
func (b *Book) EndMutes(now time.Time) []Change {
	var changes []Change
	for _, g := range b.order {
		if i := g.Open; i != nil && i.IsMuted() && !now.Before(i.MutedUntil) {
			i.MutedUntil, g.changed = time.Time{}, true
			changes = append(changes, Change{Incident: copyIncident(i)})
		}
	}
	return changes
}

// open finds an open incident, which is about to be decided on; nil where there is none of that id.
func (b *Book) open(id string) *Incident {
	for _, g := range b.order {
		if g.Open != nil && g.Open.ID == id {
			g.changed = true
			return g.Open
		}
	}
	return nil
}

func (i *Incident) decide(d Decision) {
	i.Decisions = keepLast(append(slices.Clone(i.Decisions), d), keptDecisions)
}
