package expectation

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// Wire is the wire form of a Check. Numbers are never reused; package saved has the rules.
type Wire struct {
	Condition conditionWire `cbor:"1,keyasint"`
	Verdict   Verdict       `cbor:"2,keyasint,omitzero"`
	Factor    float64       `cbor:"3,keyasint"`
	Low       float64       `cbor:"4,keyasint"`
	High      float64       `cbor:"5,keyasint"`
	Values    saved.Moments `cbor:"6,keyasint"`
	Squares   saved.Moments `cbor:"7,keyasint"`
	Below     int64         `cbor:"8,keyasint,omitzero"`
	Other     bool          `cbor:"9,keyasint,omitzero"`
}

type conditionWire struct {
	Statistic  string  `cbor:"1,keyasint"`
	Comparison string  `cbor:"2,keyasint"`
	Value      float64 `cbor:"3,keyasint"`
	Over       int     `cbor:"4,keyasint"`
}

// Wire returns the wire form of a check, nil for nil.
func (c *Check) Wire() *Wire {
	if c == nil {
		return nil
	}
	return &Wire{
		Condition: conditionWire(c.Condition), Verdict: c.Verdict, Factor: c.Factor, Low: c.Low, High: c.High,
		Values: saved.Moments(c.Values), Squares: saved.Moments(c.Squares), Below: c.Below, Other: c.Other,
	}
}

// Live is the inverse of Check.Wire.
func (w *Wire) Live() *Check {
	if w == nil {
		return nil
	}
	return &Check{
		Condition: Condition(w.Condition), Verdict: w.Verdict, Factor: w.Factor, Low: w.Low, High: w.High,
		Values: ingest.Moments(w.Values), Squares: ingest.Moments(w.Squares), Below: w.Below, Other: w.Other,
	}
}
