package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// policyWire is the wire form of a policy without its groups.
type policyWire struct {
	Name    string                                 `cbor:"1,keyasint,omitzero"`
	Applied map[ingest.Partition]saved.AppliedUnit `cbor:"2,keyasint,omitzero"`
	Granted bool                                   `cbor:"3,keyasint,omitzero"`
	Even    float64                                `cbor:"4,keyasint"`
	Among   int                                    `cbor:"5,keyasint,omitzero"`
	Later   int                                    `cbor:"6,keyasint,omitzero"`
	Numbers int                                    `cbor:"7,keyasint,omitzero"`
}

func (p *Policy) wire() *policyWire {
	return &policyWire{
		Name: p.name, Applied: saved.EachValue(p.Applied(), saved.AppliedUnitOf), Granted: p.granted, Even: p.even, Among: p.among,
		Later: p.later, Numbers: p.numbers,
	}
}

// usedWire holds hours by group number, see lastUses.
type usedWire struct {
	Hours map[int]int64 `cbor:"1,keyasint,omitzero"`
}

// bareHours reads hours that were saved without a wrapper.
func bareHours(body []byte) (*usedWire, error) {
	hours, err := saved.Named[map[int]int64](body)
	if err != nil {
		return nil, err
	}
	return &usedWire{*hours}, nil
}

type quantitySampleWire struct {
	Signal   string           `cbor:"1,keyasint,omitzero"`
	Quantity string           `cbor:"2,keyasint,omitzero"`
	Values   detectors.Floats `cbor:"3,keyasint,omitzero"`
}

type frozenSampleWire struct {
	Signal   string             `cbor:"1,keyasint,omitzero"`
	Quantity string             `cbor:"2,keyasint,omitzero"`
	Ranks    *stream.RanksWire  `cbor:"3,keyasint,omitzero"`
	Season   *stream.SeasonWire `cbor:"4,keyasint,omitzero"`
}

func (x *frozenSample) wire() frozenSampleWire {
	return frozenSampleWire{
		Signal: x.Signal, Quantity: x.Quantity, Ranks: saved.Pointer(x.Ranks, stream.RanksWireOf),
		Season: saved.Pointer(x.Season, stream.SeasonWireOf),
	}
}

func (w *frozenSampleWire) live() frozenSample {
	return frozenSample{
		Signal: w.Signal, Quantity: w.Quantity, Ranks: saved.Pointer(w.Ranks, (*stream.RanksWire).Live),
		Season: saved.Pointer(w.Season, (*stream.SeasonWire).Live),
	}
}

type frozenWire struct {
	Before  []quantitySampleWire `cbor:"1,keyasint,omitzero"`
	Samples []frozenSampleWire   `cbor:"2,keyasint,omitzero"`
	Laws    *factor.ModelWire    `cbor:"3,keyasint,omitzero"`
	States  *factor.ModelWire    `cbor:"4,keyasint,omitzero"`
}

func (x *frozen) wire() frozenWire {
	laws, states := factor.WiresOf(x.Laws)
	return frozenWire{
		Before:  saved.Each(x.Before, func(e finding.QuantitySample) quantitySampleWire { return quantitySampleWire(e) }),
		Samples: saved.EachOf(x.Samples, (*frozenSample).wire), Laws: laws, States: states,
	}
}

func (w *frozenWire) live() frozen {
	return frozen{
		Before:  saved.Each(w.Before, func(e quantitySampleWire) finding.QuantitySample { return finding.QuantitySample(e) }),
		Samples: saved.EachOf(w.Samples, (*frozenSampleWire).live), Laws: factor.LiveOf(w.Laws, w.States),
	}
}
