package wire

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

// Guards is the state of the guards of a policy, which agents obey until a given time.
type Guards struct {
	Policy    string    `json:"policy"`
	At        time.Time `json:"at"`    // when this was written: of two documents of a policy, the later one applies
	State     string    `json:"state"` // ok, warn, hold or fallback: the worst of the guards
	Seq       uint64    `json:"seq"`   // increases with every change of a state
	Since     *Instant  `json:"since"` // of the guard with that state; null before the first change, and without a clock
	Why       *string   `json:"why"`   // what tripped the guard with that state
	MaxAge    float64   `json:"max_age_seconds"`
	Until     time.Time `json:"until"`
	OnSilence string    `json:"on_silence"` // keep, hold or fallback: what agents do after until
	Guards    []Guard   `json:"guards"`
}

// Guard is the state of one guard.
type Guard struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Tripped  bool     `json:"tripped"`
	Since    *Instant `json:"since"`
	Why      *string  `json:"why"`
	Limit    string   `json:"limit"`
	Values   float64  `json:"values"` // counted since the guard began, tripped or was released
	Mean     Number   `json:"mean"`
	Evidence Number   `json:"evidence"` // the guard trips at 1/alpha
	Alpha    float64  `json:"alpha"`
	Invalid  int64    `json:"invalid"`
}

// GuardsOf returns the state of guards at a time.
func GuardsOf(s *guard.Summary, now time.Time) Guards {
	out := Guards{
		Policy: s.Policy, At: now.UTC(), State: s.State.String(), Seq: s.Seq, MaxAge: s.MaxAge.Seconds(), Until: now.Add(s.MaxAge).UTC(),
		OnSilence: s.OnSilence, Guards: []Guard{},
	}
	for i := range s.Guards {
		g := &s.Guards[i]
		out.Guards = append(out.Guards, Guard{
			Name: g.Name, State: g.State.String(), Tripped: g.Tripped, Since: At(g.Since.TS), Why: OrNull(g.Why), Limit: g.Limit,
			Values: g.Values, Mean: Number(g.Mean), Evidence: Number(g.Evidence), Alpha: g.Alpha, Invalid: g.Invalid,
		})
		if g.State == s.State && s.State != guard.OK && out.Why == nil {
			out.Since, out.Why = At(g.Since.TS), OrNull(g.Name+": "+g.Why)
		}
	}
	return out
}

// GuardsTag returns an entity tag for the state that agents obey. It does not change with the evidence or the time.
func GuardsTag(s *guard.Summary) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, s.Seq, s.State, s.MaxAge, s.OnSilence) // a hash takes everything
	for i := range s.Guards {
		g := &s.Guards[i]
		_, _ = fmt.Fprintln(h, g.Name, g.State, g.Tripped, g.Why, g.Limit, g.Alpha)
	}
	return fmt.Sprintf(`"%d-%x"`, s.Seq, h.Sum64())
}

// GuardHistory lists the newest trips and releases of the guards of a policy.
type GuardHistory struct {
	Policy string       `json:"policy"`
	Events []GuardEvent `json:"events"` // newest first
}

// GuardEvent is a trip or a release.
type GuardEvent struct {
	Seq     uint64     `json:"seq"`
	Guard   string     `json:"guard"`
	From    string     `json:"from"`
	To      string     `json:"to"`
	TS      *Instant   `json:"ts"` // time of the newest telemetry
	Agent   string     `json:"agent"`
	Episode string     `json:"episode"`
	Decided *time.Time `json:"decided"` // when a person released the guard
	By      *string    `json:"by"`
	Why     string     `json:"why"`
}

// GuardHistoryOf returns the trips and releases of guards.
func GuardHistoryOf(s *guard.Summary) GuardHistory {
	out := GuardHistory{Policy: s.Policy, Events: []GuardEvent{}}
	for _, e := range slices.Backward(s.Events) {
		of := GuardEvent{
			Seq: e.Seq, Guard: e.Guard, From: e.From.String(), To: e.To.String(), TS: At(e.At.TS), Agent: e.At.Agent, Episode: e.At.Episode,
			By: OrNull(e.By), Why: e.Why,
		}
		if !e.Decided.IsZero() {
			of.Decided = new(e.Decided.UTC())
		}
		out.Events = append(out.Events, of)
	}
	return out
}
