package stream

import (
	"cmp"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/lesson"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

type recentWire struct {
	Values detectors.Floats `cbor:"1,keyasint,omitzero"`
	Next   int              `cbor:"2,keyasint,omitzero"`
}

// traceWire holds all values of a trace without ranks or units, or otherwise what the trace keeps.
type traceWire struct {
	Values detectors.Floats `cbor:"1,keyasint,omitzero"`
	First  int64            `cbor:"2,keyasint,omitzero"`
	Next   int64            `cbor:"3,keyasint,omitzero"`

	Slots []byte           `cbor:"4,keyasint,omitzero"`
	Width uint8            `cbor:"5,keyasint,omitzero"`
	Near  uint16           `cbor:"6,keyasint,omitzero"`
	Held  uint8            `cbor:"7,keyasint,omitzero"`
	Apart detectors.Floats `cbor:"8,keyasint,omitzero"` // oldest first
}

func (x *Trace) wire() traceWire {
	w := traceWire{First: x.first, Next: x.next}
	if x.ranks == nil || x.units() == 0 {
		w.Values = x.exact
		return w
	}
	w.Slots, w.Width, w.Near, w.Held = x.slots, x.width, x.near, x.held
	w.Apart = slices.Concat(x.exact[x.head:], x.exact[:x.head])[:x.apart]
	return w
}

// live returns the trace. If it followed ranks, these still have to be attached.
func (w *traceWire) live() Trace {
	if w.Width == 0 {
		return Trace{exact: w.Values, first: w.First, next: w.Next}
	}
	return Trace{
		first: w.First, next: w.Next, slots: w.Slots, exact: w.Apart,
		width: w.Width, near: w.Near, held: w.Held, apart: uint8(len(w.Apart)),
	}
}

type shapeTestWire struct {
	Window    int              `cbor:"1,keyasint,omitzero"`
	Threshold float64          `cbor:"2,keyasint"`
	Zeroed    bool             `cbor:"3,keyasint,omitzero"`
	StartedAt int64            `cbor:"4,keyasint,omitzero"`
	Score     float64          `cbor:"5,keyasint"`
	Held      detectors.Floats `cbor:"6,keyasint,omitzero"`
}

func (x *ShapeTest) wire() shapeTestWire {
	return shapeTestWire{
		Window: x.Window, Threshold: x.Threshold, Zeroed: x.Zeroed, StartedAt: x.StartedAt, Score: x.Score,
		Held: x.KS.Window(),
	}
}

func (w *shapeTestWire) live() ShapeTest {
	return ShapeTest{
		Window: w.Window, Threshold: w.Threshold, Zeroed: w.Zeroed, StartedAt: w.StartedAt, Score: w.Score,
		Held: w.Held,
	}
}

type givenMeanWire struct {
	Signal string  `cbor:"1,keyasint,omitzero"`
	Mean   float64 `cbor:"2,keyasint"`
	Side   string  `cbor:"3,keyasint,omitzero"`
}

type givenTestWire struct {
	Given     givenMeanWire   `cbor:"1,keyasint"`
	Test      *guaranteedWire `cbor:"2,keyasint,omitzero"`
	Zeroed    bool            `cbor:"3,keyasint,omitzero"`
	StartedAt int64           `cbor:"4,keyasint,omitzero"`
}

func (x *GivenTest) wire() givenTestWire {
	return givenTestWire{
		Given:  givenMeanWire(x.Given),
		Test:   saved.Pointer(x.Test, func(e *detectors.Guaranteed) guaranteedWire { return guaranteedWire(*e) }),
		Zeroed: x.Zeroed, StartedAt: x.StartedAt,
	}
}

func (w *givenTestWire) live() GivenTest {
	return GivenTest{
		Given:  watch.GivenMean(w.Given),
		Test:   saved.Pointer(w.Test, func(e *guaranteedWire) detectors.Guaranteed { return detectors.Guaranteed(*e) }),
		Zeroed: w.Zeroed, StartedAt: w.StartedAt,
	}
}

type gaugesWire struct {
	ADWIN       *adwinWire       `cbor:"1,keyasint,omitzero"`
	PageHinkley *pageHinkleyWire `cbor:"2,keyasint,omitzero"`
	Drifts      [2]int64         `cbor:"3,keyasint"`
	ARL0        []arl0Wire       `cbor:"4,keyasint"`
}

func (x *gauges) wire() gaugesWire {
	return gaugesWire{
		ADWIN:       saved.Pointer(x.ADWIN, adwinWireOf),
		PageHinkley: saved.Pointer(x.PageHinkley, func(e *detectors.PageHinkley) pageHinkleyWire { return pageHinkleyWire(*e) }),
		Drifts:      x.Drifts,
		ARL0:        saved.Each(x.ARL0[:], func(e detectors.ARL0) arl0Wire { return arl0Wire(e) }),
	}
}

func (w *gaugesWire) live() gauges {
	x := gauges{
		ADWIN:       saved.Pointer(w.ADWIN, (*adwinWire).live),
		PageHinkley: saved.Pointer(w.PageHinkley, func(e *pageHinkleyWire) detectors.PageHinkley { return detectors.PageHinkley(*e) }),
		Drifts:      w.Drifts,
	}
	copy(x.ARL0[:], saved.Each(w.ARL0, func(e arl0Wire) detectors.ARL0 { return detectors.ARL0(e) }))
	return x
}

type actionMixWire struct {
	Window int             `cbor:"1,keyasint,omitzero"`
	Recent [][]saved.Count `cbor:"2,keyasint,omitzero"`
	Next   int             `cbor:"3,keyasint,omitzero"`
	Effect float64         `cbor:"4,keyasint,omitzero"`
}

func (x *ActionMix) wire() actionMixWire {
	return actionMixWire{
		Window: x.Window,
		Recent: saved.Each(x.Recent, func(e ActionCounts) []saved.Count { return saved.EachOf(e, saved.CountOf) }),
		Next:   x.Next, Effect: x.Effect,
	}
}

func (w *actionMixWire) live() ActionMix {
	return ActionMix{
		Window: w.Window,
		Recent: saved.Each(w.Recent, func(e []saved.Count) ActionCounts { return saved.EachOf(e, (*saved.Count).Live) }),
		Next:   w.Next, Effect: w.Effect,
	}
}

type learntWire struct {
	Outcome *regressionWire  `cbor:"1,keyasint,omitzero"`
	Given   string           `cbor:"2,keyasint,omitzero"`
	Course  *degradationWire `cbor:"3,keyasint,omitzero"`
	Steps   int64            `cbor:"4,keyasint,omitzero"`
	Proof   proofWire        `cbor:"5,keyasint"`
	Proved  bool             `cbor:"6,keyasint,omitzero"`
	Refuted string           `cbor:"7,keyasint,omitzero"`
	Law     bool             `cbor:"8,keyasint,omitzero"`
	Usual   *float64         `cbor:"9,keyasint,omitzero"`
	About   *dailyWire       `cbor:"10,keyasint,omitzero"`
	// 11 was whether each episode is a single decision.
}

type dailyWire struct {
	Levels []float64 `cbor:"1,keyasint"`
	Zone   string    `cbor:"2,keyasint,omitzero"`
}

func (x *Learnt) wire() learntWire {
	return learntWire{
		Outcome: saved.Pointer(x.Outcome, func(e *lesson.Regression) regressionWire { return regressionWire(*e) }),
		Given:   x.Given,
		Course:  saved.Pointer(x.Course, func(e *lesson.Degradation) degradationWire { return degradationWire(*e) }),
		Steps:   x.Steps, Proof: proofWire(x.Proof), Proved: x.Proved, Refuted: x.Refuted, Law: x.Law, Usual: x.Usual,
		About: saved.Pointer(x.About, func(e *season.DailyMean) dailyWire { return dailyWire(*e) }),
	}
}

func (w *learntWire) live() Learnt {
	return Learnt{
		Outcome: saved.Pointer(w.Outcome, func(e *regressionWire) lesson.Regression { return lesson.Regression(*e) }),
		Given:   w.Given,
		Course:  saved.Pointer(w.Course, func(e *degradationWire) lesson.Degradation { return lesson.Degradation(*e) }),
		Steps:   w.Steps, Proof: detectors.Proof(w.Proof), Proved: w.Proved, Refuted: w.Refuted, Law: w.Law, Usual: w.Usual,
		About: saved.Pointer(w.About, func(e *dailyWire) season.DailyMean { return season.DailyMean(*e) }),
	}
}

// quantityWire has a field for each kind of Test. It is large because each kind has its own form.
type quantityWire struct {
	Name        string              `cbor:"1,keyasint,omitzero"`
	Warm        observations        `cbor:"2,keyasint,omitzero"`
	Recent      recentWire          `cbor:"3,keyasint"`
	Ranks       *RanksWire          `cbor:"4,keyasint,omitzero"`
	Rank        *rankTestWire       `cbor:"5,keyasint,omitzero"`
	Frequency   *frequencyTestWire  `cbor:"6,keyasint,omitzero"`
	Novel       *noveltyWire        `cbor:"7,keyasint,omitzero"`
	Rare        *rarityTestWire     `cbor:"8,keyasint,omitzero"`
	Season      *SeasonWire         `cbor:"9,keyasint,omitzero"`
	Mean        float64             `cbor:"10,keyasint"`
	SD          float64             `cbor:"11,keyasint"`
	Trace       traceWire           `cbor:"12,keyasint"`
	Judged      traceWire           `cbor:"13,keyasint"`
	Certificate *certificateWire    `cbor:"14,keyasint,omitzero"`
	Shape       *shapeTestWire      `cbor:"15,keyasint,omitzero"`
	Given       *givenTestWire      `cbor:"16,keyasint,omitzero"`
	Gauges      *gaugesWire         `cbor:"17,keyasint,omitzero"`
	Mix         *actionMixWire      `cbor:"18,keyasint,omitzero"`
	Learnt      *learntWire         `cbor:"19,keyasint,omitzero"`
	Reach       []reachWire         `cbor:"20,keyasint,omitzero"`
	NovelOfFew  *noveltyWire        `cbor:"21,keyasint,omitzero"`
	OfAmounts   *learntWire         `cbor:"22,keyasint,omitzero"`
	Hours       *season.HourFactors `cbor:"23,keyasint,omitzero"`
}

type reachWire struct {
	Units  int     `cbor:"1,keyasint"`
	Size   float64 `cbor:"2,keyasint"`
	Shift  float64 `cbor:"3,keyasint,omitzero"`
	OfRate bool    `cbor:"4,keyasint,omitzero"`
	Known  int32   `cbor:"5,keyasint,omitzero"`
	Others bool    `cbor:"6,keyasint,omitzero"`

	OfAmounts bool `cbor:"7,keyasint,omitzero"`
}

func (x *Quantity) wire() quantityWire {
	w := quantityWire{
		Name: x.Name, Warm: x.Warm, Recent: recentWire(x.Recent),
		Ranks: saved.Pointer(x.Ranks, RanksWireOf), Season: saved.Pointer(x.Season, SeasonWireOf), Hours: x.Hours,
		Mean: x.Mean, SD: x.SD, Trace: x.Trace.wire(), Judged: cmp.Or(x.judged, &Trace{}).wire(),
		Certificate: saved.Pointer(x.Certificate, certificateWireOf),
		Gauges:      saved.Pointer(x.Gauges, (*gauges).wire), Mix: saved.Pointer(x.Mix, (*ActionMix).wire),
		Learnt: saved.Pointer(x.Learnt, (*Learnt).wire),
		Reach:  saved.Each(x.Reach, func(e finding.Reach) reachWire { return reachWire(e) }),
	}
	if x.Learnt != nil && x.Learnt.Usual != nil {
		w.Learnt, w.OfAmounts = nil, w.Learnt // a build without amounts must not look for another lesson
	}
	for i := range x.Tests {
		x.Tests[i].save(&w)
	}
	return w
}

func (w *quantityWire) live() Quantity {
	x := Quantity{
		Name: w.Name, Warm: w.Warm, Recent: recent(w.Recent),
		Ranks:  saved.Pointer(w.Ranks, (*RanksWire).Live),
		Season: saved.Pointer(w.Season, (*SeasonWire).Live), Hours: w.Hours,
		Mean: w.Mean, SD: w.SD, Trace: w.Trace.live(),
		Certificate: saved.Pointer(w.Certificate, (*certificateWire).live),
		Gauges:      saved.Pointer(w.Gauges, (*gaugesWire).live), Mix: saved.Pointer(w.Mix, (*actionMixWire).live),
		Learnt: saved.Pointer(cmp.Or(w.Learnt, w.OfAmounts), (*learntWire).live),
		Reach:  saved.Each(w.Reach, func(e reachWire) finding.Reach { return finding.Reach(e) }),
	}
	if len(w.Judged.Values) > 0 {
		judged := w.Judged.live()
		x.judged = &judged
	}
	for i := range TestKinds {
		if t := TestKinds[i].restore(w); t != nil {
			x.Tests = append(x.Tests, TestOfKind{t, &TestKinds[i]})
		}
	}
	return x
}

type alertWire struct {
	Detectors   []string               `cbor:"1,keyasint,omitzero"`
	Score       float64                `cbor:"2,keyasint"`
	Quantity    string                 `cbor:"3,keyasint,omitzero"`
	Onset       finding.UnitRefWire    `cbor:"4,keyasint"`
	From        finding.UnitRefWire    `cbor:"5,keyasint"`
	To          finding.UnitRefWire    `cbor:"6,keyasint"`
	Interval    []saved.Range          `cbor:"7,keyasint,omitzero"`
	Effect      finding.EffectWire     `cbor:"8,keyasint"`
	Improvement bool                   `cbor:"9,keyasint,omitzero"`
	Histogram   *finding.HistogramWire `cbor:"10,keyasint,omitzero"`
	Before      saved.Versions         `cbor:"11,keyasint"`
	After       saved.Versions         `cbor:"12,keyasint"`
	Changed     []string               `cbor:"13,keyasint,omitzero"`
	Offsets     []saved.Range          `cbor:"14,keyasint,omitzero"`
	Paces       finding.PacesWire      `cbor:"15,keyasint,omitzero"`
}

func (x *Alert) wire() alertWire {
	return alertWire{
		Detectors: x.Detectors, Score: x.Score, Quantity: x.Quantity, Onset: finding.UnitRefWireOf(&x.Onset), From: finding.UnitRefWireOf(&x.From),
		To:       finding.UnitRefWireOf(&x.To),
		Interval: saved.RangesOf(x.Interval),
		Effect:   finding.EffectWire(x.Effect), Improvement: x.Improvement,
		Histogram: saved.Pointer(x.Histogram, func(e *finding.Histogram) finding.HistogramWire { return finding.HistogramWire(*e) }),
		Before:    saved.Versions(x.Before), After: saved.Versions(x.After), Changed: x.Changed,
		Offsets: saved.RangesOf(x.Offsets), Paces: finding.PacesWireOf(&x.Paces),
	}
}

func (w *alertWire) live() Alert {
	return Alert{
		Detectors: w.Detectors, Score: w.Score, Quantity: w.Quantity, Onset: w.Onset.Live(), From: w.From.Live(),
		To:       w.To.Live(),
		Interval: saved.LiveRanges(w.Interval),
		Effect:   finding.Effect(w.Effect), Improvement: w.Improvement,
		Histogram: saved.Pointer(w.Histogram, func(e *finding.HistogramWire) finding.Histogram { return finding.Histogram(*e) }),
		Before:    ingest.Versions(w.Before), After: ingest.Versions(w.After), Changed: w.Changed,
		Offsets: saved.LiveRanges(w.Offsets), Paces: w.Paces.Live(),
	}
}

// Wire is the wire form of a Stream. Field numbers are never reused, see package saved.
type Wire struct {
	Signal     string                  `cbor:"1,keyasint,omitzero"`
	State      finding.State           `cbor:"2,keyasint,omitzero"`
	Quantities []*quantityWire         `cbor:"3,keyasint,omitzero"`
	Fault      fault.RulesWire         `cbor:"4,keyasint"`
	Told       string                  `cbor:"5,keyasint,omitzero"`
	Alarmed    bool                    `cbor:"6,keyasint,omitzero"`
	Low        int                     `cbor:"7,keyasint,omitzero"`
	AlarmedAt  int64                   `cbor:"8,keyasint,omitzero"`
	Alert      alertWire               `cbor:"9,keyasint"`
	InBaseline bool                    `cbor:"10,keyasint,omitzero"`
	LateUnits  int                     `cbor:"11,keyasint,omitzero"`
	LateOf     int                     `cbor:"12,keyasint,omitzero"`
	LateTrend  string                  `cbor:"13,keyasint,omitzero"`
	LateGiven  observations            `cbor:"14,keyasint,omitzero"`
	LateFrom   string                  `cbor:"15,keyasint,omitzero"`
	Own        finding.BaselineRefWire `cbor:"16,keyasint"`
	OverLimit  bool                    `cbor:"17,keyasint,omitzero"`
	NoDeciles  bool                    `cbor:"18,keyasint,omitzero"`
	Shown      bool                    `cbor:"19,keyasint,omitzero"`
}

// Wire returns the wire form of the stream.
func (x *Stream) Wire() Wire {
	alert := cmp.Or(x.Alert, &Alert{})
	return Wire{
		Signal: x.Signal, State: x.State,
		Quantities: saved.Each(x.Quantities, func(e *Quantity) *quantityWire { return saved.Pointer(e, (*Quantity).wire) }),
		Fault:      x.Fault.Wire(), Told: x.Told, Alarmed: x.Alarmed, Low: x.Low, AlarmedAt: x.AlarmedAt,
		Alert: alert.wire(), InBaseline: x.InBaseline, LateUnits: x.LateUnits, LateOf: x.LateOf,
		LateTrend: x.LateTrend, LateGiven: x.LateGiven, LateFrom: x.LateFrom, Own: finding.BaselineRefWireOf(&x.Own),
		OverLimit: x.OverLimit, NoDeciles: x.NoDeciles, Shown: x.Shown,
	}
}

// Live returns the stream. Its quantities still have to be attached.
func (w *Wire) Live() Stream {
	x := Stream{
		Signal: w.Signal, State: w.State,
		Quantities: saved.Each(w.Quantities, func(e *quantityWire) *Quantity { return saved.Pointer(e, (*quantityWire).live) }),
		Fault:      w.Fault.Live(), Told: w.Told, Alarmed: w.Alarmed, Low: w.Low, AlarmedAt: w.AlarmedAt,
		InBaseline: w.InBaseline, LateUnits: w.LateUnits, LateOf: w.LateOf,
		LateTrend: w.LateTrend, LateGiven: w.LateGiven, LateFrom: w.LateFrom, Own: w.Own.Live(),
		OverLimit: w.OverLimit, NoDeciles: w.NoDeciles, Shown: w.Shown,
	}
	if w.Alarmed || w.Alert.Quantity != "" {
		alert := w.Alert.live()
		x.Alert = &alert
	}
	return x
}
