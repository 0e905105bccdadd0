package finding

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// UnitRefWire is the wire form of a UnitRef. Field numbers are never reused; package saved has the rules.
type UnitRefWire struct {
	Ordinal int64          `cbor:"1,keyasint,omitzero"`
	Agent   string         `cbor:"2,keyasint,omitzero"`
	Episode string         `cbor:"3,keyasint,omitzero"`
	Pos     saved.Position `cbor:"4,keyasint"`
	First   saved.Position `cbor:"5,keyasint"`
	TS      int64          `cbor:"6,keyasint,omitzero"`
}

// UnitRefWireOf returns the wire form of a reference to a unit.
func UnitRefWireOf(x *UnitRef) UnitRefWire {
	return UnitRefWire{
		Ordinal: x.Ordinal, Agent: x.Agent, Episode: x.Episode, Pos: saved.Position(x.Pos),
		First: saved.Position(x.First), TS: x.TS,
	}
}

// Live returns the reference.
func (w *UnitRefWire) Live() UnitRef {
	return UnitRef{
		Ordinal: w.Ordinal, Agent: w.Agent, Episode: w.Episode, Pos: ingest.Position(w.Pos),
		First: ingest.Position(w.First), TS: w.TS,
	}
}

// BaselineRefWire is the wire form of a BaselineRef. Field numbers are never reused; package saved has the rules.
type BaselineRefWire struct {
	ID          string        `cbor:"1,keyasint,omitzero"`
	Units       int           `cbor:"2,keyasint,omitzero"`
	Config      string        `cbor:"3,keyasint,omitzero"`
	Provisional bool          `cbor:"4,keyasint,omitzero"`
	Offsets     []saved.Range `cbor:"5,keyasint,omitzero"`
}

// BaselineRefWireOf returns the wire form of a reference to a baseline.
func BaselineRefWireOf(x *BaselineRef) BaselineRefWire {
	return BaselineRefWire{
		ID: x.ID, Units: x.Units, Config: x.Config, Provisional: x.Provisional,
		Offsets: saved.RangesOf(x.Offsets),
	}
}

// Live returns the reference.
func (w *BaselineRefWire) Live() BaselineRef {
	return BaselineRef{
		ID: w.ID, Units: w.Units, Config: w.Config, Provisional: w.Provisional,
		Offsets: saved.LiveRanges(w.Offsets),
	}
}

// paceWire is the wire form of a Pace.
type paceWire struct {
	Every  float64 `cbor:"1,keyasint,omitzero"`
	Chance float64 `cbor:"2,keyasint,omitzero"`
}

// PacesWire is the wire form of Paces.
type PacesWire struct {
	Policy paceWire `cbor:"1,keyasint,omitzero"`
	Env    paceWire `cbor:"2,keyasint,omitzero"`
	Reward paceWire `cbor:"3,keyasint,omitzero"`
}

// PacesWireOf returns the wire form of paces.
func PacesWireOf(x *Paces) PacesWire {
	return PacesWire{Policy: paceWire(x.Policy), Env: paceWire(x.Env), Reward: paceWire(x.Reward)}
}

// Live returns the paces.
func (w *PacesWire) Live() Paces {
	return Paces{Policy: Pace(w.Policy), Env: Pace(w.Env), Reward: Pace(w.Reward)}
}

// EffectWire is the wire form of an Effect.
type EffectWire struct {
	Quantity      string  `cbor:"1,keyasint,omitzero"`
	BaselineMean  float64 `cbor:"2,keyasint"`
	CurrentMean   float64 `cbor:"3,keyasint"`
	MeanShift     float64 `cbor:"4,keyasint"`
	BaselineSD    float64 `cbor:"5,keyasint"`
	CurrentSD     float64 `cbor:"6,keyasint"`
	StandardShift float64 `cbor:"7,keyasint"`
	CurrentUnits  int     `cbor:"8,keyasint,omitzero"`
	MedianShift   float64 `cbor:"9,keyasint"`
	Q10Shift      float64 `cbor:"10,keyasint"`
	Q90Shift      float64 `cbor:"11,keyasint"`
	SpreadRatio   float64 `cbor:"12,keyasint"`
	Wasserstein   float64 `cbor:"13,keyasint"`
	AtLeast       float64 `cbor:"14,keyasint"`
}

// HistogramWire is the wire form of a Histogram.
type HistogramWire struct {
	Low      float64 `cbor:"1,keyasint" was:"low"`
	High     float64 `cbor:"2,keyasint" was:"high"`
	Baseline []int   `cbor:"3,keyasint,omitzero" was:"baseline"`
	Current  []int   `cbor:"4,keyasint,omitzero" was:"current"`
}

// PromiseWire is the wire form of a Promise.
type PromiseWire struct {
	N          float64  `cbor:"1,keyasint"`
	ARL0       float64  `cbor:"2,keyasint"`
	Low        float64  `cbor:"3,keyasint"`
	High       float64  `cbor:"4,keyasint"`
	Allowance  float64  `cbor:"5,keyasint"`
	Overlap    float64  `cbor:"6,keyasint"`
	Confidence string   `cbor:"7,keyasint,omitzero"`
	Weakest    string   `cbor:"8,keyasint,omitzero"`
	Caveats    []string `cbor:"9,keyasint,omitzero"`
}
