package guard

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// mostCases bounds the open incidents that a guard remembers. The oldest ones beyond it could trip the guard again.
const mostCases = 1024

// Incident is the part of an incident that limits on causes use.
type Incident struct {
	ID, Cause     string
	Why           string          // the foremost evidence for the cause
	Closed        bool            // if true, nothing else but ID counts
	At            finding.UnitRef // the newest unit of its evidence
	Onset         finding.UnitRef
	OnsetFrom     finding.UnitRef
	Before, After ingest.Versions
}

// openCase is an open incident that has, or had, one of the causes of a limit. It trips the guard only once,
// because a person who releases the guard while the incident is open knows about it.
type openCase struct {
	ID    string
	Has   bool // whether it has one of the causes now
	Cause string
}

type caseWire struct {
	ID    string `cbor:"1,keyasint,omitzero"`
	Has   bool   `cbor:"2,keyasint,omitzero"`
	Cause string `cbor:"3,keyasint,omitzero"`
}

func caseWireOf(c *openCase) caseWire { return caseWire(*c) }

type cases []openCase

// note updates the case of an incident, and reports whether it is a new case and whether anything changed.
func (all *cases) note(i *Incident, causes []string) (fresh, changed bool) {
	at := slices.IndexFunc(*all, func(c openCase) bool { return c.ID == i.ID })
	has := slices.Contains(causes, i.Cause)
	switch {
	case at < 0 && (i.Closed || !has):
		return false, false
	case at < 0:
		*all = append((*all)[max(0, len(*all)+1-mostCases):], openCase{i.ID, true, i.Cause})
		return true, true
	case i.Closed:
		*all = slices.Delete(*all, at, at+1)
		return false, true
	}
	now := openCase{i.ID, has, i.Cause}
	changed = (*all)[at] != now
	(*all)[at] = now
	return false, changed
}

// resume restores saved cases. The causes of the limit may have changed since, but an incident that was a case
// stays one and does not trip the guard again. Cases without a cause, which earlier builds have saved, keep their
// state until the next change of the incident.
func (all *cases) resume(saved []caseWire, causes []string) {
	for _, w := range saved {
		c := openCase(w)
		if c.Cause != "" {
			c.Has = slices.Contains(causes, c.Cause)
		}
		*all = append(*all, c)
	}
}

// Incident updates the cases of an incident of a drift, and returns the findings of guards that trip because of its
// cause. Incidents of guards, and incidents that require no action, must not be passed.
func (s *Set) Incident(i *Incident) (found []finding.Finding) {
	for _, g := range s.guards {
		fresh, changed := g.cases.note(i, g.limit.Causes)
		s.changed = s.changed || changed
		if !fresh || g.tripped {
			continue
		}
		before := g.state
		g.tripFor(i)
		s.seq++
		s.urgent, s.tried = true, false
		s.note(Event{Guard: g.limit.Name, From: before, To: g.state, At: i.At, Why: g.trip.Why})
		found = append(found, s.tripped(g))
	}
	return found
}

func (g *guard) tripFor(i *Incident) {
	g.trip = Trip{
		At: i.At, Onset: i.Onset, OnsetFrom: i.OnsetFrom, Before: i.Before, After: i.After, N: g.n, Cause: i.Cause,
		Why: fmt.Sprintf("incident %s has the cause %s", i.ID, i.Cause),
	}
	if i.Why != "" {
		g.trip.Why += ": " + i.Why
	}
	g.tripped, g.state, g.since = true, stateOf(g.limit.Then), i.At
	g.begin()
}

// outlive counts a finished episode since the guard began or tripped, and reports whether it releases the guard.
func (g *guard) outlive(u *ingest.Unit, at finding.UnitRef) (released bool) {
	if u.End == ingest.EndOpen {
		return false
	}
	g.n++
	return g.tripped && g.mayRelease(g.evidence(), at)
}

// evidenceOfCases returns mostEvidence, which is proof, while the guard has tripped and an incident still has one
// of the causes, and 1 otherwise.
func (g *guard) evidenceOfCases() float64 {
	if g.tripped && slices.ContainsFunc(g.cases, func(c openCase) bool { return c.Has }) {
		return mostEvidence
	}
	return 1
}
