package finding

import (
	"encoding/json"
	"fmt"
)

// Shown is what an off-policy estimate shows about the cause of a change.
type Shown string

// What an estimate shows. Policy and World are wrong with a probability of at most offpolicy.ErrorRate together, at all
// units simultaneously. Undecided means that neither is certain yet. NoSupport means that there is no estimate.
const (
	ShownPolicy Shown = "policy"
	ShownWorld  Shown = "world"
	ShownBoth   Shown = "both"
	Undecided   Shown = "undecided"
	NoSupport   Shown = "no_support"
)

// The policies whose value is estimated. ReferenceTarget is the accepted policy itself, by the target_prob of the
// telemetry. ReferenceFrequencies is a policy that takes each action as often as the baseline did, whatever the
// situation.
const (
	ReferenceTarget      = "target_prob"
	ReferenceFrequencies = "action_frequencies"
)

// OffPolicy is what another policy would have earned on the traffic of the policy that acted. Unknown figures are
// NaN; without support, these are Value, its interval, and all figures that follow from it.
type OffPolicy struct {
	Reference  string
	Shown      Shown
	Why        string  // why there is no support, or why the estimate is undecided; "" otherwise
	Units      int64   // with usable probabilities
	PerStep    bool    // figures are per step of a block, else per episode
	Effective  float64 // effective sample size: the number of units of the other policy itself with as much information
	MeanWeight float64 // near 1 if today's policy takes every action of the other one, and the recorded probabilities are right

	Value          float64 // doubly robust estimate of what the other policy would have earned
	Low, High      float64 // confidence sequence of Value, valid at all units simultaneously
	SelfNormalized float64 // self-normalized inverse propensity estimate of the same
	Actual         float64 // what the policy that acted has earned, on the same units
	Baseline       float64 // Value on the units of the baseline

	// The change of Actual since the baseline is the sum of two parts.
	World  PartOfChange // the change of Value: what the environment has changed
	Policy PartOfChange // the change of Actual minus Value
}

// PartOfChange is a part of a change with its confidence sequence.
type PartOfChange struct{ Mean, Low, High float64 }

// Known reports whether there is an estimate. If not, its figures mean nothing.
func (o *OffPolicy) Known() bool { return o != nil && o.Shown != NoSupport }

// ReferenceWords names the policy whose value is estimated, for a sentence.
func (o *OffPolicy) ReferenceWords() string {
	if o.Reference == ReferenceTarget {
		return "the accepted policy"
	}
	return "a policy with the baseline's action frequencies"
}

// Per returns the name of the unit that figures refer to, such as episode.
func (o *OffPolicy) Per(unit UnitName) string {
	if o.PerStep {
		return "step"
	}
	return unit.One()
}

// Words describes the estimate in a sentence.
func (o *OffPolicy) Words(unit UnitName) string {
	if !o.Known() {
		return fmt.Sprintf("not enough support to estimate what %s would have earned: %s", o.ReferenceWords(), o.Why)
	}
	return fmt.Sprintf("%s would have earned %s per %s (%s to %s); actual: %s", o.ReferenceWords(), Figure(o.Value),
		o.Per(unit), Figure(o.Low), Figure(o.High), Figure(o.Actual))
}

// ChangeWords describes which part of the change is due to the policy, and which to the environment; "" without an
// estimate.
func (o *OffPolicy) ChangeWords() string {
	if !o.Known() {
		return ""
	}
	part := func(p PartOfChange) string {
		return fmt.Sprintf("%s (%s to %s)", signed(p.Mean), signed(p.Low), signed(p.High))
	}
	return fmt.Sprintf("%s of the change is due to the policy, and %s to the environment", part(o.Policy), part(o.World))
}

// ShownWords describes what the estimate shows; "" without an estimate.
func (o *OffPolicy) ShownWords() string {
	switch o.Shown {
	case ShownPolicy:
		return "the policy has changed; a change in the environment is not certain"
	case ShownWorld:
		return "the environment has changed; a change in the policy is not certain"
	case ShownBoth:
		return "both the policy and the environment have changed"
	case Undecided:
		return "undecided: " + o.Why
	}
	return ""
}

func signed(x float64) string {
	if x > 0 {
		return "+" + Figure(x)
	}
	return Figure(x)
}

// offPolicyJSON is the JSON form of an OffPolicy.
type offPolicyJSON struct {
	Reference      string       `json:"reference"`
	Shown          Shown        `json:"shown"`
	Why            string       `json:"why"`
	Units          int64        `json:"units"`
	PerStep        bool         `json:"per_step"`
	Effective      Number       `json:"effective_sample_size"`
	MeanWeight     Number       `json:"mean_weight"`
	Value          Number       `json:"value"`
	Low            Number       `json:"low"`
	High           Number       `json:"high"`
	SelfNormalized Number       `json:"self_normalized"`
	Actual         Number       `json:"actual"`
	Baseline       Number       `json:"baseline"`
	World          partOfChange `json:"world"`
	Policy         partOfChange `json:"policy"`
}

type partOfChange struct {
	Mean Number `json:"mean"`
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// MarshalJSON writes the figures as Numbers.
func (o OffPolicy) MarshalJSON() ([]byte, error) {
	part := func(p PartOfChange) partOfChange { return partOfChange{Number(p.Mean), Number(p.Low), Number(p.High)} }
	return json.Marshal(offPolicyJSON{
		o.Reference, o.Shown, o.Why, o.Units, o.PerStep, Number(o.Effective), Number(o.MeanWeight), Number(o.Value),
		Number(o.Low), Number(o.High), Number(o.SelfNormalized), Number(o.Actual), Number(o.Baseline), part(o.World),
		part(o.Policy),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote; null is read as 0.
func (o *OffPolicy) UnmarshalJSON(text []byte) error {
	var t offPolicyJSON
	err := json.Unmarshal(text, &t)
	part := func(p partOfChange) PartOfChange {
		return PartOfChange{float64(p.Mean), float64(p.Low), float64(p.High)}
	}
	*o = OffPolicy{
		t.Reference, t.Shown, t.Why, t.Units, t.PerStep, float64(t.Effective), float64(t.MeanWeight), float64(t.Value),
		float64(t.Low), float64(t.High), float64(t.SelfNormalized), float64(t.Actual), float64(t.Baseline), part(t.World),
		part(t.Policy),
	}
	return err
}

// OffPolicyWire is the wire form of an OffPolicy. Field numbers are never reused; package saved has the rules.
type OffPolicyWire struct {
	Reference      string           `cbor:"1,keyasint,omitzero"`
	Shown          Shown            `cbor:"2,keyasint,omitzero"`
	Why            string           `cbor:"3,keyasint,omitzero"`
	Units          int64            `cbor:"4,keyasint,omitzero"`
	PerStep        bool             `cbor:"5,keyasint,omitzero"`
	Effective      float64          `cbor:"6,keyasint"`
	MeanWeight     float64          `cbor:"7,keyasint"`
	Value          float64          `cbor:"8,keyasint"`
	Low            float64          `cbor:"9,keyasint"`
	High           float64          `cbor:"10,keyasint"`
	SelfNormalized float64          `cbor:"11,keyasint"`
	Actual         float64          `cbor:"12,keyasint"`
	Baseline       float64          `cbor:"13,keyasint"`
	World          PartOfChangeWire `cbor:"14,keyasint"`
	Policy         PartOfChangeWire `cbor:"15,keyasint"`
}

// PartOfChangeWire is the wire form of a PartOfChange.
type PartOfChangeWire struct {
	Mean float64 `cbor:"1,keyasint"`
	Low  float64 `cbor:"2,keyasint"`
	High float64 `cbor:"3,keyasint"`
}

// OffPolicyWireOf returns the wire form of an estimate.
func OffPolicyWireOf(x *OffPolicy) OffPolicyWire {
	return OffPolicyWire{
		Reference: x.Reference, Shown: x.Shown, Why: x.Why, Units: x.Units, PerStep: x.PerStep, Effective: x.Effective,
		MeanWeight: x.MeanWeight, Value: x.Value, Low: x.Low, High: x.High, SelfNormalized: x.SelfNormalized,
		Actual: x.Actual, Baseline: x.Baseline, World: PartOfChangeWire(x.World), Policy: PartOfChangeWire(x.Policy),
	}
}

// Live returns the estimate.
func (w *OffPolicyWire) Live() OffPolicy {
	return OffPolicy{
		Reference: w.Reference, Shown: w.Shown, Why: w.Why, Units: w.Units, PerStep: w.PerStep, Effective: w.Effective,
		MeanWeight: w.MeanWeight, Value: w.Value, Low: w.Low, High: w.High, SelfNormalized: w.SelfNormalized,
		Actual: w.Actual, Baseline: w.Baseline, World: PartOfChange(w.World), Policy: PartOfChange(w.Policy),
	}
}
