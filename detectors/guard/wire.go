package guard

import (
	"fmt"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/versions"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// part is the name of the guards' part of a worker's checkpoint.
const part = "guards"

// format is the format in which the guards of a policy are saved. Field numbers are never reused.
var format = saved.Format[setWire]{Version: 1}

type setWire struct {
	Units    int64                `cbor:"1,keyasint,omitzero"`
	Seq      uint64               `cbor:"2,keyasint,omitzero"`
	Last     finding.UnitRefWire  `cbor:"3,keyasint,omitzero"`
	Guards   []guardWire          `cbor:"4,keyasint,omitzero"`
	Events   []eventWire          `cbor:"5,keyasint,omitzero"`
	Versions *versions.RecordWire `cbor:"6,keyasint,omitzero"` // nil if an earlier build saved it
}

type guardWire struct {
	Name     string              `cbor:"1,keyasint"`
	Limit    string              `cbor:"2,keyasint"` // the limit as text: values counted under another limit are no evidence about this one
	Units    int64               `cbor:"3,keyasint,omitzero"`
	Bets     []float64           `cbor:"4,keyasint,omitzero"`
	Habits   habitsWire          `cbor:"5,keyasint,omitzero"`
	N        float64             `cbor:"8,keyasint,omitzero"`
	C        float64             `cbor:"9,keyasint,omitzero"`
	Invalid  int64               `cbor:"10,keyasint,omitzero"`
	State    State               `cbor:"11,keyasint,omitzero"`
	Tripped  bool                `cbor:"12,keyasint,omitzero"`
	Since    finding.UnitRefWire `cbor:"13,keyasint,omitzero"`
	Trip     tripWire            `cbor:"14,keyasint,omitzero"`
	Starts   []startWire         `cbor:"15,keyasint,omitzero"`
	Cost     momentWire          `cbor:"16,keyasint,omitzero"`
	Open     bool                `cbor:"17,keyasint,omitzero"`
	Episodes episodesWire        `cbor:"18,keyasint,omitzero"`
	Cases    []caseWire          `cbor:"19,keyasint,omitzero"`
}

type habitsWire struct {
	Names  []string  `cbor:"1,keyasint,omitzero"`
	Counts []float64 `cbor:"2,keyasint,omitzero"`
	Other  float64   `cbor:"3,keyasint,omitzero"`
}

type momentWire struct {
	At finding.UnitRefWire `cbor:"1,keyasint,omitzero"`
}

type startWire struct {
	Sum    float64             `cbor:"1,keyasint,omitzero"`
	At     finding.UnitRefWire `cbor:"2,keyasint,omitzero"`
	Before momentWire          `cbor:"3,keyasint,omitzero"`
	N      float64             `cbor:"4,keyasint,omitzero"`
	C      float64             `cbor:"5,keyasint,omitzero"`
}

func momentWireOf(at *finding.UnitRef) momentWire { return momentWire{At: finding.UnitRefWireOf(at)} }

type tripWire struct {
	At     finding.UnitRefWire `cbor:"1,keyasint,omitzero"`
	Onset  finding.UnitRefWire `cbor:"2,keyasint,omitzero"`
	Before saved.Versions      `cbor:"3,keyasint,omitzero"`
	After  saved.Versions      `cbor:"4,keyasint,omitzero"`
	N      float64             `cbor:"5,keyasint,omitzero"`
	C      float64             `cbor:"6,keyasint,omitzero"`
	From   finding.UnitRefWire `cbor:"7,keyasint,omitzero"`
	Why    string              `cbor:"8,keyasint,omitzero"`
	Cause  string              `cbor:"9,keyasint,omitzero"`
}

// Changed reports whether anything has changed since the guards were created, resumed or last Saved.
func (s *Set) Changed() bool { return s.changed }

// Changes adds the guards' part to parts, unless it is saved.
func (s *Set) Changes(parts ingest.Parts) error {
	if !s.changed {
		return nil
	}
	record := s.versions.Wire()
	w := setWire{
		Units: s.units, Seq: s.seq, Last: finding.UnitRefWireOf(&s.last), Events: saved.EachOf(s.events, eventWireOf), Versions: &record,
	}
	for _, g := range s.guards {
		w.Guards = append(w.Guards, wireOf(g))
	}
	for _, name := range s.removed { // their incidents are still open
		w.Guards = append(w.Guards, guardWire{Name: name, Tripped: true})
	}
	b, err := format.Encode(&w)
	if err != nil {
		return fmt.Errorf("encode guards: %w", err)
	}
	parts[part] = b
	return nil
}

// Saved marks the part that Changes last returned as durable.
func (s *Set) Saved() { s.changed, s.urgent = false, false }

// triedAgain is how long a state that could not be saved waits for the next attempt. Attempts with each unit would
// stop the judging of units while a disk is full.
const triedAgain = time.Second

// Urgent reports whether to save now because the state of a guard has changed; since is the time since the last
// attempt. Agents may act on that state, so it should not be lost.
func (s *Set) Urgent(since time.Duration) bool { return s.urgent && (!s.tried || since >= triedAgain) }

// Tried notes an attempt to save.
func (s *Set) Tried() { s.tried = true }

// Lost marks the part as not saved, so that the next Changes returns it.
func (s *Set) Lost() { s.changed = s.changed || s.units > 0 }

// Resume reads the part of a checkpoint, if it has one. A guard whose limit has changed begins again, but if it has
// tripped, it stays tripped.
func (s *Set) Resume(parts ingest.Parts) error {
	b, saved := parts[part]
	if !saved {
		return nil
	}
	w, err := format.Decode(b)
	if err != nil {
		return fmt.Errorf("read guards: %w", err)
	}
	s.units, s.seq, s.last = w.Units, w.Seq, w.Last.Live()
	if w.Versions != nil {
		s.versions = w.Versions.Live()
	}
	for i := range w.Events {
		s.events = append(s.events, w.Events[i].live())
	}
	for i := range w.Guards {
		s.resume(&w.Guards[i])
	}
	return nil
}

func (s *Set) resume(w *guardWire) {
	for _, g := range s.guards {
		if g.limit.Name == w.Name {
			w.resume(g)
			return
		}
	}
	if w.Tripped {
		s.removed = append(s.removed, w.Name)
	}
}

func wireOf(g *guard) guardWire {
	return guardWire{
		Name: g.limit.Name, Limit: limitHash(g), Units: g.wealth.units, Bets: g.wealth.bets[:], Habits: habitsWire{g.habits.names, g.habits.counts, g.habits.other},
		N: g.n, C: g.c, Invalid: g.invalid, State: g.state, Tripped: g.tripped,
		Since: finding.UnitRefWireOf(&g.since), Starts: saved.EachOf(g.starts[:], func(of *start) startWire {
			return startWire{Sum: of.sum, N: of.n, C: of.c, At: finding.UnitRefWireOf(&of.at), Before: momentWireOf(&of.before)}
		}),
		Cost: momentWireOf(&g.cost), Open: g.open, Episodes: g.episodes.wire(),
		Trip: tripWire{
			At: finding.UnitRefWireOf(&g.trip.At), Onset: finding.UnitRefWireOf(&g.trip.Onset), Before: saved.Versions(g.trip.Before),
			After: saved.Versions(g.trip.After), N: g.trip.N, C: g.trip.C, From: finding.UnitRefWireOf(&g.trip.OnsetFrom),
			Why: g.trip.Why, Cause: g.trip.Cause,
		},
		Cases: saved.EachOf(g.cases, caseWireOf),
	}
}

func (w *guardWire) resume(g *guard) {
	g.state, g.tripped, g.since = w.State, w.Tripped, w.Since.Live()
	g.trip = Trip{
		At: w.Trip.At.Live(), Onset: w.Trip.Onset.Live(), Before: ingest.Versions(w.Trip.Before), After: ingest.Versions(w.Trip.After),
		N: w.Trip.N, C: w.Trip.C, OnsetFrom: w.Trip.From.Live(), Why: w.Trip.Why,
		Cause: w.Trip.Cause,
	}
	if g.tripped {
		g.state = stateOf(g.limit.Then) // as in the present configuration
	}
	if len(g.limit.Causes) > 0 {
		g.cases.resume(w.Cases, g.limit.Causes)
	}
	if w.Limit != limitHash(g) || len(w.Bets) != bets || len(w.Starts) != bets || len(w.Habits.Names) != len(w.Habits.Counts) {
		if !g.tripped {
			g.state = OK
		}
		return
	}
	g.wealth.units, g.open = w.Units, w.Open
	copy(g.wealth.bets[:], w.Bets)
	g.habits = habits{names: w.Habits.Names, counts: w.Habits.Counts, other: w.Habits.Other}
	g.n, g.c, g.invalid = w.N, w.C, w.Invalid
	for i, of := range w.Starts {
		g.starts[i] = start{sum: of.Sum, n: of.N, c: of.C, at: of.At.Live(), before: of.Before.At.Live()}
	}
	g.cost = w.Cost.At.Live()
	g.episodes = w.Episodes.live()
}

// limitHash identifies what a guard counts, and its limit.
func limitHash(g *guard) string {
	l := g.limit
	l.Then, l.ReleaseAfter = "", 0 // they do not affect the evidence
	if !l.Range.Given() {
		l.Range = watch.ActionRange{} // as in builds without ranges that are open at one end
	}
	if len(l.Causes) > 0 {
		return fmt.Sprintf("%q", l.Causes)
	}
	return strings.Replace(fmt.Sprintf("%+v", l), " Causes:[]", "", 1) // as in builds without limits on causes
}
