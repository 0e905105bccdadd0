package offpolicy

import (
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The wire forms. Field numbers are never reused; package saved has the rules. If a struct has the fields of the live
// type in the same order, a plain Go conversion converts it.

type referenceWire struct {
	Actions map[string]actionWire `cbor:"1,keyasint,omitzero"`
	Mean    float64               `cbor:"2,keyasint"`
	Direct  float64               `cbor:"3,keyasint"`
}

type actionWire struct {
	Share  float64 `cbor:"1,keyasint"`
	Reward float64 `cbor:"2,keyasint"`
}

type momentsWire struct {
	Mean float64 `cbor:"1,keyasint"`
	M2   float64 `cbor:"2,keyasint"`
}

type sumsWire struct {
	N        int64       `cbor:"1,keyasint,omitzero"`
	Weight   momentsWire `cbor:"2,keyasint,omitzero"`
	Weighted momentsWire `cbor:"3,keyasint,omitzero"`
	Value    momentsWire `cbor:"4,keyasint,omitzero"`
	Return   momentsWire `cbor:"5,keyasint,omitzero"`
	Gap      momentsWire `cbor:"6,keyasint,omitzero"`
	LogProb  momentsWire `cbor:"7,keyasint,omitzero"`
	Direct   momentsWire `cbor:"8,keyasint,omitzero"`
}

func (x *Sums) wire() sumsWire {
	return sumsWire{
		N: x.N, Weight: momentsWire(x.Weight), Weighted: momentsWire(x.Weighted), Value: momentsWire(x.Value),
		Return: momentsWire(x.Return), Gap: momentsWire(x.Gap), LogProb: momentsWire(x.LogProb), Direct: momentsWire(x.Direct),
	}
}

func (w *sumsWire) live() Sums {
	return Sums{
		N: w.N, Weight: Moments(w.Weight), Weighted: Moments(w.Weighted), Value: Moments(w.Value),
		Return: Moments(w.Return), Gap: Moments(w.Gap), LogProb: Moments(w.LogProb), Direct: Moments(w.Direct),
	}
}

// RunningWire is the wire form of a Running.
type RunningWire struct {
	Units       int64    `cbor:"1,keyasint,omitzero"`
	Target      sumsWire `cbor:"2,keyasint,omitzero"`
	Frequencies sumsWire `cbor:"3,keyasint,omitzero"`
	PerStep     bool     `cbor:"4,keyasint,omitzero"`
}

// Wire returns the wire form of the sums.
func (r *Running) Wire() RunningWire {
	return RunningWire{Units: r.Units, Target: r.Target.wire(), Frequencies: r.Frequencies.wire(), PerStep: r.PerStep}
}

// Live returns the sums.
func (w *RunningWire) Live() Running {
	return Running{Units: w.Units, Target: w.Target.live(), Frequencies: w.Frequencies.live(), PerStep: w.PerStep}
}

type sampleWire struct {
	Weight   float64 `cbor:"1,keyasint"`
	Weighted float64 `cbor:"2,keyasint"`
	Value    float64 `cbor:"3,keyasint"`
	Return   float64 `cbor:"4,keyasint"`
	LogProb  float64 `cbor:"5,keyasint"`
	Direct   float64 `cbor:"6,keyasint"`
}

type recentWire struct {
	Ordinal     int64       `cbor:"1,keyasint,omitzero"`
	PerStep     bool        `cbor:"2,keyasint,omitzero"`
	Target      *sampleWire `cbor:"3,keyasint,omitzero"`
	Frequencies *sampleWire `cbor:"4,keyasint,omitzero"`
}

func (x *Recent) wire() recentWire {
	return recentWire{
		Ordinal: x.Ordinal, PerStep: x.Samples.PerStep,
		Target: (*sampleWire)(x.Samples.Target), Frequencies: (*sampleWire)(x.Samples.Frequencies),
	}
}

func (w *recentWire) live() Recent {
	return Recent{
		Ordinal: w.Ordinal,
		Samples: Samples{PerStep: w.PerStep, Target: (*Sample)(w.Target), Frequencies: (*Sample)(w.Frequencies)},
	}
}

// FollowerWire is the wire form of a Follower.
type FollowerWire struct {
	Reference referenceWire `cbor:"1,keyasint"`
	Baseline  RunningWire   `cbor:"2,keyasint"`
	Now       RunningWire   `cbor:"3,keyasint"`
	Since     int64         `cbor:"4,keyasint,omitzero"`
	Recent    []recentWire  `cbor:"5,keyasint,omitzero"`
	Next      int           `cbor:"6,keyasint,omitzero"`
}

// Wire returns the wire form of the follower.
func (f *Follower) Wire() FollowerWire {
	return FollowerWire{
		Reference: referenceWire{
			Actions: saved.EachValue(f.Reference.Actions, func(a Action) actionWire { return actionWire(a) }),
			Mean:    f.Reference.Mean, Direct: f.Reference.Direct,
		},
		Baseline: f.Baseline.Wire(), Now: f.Now.Wire(), Since: f.Since, Recent: saved.EachOf(f.Recent, (*Recent).wire), Next: f.Next,
	}
}

// Live returns the follower.
func (w *FollowerWire) Live() Follower {
	return Follower{
		Reference: Reference{
			Actions: saved.EachValue(w.Reference.Actions, func(a actionWire) Action { return Action(a) }),
			Mean:    w.Reference.Mean, Direct: w.Reference.Direct,
		},
		Baseline: w.Baseline.Live(), Now: w.Now.Live(), Since: w.Since, Recent: saved.EachOf(w.Recent, (*recentWire).live), Next: w.Next,
	}
}
