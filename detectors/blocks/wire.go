package blocks

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

type openWire struct {
	Unit  *unitWire `cbor:"1,keyasint,omitzero"`
	Parts int       `cbor:"2,keyasint,omitzero"`
	Round int64     `cbor:"3,keyasint,omitzero"`
}

func (x *Open) wire() openWire {
	return openWire{
		Unit: saved.Pointer(x.Unit, unitWireOf), Parts: x.Parts, Round: x.Round,
	}
}

func (w *openWire) live() Open {
	return Open{
		Unit: saved.Pointer(w.Unit, (*unitWire).live), Parts: w.Parts, Round: w.Round,
	}
}

// Wire is the wire form of Joiner.
type Wire struct {
	Size   int                  `cbor:"1,keyasint,omitzero"`
	Mixed  bool                 `cbor:"2,keyasint,omitzero"`
	Unfit  bool                 `cbor:"3,keyasint,omitzero"`
	Open   map[string]*openWire `cbor:"4,keyasint,omitzero"`
	Kept   []*unitWire          `cbor:"5,keyasint,omitzero"`
	Round  int64                `cbor:"6,keyasint,omitzero"`
	Joined int64                `cbor:"7,keyasint,omitzero"`
	Lost   int64                `cbor:"8,keyasint,omitzero"`

	Decisions bool `cbor:"9,keyasint,omitzero"`
}

// Wire returns the wire form of the joiner.
func (x *Joiner) Wire() Wire {
	return Wire{
		Size: x.Size, Mixed: x.Mixed, Unfit: x.Unfit,
		Open:  saved.EachValue(x.Open, func(e *Open) *openWire { return saved.Pointer(e, (*Open).wire) }),
		Kept:  saved.Each(x.Kept, func(e *ingest.Unit) *unitWire { return saved.Pointer(e, unitWireOf) }),
		Round: x.Round, Joined: x.Joined, Lost: x.Lost, Decisions: x.Decisions,
	}
}

// Live returns the joiner.
func (w *Wire) Live() Joiner {
	return Joiner{
		Size: w.Size, Mixed: w.Mixed, Unfit: w.Unfit,
		Open:  saved.EachValue(w.Open, func(e *openWire) *Open { return saved.Pointer(e, (*openWire).live) }),
		Kept:  saved.Each(w.Kept, func(e *unitWire) *ingest.Unit { return saved.Pointer(e, (*unitWire).live) }),
		Round: w.Round, Joined: w.Joined, Lost: w.Lost, Decisions: w.Decisions,
	}
}
