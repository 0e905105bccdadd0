package saved

import "github.com/rewardwatch/rewardwatch/ingest"

// The wire forms of types that are in many parts. A type with the same fields in the same order as the live type is
// converted by a plain Go conversion, as in Position(p). A field that is added to only one of the two then does not
// compile. ingest.Group is its own wire form, through MarshalBinary.

// Position is the wire form of an ingest.Position.
type Position struct {
	Offset    int64            `cbor:"1,keyasint"`
	Partition ingest.Partition `cbor:"2,keyasint"`
	Record    int32            `cbor:"3,keyasint"`
}

// Range is the wire form of an ingest.Range.
type Range struct {
	Topic     string           `cbor:"4,keyasint,omitzero"`
	Partition ingest.Partition `cbor:"1,keyasint" was:"partition"`
	First     int64            `cbor:"2,keyasint" was:"first"`
	Last      int64            `cbor:"3,keyasint" was:"last"`
}

// RangesOf returns the wire form of ranges.
func RangesOf(ranges []ingest.Range) []Range {
	return Each(ranges, func(r ingest.Range) Range { return Range(r) })
}

// LiveRanges is the inverse of RangesOf.
func LiveRanges(ranges []Range) []ingest.Range {
	return Each(ranges, func(r Range) ingest.Range { return ingest.Range(r) })
}

// Versions is the wire form of ingest.Versions.
type Versions struct {
	Policy string `cbor:"1,keyasint"`
	Env    string `cbor:"2,keyasint"`
	Reward string `cbor:"3,keyasint"`
}

// Moments is the wire form of ingest.Moments.
type Moments struct {
	N         int64   `cbor:"1,keyasint"`
	NonFinite int64   `cbor:"2,keyasint"`
	Mean      float64 `cbor:"3,keyasint"`
	M2        float64 `cbor:"4,keyasint"`
	Min       float64 `cbor:"5,keyasint"`
	Max       float64 `cbor:"6,keyasint"`
	Positive  float64 `cbor:"7,keyasint"`
	Negative  float64 `cbor:"8,keyasint"`
}

// AppliedUnit is the wire form of an ingest.AppliedUnit.
type AppliedUnit struct {
	Pos     Position `cbor:"1,keyasint"`
	Ord     int32    `cbor:"2,keyasint"`
	Reading int64    `cbor:"3,keyasint"`
}

// AppliedUnitOf returns the wire form of a.
func AppliedUnitOf(a ingest.AppliedUnit) AppliedUnit {
	return AppliedUnit{Pos: Position(a.Pos), Ord: a.Ord, Reading: a.Reading}
}

// Live is the inverse of AppliedUnitOf.
func (a AppliedUnit) Live() ingest.AppliedUnit {
	return ingest.AppliedUnit{Pos: ingest.Position(a.Pos), Ord: a.Ord, Reading: a.Reading}
}

// Each converts a slice. It preserves nil and empty slices.
func Each[From, To any](slice []From, convert func(From) To) []To {
	if slice == nil {
		return nil
	}
	out := make([]To, len(slice))
	for i, x := range slice {
		out[i] = convert(x)
	}
	return out
}

// EachOf is like Each, but passes elements by address.
func EachOf[From, To any](slice []From, convert func(*From) To) []To {
	if slice == nil {
		return nil
	}
	out := make([]To, len(slice))
	for i := range slice {
		out[i] = convert(&slice[i])
	}
	return out
}

// EachValue converts the values of a map. It preserves nil.
func EachValue[Key comparable, From, To any](m map[Key]From, convert func(From) To) map[Key]To {
	if m == nil {
		return nil
	}
	out := make(map[Key]To, len(m))
	for key, x := range m {
		out[key] = convert(x)
	}
	return out
}

// Pointer converts the target of a pointer. It preserves nil.
func Pointer[From, To any](p *From, convert func(*From) To) *To {
	if p == nil {
		return nil
	}
	to := convert(p)
	return &to
}

// Count is the wire form of an ingest.Count.
type Count struct {
	Name   string  `cbor:"1,keyasint,omitzero"`
	N      int64   `cbor:"2,keyasint,omitzero"`
	Reward float64 `cbor:"3,keyasint"`
}

// CountOf returns the wire form of a count.
func CountOf(x *ingest.Count) Count {
	return Count{
		Name: x.Name, N: x.N, Reward: x.Reward,
	}
}

// Live is the inverse of CountOf.
func (w *Count) Live() ingest.Count {
	return ingest.Count{
		Name: w.Name, N: w.N, Reward: w.Reward,
	}
}

// Label is the wire form of an ingest.Label.
type Label struct {
	Name  string `cbor:"1,keyasint,omitzero"`
	Value string `cbor:"2,keyasint,omitzero"`
}

// Propensity is the wire form of an ingest.Propensity.
type Propensity struct {
	Steps          int64          `cbor:"1,keyasint,omitzero"`
	Invalid        int64          `cbor:"2,keyasint,omitzero"`
	Log            float64        `cbor:"3,keyasint"`
	Targets        int64          `cbor:"4,keyasint,omitzero"`
	LogTarget      float64        `cbor:"5,keyasint"`
	Weight         float64        `cbor:"6,keyasint"`
	WeightedReward float64        `cbor:"7,keyasint"`
	Actions        []InverseProbs `cbor:"8,keyasint,omitzero"`
}

// InverseProbs is the wire form of ingest.InverseProbs.
type InverseProbs struct {
	Sum    float64 `cbor:"1,keyasint"`
	Reward float64 `cbor:"2,keyasint"`
}

// PropensityOf returns the wire form of a propensity.
func PropensityOf(x *ingest.Propensity) Propensity {
	return Propensity{
		Steps: x.Steps, Invalid: x.Invalid, Log: x.Log, Targets: x.Targets, LogTarget: x.LogTarget, Weight: x.Weight,
		WeightedReward: x.WeightedReward, Actions: Each(x.Actions, func(e ingest.InverseProbs) InverseProbs { return InverseProbs(e) }),
	}
}

// Live is the inverse of PropensityOf.
func (w *Propensity) Live() ingest.Propensity {
	return ingest.Propensity{
		Steps: w.Steps, Invalid: w.Invalid, Log: w.Log, Targets: w.Targets, LogTarget: w.LogTarget, Weight: w.Weight,
		WeightedReward: w.WeightedReward, Actions: Each(w.Actions, func(e InverseProbs) ingest.InverseProbs { return ingest.InverseProbs(e) }),
	}
}
