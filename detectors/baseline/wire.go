package baseline

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

type collectedWire struct {
	Agent   string            `cbor:"1,keyasint,omitzero"`
	Length  float64           `cbor:"2,keyasint"`
	Age     float64           `cbor:"3,keyasint"`
	EndTS   int64             `cbor:"4,keyasint,omitzero"`
	Range   saved.Range       `cbor:"5,keyasint"`
	Ordinal int64             `cbor:"6,keyasint,omitzero"`
	Kind    ingest.ActionKind `cbor:"7,keyasint,omitzero"`
	Actions []saved.Count     `cbor:"8,keyasint,omitzero"`
	Steps   int64             `cbor:"9,keyasint,omitzero"`
	Profile []float32         `cbor:"10,keyasint,omitzero"`

	Propensity *saved.Propensity `cbor:"11,keyasint,omitzero"`
	Return     float64           `cbor:"12,keyasint,omitzero"`
	Told       *factor.ToldWire  `cbor:"13,keyasint,omitzero"`
	Labels     []saved.Label     `cbor:"14,keyasint,omitzero"`
}

func (x *Collected) wire() collectedWire {
	return collectedWire{
		Agent: x.Agent, Length: x.Length, Age: x.Age, EndTS: x.EndTS, Range: saved.Range(x.Range),
		Ordinal: x.Ordinal, Kind: x.Kind, Actions: saved.EachOf(x.Actions, saved.CountOf), Steps: x.Steps,
		Profile: x.Profile, Propensity: saved.Pointer(x.Propensity, saved.PropensityOf), Return: x.Return,
		Told: x.Told.Wire(), Labels: saved.Each(x.Labels, func(l ingest.Label) saved.Label { return saved.Label(l) }),
	}
}

func (w *collectedWire) live() Collected {
	return Collected{
		Agent: w.Agent, Length: w.Length, Age: w.Age, EndTS: w.EndTS, Range: ingest.Range(w.Range),
		Ordinal: w.Ordinal, Kind: w.Kind, Actions: saved.EachOf(w.Actions, (*saved.Count).Live), Steps: w.Steps,
		Profile: w.Profile, Propensity: saved.Pointer(w.Propensity, (*saved.Propensity).Live), Return: w.Return,
		Told: w.Told.Live(), Labels: saved.Each(w.Labels, func(l saved.Label) ingest.Label { return ingest.Label(l) }),
	}
}

// Wire is the wire form of Warmup.
type Wire struct {
	Units       int             `cbor:"1,keyasint,omitzero"`
	Done        bool            `cbor:"2,keyasint,omitzero"`
	Each        []collectedWire `cbor:"3,keyasint,omitzero"`
	Early       int             `cbor:"4,keyasint,omitzero"`
	Trending    string          `cbor:"5,keyasint,omitzero"`
	LongestWait time.Duration   `cbor:"6,keyasint,omitzero"`
	LongestGap  float64         `cbor:"7,keyasint"`
	ToldEvery   int             `cbor:"8,keyasint,omitzero"`
}

// Wire returns the wire form of the warm-up.
func (x *Warmup) Wire() Wire {
	return Wire{
		Units: x.Units, Done: x.Done, Each: saved.EachOf(x.Each, (*Collected).wire), Early: x.Early,
		Trending: x.Trending, LongestWait: x.LongestWait, LongestGap: x.LongestGap, ToldEvery: x.ToldEvery,
	}
}

// Live returns the warm-up.
func (w *Wire) Live() Warmup {
	return Warmup{
		Units: w.Units, Done: w.Done, Each: saved.EachOf(w.Each, (*collectedWire).live), Early: w.Early,
		Trending: w.Trending, LongestWait: w.LongestWait, LongestGap: w.LongestGap, ToldEvery: w.ToldEvery,
	}
}
