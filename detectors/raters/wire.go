package raters

import (
	"cmp"
	"maps"
	"slices"
)

// The wire forms. Field numbers are never reused; package saved has the rules.

type raterWire struct {
	ID     string  `cbor:"1,keyasint,omitzero"`
	N      int64   `cbor:"2,keyasint"`
	Rating float64 `cbor:"3,keyasint"`
	Reward float64 `cbor:"4,keyasint,omitzero"`
	Last   int64   `cbor:"5,keyasint"`
}

// Wire is the wire form of the raters of one outcome.
type Wire struct {
	Key       string      `cbor:"1,keyasint"`
	Seen      int64       `cbor:"2,keyasint,omitzero"`
	Center    float64     `cbor:"3,keyasint,omitzero"`
	Rewards   int64       `cbor:"4,keyasint,omitzero"`
	Reward    float64     `cbor:"5,keyasint,omitzero"`
	Product   float64     `cbor:"6,keyasint,omitzero"`
	Square    float64     `cbor:"7,keyasint,omitzero"`
	Slope     float64     `cbor:"8,keyasint,omitzero"`
	Raters    []raterWire `cbor:"9,keyasint,omitzero"` // by id
	Collected bool        `cbor:"10,keyasint,omitzero"`
}

// Wire returns the wire forms, by key.
func (all Raters) Wire() (out []Wire) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		o := all[key]
		w := Wire{key, o.Seen, o.Center, o.Rewards, o.Reward, o.Product, o.Square, o.Slope, nil, o.collected}
		for id, of := range o.Raters {
			w.Raters = append(w.Raters, raterWire{id, of.N, of.Rating, of.Reward, of.Last})
		}
		slices.SortFunc(w.Raters, func(a, b raterWire) int { return cmp.Compare(a.ID, b.ID) })
		out = append(out, w)
	}
	return out
}

// Live returns the raters of wire forms.
func Live(of []Wire) Raters {
	all := Raters{}
	for _, w := range of {
		o := &Outcome{
			Seen: w.Seen, Center: w.Center, Rewards: w.Rewards, Reward: w.Reward, Product: w.Product, Square: w.Square, Slope: w.Slope,
			Raters: map[string]*Rater{}, collected: w.Collected,
		}
		for _, r := range w.Raters {
			o.Raters[r.ID] = &Rater{r.N, r.Rating, r.Reward, r.Last}
		}
		all[w.Key] = o
	}
	return all
}
