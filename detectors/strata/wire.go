package strata

import (
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The wire forms. Field numbers are never reused; package saved has the rules.

type dimensionWire struct {
	Name   string   `cbor:"1,keyasint,omitzero"`
	Values []string `cbor:"2,keyasint,omitzero"`
}

type cellWire struct {
	N    int64   `cbor:"1,keyasint,omitzero"`
	Mean float64 `cbor:"2,keyasint"`
	M2   float64 `cbor:"3,keyasint"`
}

type quantityWire struct {
	Signal string       `cbor:"1,keyasint,omitzero"`
	Name   string       `cbor:"2,keyasint,omitzero"`
	Cells  [][]cellWire `cbor:"3,keyasint,omitzero"`
}

// Wire is the wire form of Strata.
type Wire struct {
	Dimensions []dimensionWire `cbor:"1,keyasint,omitzero"`
	Quantities []quantityWire  `cbor:"2,keyasint,omitzero"`
	Recent     []byte          `cbor:"3,keyasint,omitzero"`
	Next       int64           `cbor:"4,keyasint,omitzero"`
}

// Wire returns the wire form of the strata.
func (s *Strata) Wire() Wire {
	return Wire{
		Dimensions: saved.Each(s.Dimensions, func(d Dimension) dimensionWire { return dimensionWire(d) }),
		Quantities: saved.Each(s.Quantities, func(q Quantity) quantityWire {
			return quantityWire{Signal: q.Signal, Name: q.Name, Cells: saved.Each(q.Cells, func(cells []mix.Cell) []cellWire {
				return saved.Each(cells, func(c mix.Cell) cellWire { return cellWire(c) })
			})}
		}),
		Recent: s.Recent, Next: s.Next,
	}
}

// Live returns the strata.
func (w *Wire) Live() Strata {
	return Strata{
		Dimensions: saved.Each(w.Dimensions, func(d dimensionWire) Dimension { return Dimension(d) }),
		Quantities: saved.Each(w.Quantities, func(q quantityWire) Quantity {
			return Quantity{Signal: q.Signal, Name: q.Name, Cells: saved.Each(q.Cells, func(cells []cellWire) []mix.Cell {
				return saved.Each(cells, func(c cellWire) mix.Cell { return mix.Cell(c) })
			})}
		}),
		Recent: w.Recent, Next: w.Next,
	}
}

// Valid reports whether the parts of strata that were read fit together.
func (s *Strata) Valid() bool {
	if s == nil {
		return true
	}
	if len(s.Dimensions) == 0 || s.Recent != nil && len(s.Recent) != stream.TrailUnits*len(s.Dimensions) {
		return false
	}
	for i := range s.Quantities {
		q := &s.Quantities[i]
		if len(q.Cells) != len(s.Dimensions) {
			return false
		}
		for k := range q.Cells {
			if len(q.Cells[k]) != s.Dimensions[k].strata() {
				return false
			}
		}
	}
	for k, stratum := range s.Recent {
		if int(stratum) >= s.Dimensions[k%len(s.Dimensions)].strata() {
			return false
		}
	}
	return true
}
