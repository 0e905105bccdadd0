package battery

import (
	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// NewcomersWire is the wire form of Newcomers.
type NewcomersWire struct {
	Patience float64            `cbor:"1,keyasint"`
	Steps    map[string]float64 `cbor:"2,keyasint,omitzero"`
	Crowd    bool               `cbor:"3,keyasint,omitzero"`
	Agents   int                `cbor:"4,keyasint,omitzero"`
	Row      int                `cbor:"5,keyasint,omitzero"`
}

// ActionChoiceWire is the wire form of the actions that are judged.
type ActionChoiceWire struct {
	Names []string `cbor:"1,keyasint,omitzero"`
	Known []string `cbor:"2,keyasint,omitzero"`
	Seen  []byte   `cbor:"3,keyasint,omitzero"`
}

// Wire is the wire form of a battery that is saved separately. The field numbers are those of a group, in whose
// form earlier builds wrote it: the other numbers up to 31 belong to the rest of a group. A new field takes a
// number from 32 on that is also free in a group's form.
type Wire struct {
	Streams    []*stream.Wire     `cbor:"3,keyasint,omitzero"`
	Blocks     blocks.Wire        `cbor:"6,keyasint"`
	Newcomers  NewcomersWire      `cbor:"7,keyasint"`
	ActionKind ingest.ActionKind  `cbor:"16,keyasint,omitzero"`
	Judged     ActionChoiceWire   `cbor:"19,keyasint"`
	Delivery   fault.DeliveryWire `cbor:"23,keyasint"`
}

// LeftOut returns the names of the fields that a whole group had in addition to its battery.
func (w *Wire) LeftOut() []string {
	return []string{
		"Key", "Number", "Warmup", "Seen", "LastTS", "Versions", "Trail", "Baseline", "FrozenAt", "FrozenTS", "Promise", "Share",
		"Categories", "BaseActions", "LastActions", "LikeActions", "Explained", "Line", "Unjudged", "Incident", "Quiet", "Probation",
		"Positive", "Negative", "Rewards", "OffPolicy",
	}
}

// Wire returns the wire form of the battery.
func (b *Battery) Wire() Wire {
	return Wire{
		Streams: saved.Each(b.Streams, func(e *stream.Stream) *stream.Wire { return saved.Pointer(e, (*stream.Stream).Wire) }),
		Blocks:  b.Blocks.Wire(), Newcomers: NewcomersWire(b.Newcomers), ActionKind: b.ActionKind,
		Judged: ActionChoiceWire(b.Judged), Delivery: b.Delivery.Wire(),
	}
}

// Live returns the battery. Its baselines must be attached before it is used.
func (w *Wire) Live() Battery {
	b := Battery{
		Streams: saved.Each(w.Streams, func(e *stream.Wire) *stream.Stream { return saved.Pointer(e, (*stream.Wire).Live) }),
		Blocks:  w.Blocks.Live(), Newcomers: Newcomers(w.Newcomers), ActionKind: w.ActionKind, Delivery: w.Delivery.Live(),
	}
	b.SetActions(stream.ActionChoice(w.Judged))
	return b
}
