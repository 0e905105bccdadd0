package fault

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

type heldWire struct {
	Rule  string `cbor:"1,keyasint,omitzero"`
	Clean int    `cbor:"2,keyasint,omitzero"`
}

type heldRulesWire struct {
	Scale      heldWire `cbor:"1,keyasint"`
	Clipped    heldWire `cbor:"2,keyasint"`
	NonFinite  heldWire `cbor:"3,keyasint"`
	Constant   heldWire `cbor:"4,keyasint"`
	Missing    heldWire `cbor:"5,keyasint"`
	ActionKind heldWire `cbor:"6,keyasint"`
}

func (x *heldRules) wire() heldRulesWire {
	return heldRulesWire{
		Scale: heldWire(x.Scale), Clipped: heldWire(x.Clipped), NonFinite: heldWire(x.NonFinite),
		Constant: heldWire(x.Constant), Missing: heldWire(x.Missing), ActionKind: heldWire(x.ActionKind),
	}
}

func (w *heldRulesWire) live() heldRules {
	return heldRules{
		Scale: held(w.Scale), Clipped: held(w.Clipped), NonFinite: held(w.NonFinite), Constant: held(w.Constant),
		Missing: held(w.Missing), ActionKind: held(w.ActionKind),
	}
}

type nonFiniteWire struct {
	Bad   [20]int64 `cbor:"1,keyasint"`
	Total [20]int64 `cbor:"2,keyasint"`
	Next  int       `cbor:"3,keyasint,omitzero"`
}

func (x *nonFinite) wire() nonFiniteWire {
	w := nonFiniteWire{Next: x.Next}
	for i := range x.Bad {
		w.Bad[i], w.Total[i] = int64(x.Bad[i]), int64(x.Total[i])
	}
	return w
}

func (w *nonFiniteWire) live() nonFinite {
	x := nonFinite{Next: w.Next}
	for i := range x.Bad {
		x.Bad[i], x.Total[i] = few(w.Bad[i]), few(w.Total[i])
	}
	return x
}

type constantWire struct {
	Value        float64          `cbor:"1,keyasint"`
	Run          int              `cbor:"2,keyasint,omitzero"`
	Varied       bool             `cbor:"3,keyasint,omitzero"`
	Action       uint64           `cbor:"4,keyasint,omitzero"`
	WarmRuns     int              `cbor:"5,keyasint,omitzero"`
	WarmPairs    int              `cbor:"6,keyasint,omitzero"`
	WarmLongest  int              `cbor:"7,keyasint,omitzero"`
	Ends         levels           `cbor:"8,keyasint,omitzero"`
	Runs         levels           `cbor:"9,keyasint,omitzero"`
	Steps        detectors.Floats `cbor:"10,keyasint,omitzero"`
	Known        int              `cbor:"11,keyasint,omitzero"`
	Allowed      int              `cbor:"12,keyasint,omitzero"`
	AllowedSteps int64            `cbor:"13,keyasint,omitzero"`
}

type endWire struct {
	Warm  detectors.Floats `cbor:"1,keyasint,omitzero"`
	Cut   float64          `cbor:"2,keyasint"`
	Need  int              `cbor:"3,keyasint,omitzero"`
	Last  [20]float64      `cbor:"4,keyasint"`
	Next  int32            `cbor:"5,keyasint,omitzero"`
	Units int32            `cbor:"6,keyasint,omitzero"`
}

type clippedWire struct {
	Upper endWire `cbor:"1,keyasint"`
	Lower endWire `cbor:"2,keyasint"`
	Mean  float64 `cbor:"3,keyasint"`

	Starts startsWire `cbor:"4,keyasint,omitzero"`
}

type startsWire struct {
	Values   [4]float32 `cbor:"1,keyasint"`
	Counts   [4]int32   `cbor:"2,keyasint"`
	Episodes int32      `cbor:"3,keyasint"`
}

func (x *clipped) wire() clippedWire {
	return clippedWire{
		Upper: endWire(x.Upper), Lower: endWire(x.Lower), Mean: x.Mean, Starts: startsWire(x.Starts),
	}
}

func (w *clippedWire) live() clipped {
	return clipped{
		Upper: end(w.Upper), Lower: end(w.Lower), Mean: w.Mean, Starts: starts(w.Starts),
	}
}

type spanWire struct {
	Low   float64 `cbor:"1,keyasint"`
	High  float64 `cbor:"2,keyasint"`
	Share float64 `cbor:"3,keyasint"`
}

type spreadWire struct {
	Mean  float64 `cbor:"1,keyasint"`
	SD    float64 `cbor:"2,keyasint"`
	Units int     `cbor:"3,keyasint"`
}

type scalePartWire struct {
	Sizes     detectors.Floats `cbor:"1,keyasint,omitzero"`
	Usual     bool             `cbor:"2,keyasint,omitzero"`
	Outer     spanWire         `cbor:"3,keyasint"`
	Quartiles spanWire         `cbor:"4,keyasint"`
	Run       detectors.Floats `cbor:"5,keyasint,omitzero"`
	Spread    spreadWire       `cbor:"6,keyasint,omitzero"`
}

func (x *scalePart) wire() scalePartWire {
	return scalePartWire{
		Sizes: x.Sizes, Usual: x.Usual, Outer: spanWire(x.Outer), Quartiles: spanWire(x.Quartiles), Run: x.Run,
		Spread: spreadWire(x.Spread),
	}
}

func (w *scalePartWire) live() scalePart {
	return scalePart{
		Sizes: w.Sizes, Usual: w.Usual, Outer: span(w.Outer), Quartiles: span(w.Quartiles), Run: w.Run,
		Spread: spread(w.Spread),
	}
}

type modeWire struct {
	Is   bool    `cbor:"1,keyasint,omitzero"`
	From float64 `cbor:"2,keyasint"`
	To   float64 `cbor:"3,keyasint"`
}

type scaleWire struct {
	Scales  detectors.Floats `cbor:"1,keyasint,omitzero"`
	Shapes  detectors.Floats `cbor:"2,keyasint,omitzero"`
	Parts   []scalePartWire  `cbor:"3,keyasint"`
	Median  float64          `cbor:"4,keyasint"`
	Low     float64          `cbor:"5,keyasint"`
	High    float64          `cbor:"6,keyasint"`
	Below   modeWire         `cbor:"7,keyasint"`
	Above   modeWire         `cbor:"8,keyasint"`
	Need    int              `cbor:"9,keyasint,omitzero"`
	Run     int              `cbor:"10,keyasint,omitzero"`
	Up      bool             `cbor:"11,keyasint,omitzero"`
	Factors [20]float64      `cbor:"12,keyasint"`
	Angles  [20]float64      `cbor:"13,keyasint"`
	Version string           `cbor:"14,keyasint,omitzero"`
	Changed bool             `cbor:"15,keyasint,omitzero"`
	Fits    bool             `cbor:"16,keyasint,omitzero"`
	Near    float64          `cbor:"17,keyasint,omitzero"`
	Before  float64          `cbor:"18,keyasint,omitzero"`
	At      int              `cbor:"19,keyasint,omitzero"`
}

func (x *scale) wire() scaleWire {
	w := scaleWire{
		Scales: x.Scales, Shapes: x.Shapes, Parts: saved.EachOf(x.Parts[:], (*scalePart).wire), Median: x.Median,
		Low: x.Low, High: x.High, Below: modeWire(x.Below), Above: modeWire(x.Above), Need: x.Need,
		Run: len(x.Factors), Up: x.Up, Version: x.Version, Changed: x.Changed, Fits: x.Fits,
		Near: x.Near, Before: x.Before, At: x.At,
	}
	copy(w.Factors[:], x.Factors)
	copy(w.Angles[:], x.Angles)
	return w
}

func (w *scaleWire) live() scale {
	x := scale{
		Scales: w.Scales, Shapes: w.Shapes, Median: w.Median, Low: w.Low, High: w.High, Below: mode(w.Below),
		Above: mode(w.Above), Need: w.Need, Up: w.Up, Version: w.Version,
		Changed: w.Changed, Fits: w.Fits, Near: w.Near, Before: w.Before, At: w.At,
	}
	if w.Run > 0 {
		x.Factors, x.Angles = slices.Clone(w.Factors[:w.Run]), slices.Clone(w.Angles[:w.Run])
	}
	copy(x.Parts[:], saved.EachOf(w.Parts, (*scalePartWire).live))
	return x
}

type missingWire struct {
	Usual  bool `cbor:"1,keyasint,omitzero"`
	Absent int  `cbor:"2,keyasint,omitzero"`
}

// RulesWire is the wire form of a Rules.
type RulesWire struct {
	Rule      string        `cbor:"1,keyasint,omitzero"`
	Held      heldRulesWire `cbor:"2,keyasint"`
	Shared    string        `cbor:"3,keyasint,omitzero"`
	NonFinite nonFiniteWire `cbor:"4,keyasint"`
	Constant  constantWire  `cbor:"5,keyasint"`
	Clipped   clippedWire   `cbor:"6,keyasint"`
	Scale     scaleWire     `cbor:"7,keyasint"`
	Missing   missingWire   `cbor:"8,keyasint"`
}

// Wire returns the wire form of the rules.
func (x *Rules) Wire() RulesWire {
	v := x.Values
	if v == nil {
		v = &valueRules{}
	}
	return RulesWire{
		Rule: x.Rule, Held: x.Held.wire(), Shared: x.Shared, NonFinite: x.NonFinite.wire(),
		Constant: constantWire(x.Constant), Clipped: v.Clipped.wire(), Scale: v.Scale.wire(),
		Missing: missingWire(x.Missing),
	}
}

// Live returns the rules.
func (w *RulesWire) Live() Rules {
	x := Rules{
		Rule: w.Rule, Held: w.Held.live(), Shared: w.Shared, NonFinite: w.NonFinite.live(),
		Constant: constant(w.Constant), Missing: missing(w.Missing),
	}
	if c, s := &w.Clipped, &w.Scale; c.Upper.Units > 0 || c.Upper.Need > 0 || c.Lower.Need > 0 || len(c.Upper.Warm) > 0 || c.Starts.Episodes > 0 || s.Need > 0 || s.Version != "" || len(s.Scales) > 0 {
		x.Values = &valueRules{c.live(), s.live()}
	}
	return x
}

type marksWire struct {
	Held      heldWire `cbor:"1,keyasint"`
	Last      []int64  `cbor:"2,keyasint,omitzero"`
	Next      int      `cbor:"3,keyasint,omitzero"`
	Sum       int64    `cbor:"4,keyasint,omitzero"`
	Limit     int64    `cbor:"5,keyasint,omitzero"`
	Newest    int64    `cbor:"6,keyasint,omitzero"`
	Warm      int64    `cbor:"7,keyasint,omitzero"`
	WarmUnits int      `cbor:"8,keyasint,omitzero"`
}

func (x *marks) wire() marksWire {
	return marksWire{
		Held: heldWire(x.Held), Last: saved.Each(x.Last, long), Next: x.Next, Sum: x.Sum, Limit: x.Limit, Newest: x.Newest,
		Warm: x.Warm, WarmUnits: x.WarmUnits,
	}
}

func (w *marksWire) live() marks {
	return marks{
		Held: held(w.Held), Last: saved.Each(w.Last, short), Next: w.Next, Sum: w.Sum - beyondShort(w.Last), Limit: w.Limit, Newest: w.Newest,
		Warm: w.Warm, WarmUnits: w.WarmUnits,
	}
}

// EpisodesWire is the wire form of an Episodes.
type EpisodesWire struct {
	Episodes int64 `cbor:"1,keyasint,omitzero"`
	Ended    int64 `cbor:"2,keyasint,omitzero"`
}

type endingsWire struct {
	Last    []int64      `cbor:"1,keyasint,omitzero"`
	Next    int          `cbor:"2,keyasint,omitzero"`
	Sum     int64        `cbor:"3,keyasint,omitzero"`
	Usual   EpisodesWire `cbor:"4,keyasint"`
	All     EpisodesWire `cbor:"5,keyasint"`
	Changed heldWire     `cbor:"6,keyasint"`
	Mostly  heldWire     `cbor:"7,keyasint"`
	Each    int64        `cbor:"8,keyasint,omitzero"`
}

func (x *endings) wire() endingsWire {
	return endingsWire{
		Last: saved.Each(x.Last, long), Next: x.Next, Sum: x.Sum, Usual: EpisodesWire(x.Usual), All: EpisodesWire(x.All),
		Changed: heldWire(x.Changed), Mostly: heldWire(x.Mostly), Each: x.Each,
	}
}

func (w *endingsWire) live() endings {
	return endings{
		Last: saved.Each(w.Last, short), Next: w.Next, Sum: w.Sum - beyondShort(w.Last), Usual: Episodes(w.Usual), All: Episodes(w.All),
		Changed: held(w.Changed), Mostly: held(w.Mostly), Each: w.Each,
	}
}

type progressWire struct {
	Front  int64 `cbor:"1,keyasint,omitzero"`
	Ahead  int   `cbor:"2,keyasint,omitzero"`
	Behind int   `cbor:"3,keyasint,omitzero"`
}

// DeliveryWire is the wire form of a Delivery.
type DeliveryWire struct {
	Duplicates marksWire                          `cbor:"1,keyasint"`
	Late       marksWire                          `cbor:"2,keyasint"`
	Skewed     marksWire                          `cbor:"3,keyasint"`
	Abandoned  marksWire                          `cbor:"4,keyasint"`
	Endings    endingsWire                        `cbor:"5,keyasint"`
	Clocks     map[ingest.Partition]*progressWire `cbor:"6,keyasint,omitzero"`
}

// Wire returns the wire form of Delivery.
func (x *Delivery) Wire() DeliveryWire {
	return DeliveryWire{
		Duplicates: x.Duplicates.wire(), Late: x.Late.wire(), Skewed: x.Skewed.wire(),
		Abandoned: x.Abandoned.wire(), Endings: x.Endings.wire(),
		Clocks: saved.EachValue(x.Clocks, func(e *progress) *progressWire {
			return saved.Pointer(e, func(e *progress) progressWire { return progressWire(*e) })
		}),
	}
}

// Live returns the Delivery.
func (w *DeliveryWire) Live() Delivery {
	return Delivery{
		Duplicates: w.Duplicates.live(), Late: w.Late.live(), Skewed: w.Skewed.live(),
		Abandoned: w.Abandoned.live(), Endings: w.Endings.live(),
		Clocks: saved.EachValue(w.Clocks, func(e *progressWire) *progress {
			return saved.Pointer(e, func(e *progressWire) progress { return progress(*e) })
		}),
	}
}
