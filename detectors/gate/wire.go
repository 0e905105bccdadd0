package gate

import (
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/offpolicy"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

type comparedWire struct {
	New saved.Moments `cbor:"1,keyasint"`
	Now saved.Moments `cbor:"2,keyasint"`
}

func (x *compared) wire() comparedWire {
	return comparedWire{
		New: saved.Moments(x.New), Now: saved.Moments(x.Now),
	}
}

func (w *comparedWire) live() compared {
	return compared{
		New: ingest.Moments(w.New), Now: ingest.Moments(w.Now),
	}
}

type comparedStreamWire struct {
	Each    []comparedWire `cbor:"1,keyasint,omitzero"`
	AlarmAt int64          `cbor:"2,keyasint,omitzero"`
	Alarm   string         `cbor:"3,keyasint,omitzero"`
}

func (x *comparedStream) wire() comparedStreamWire {
	return comparedStreamWire{
		Each: saved.EachOf(x.Each, (*compared).wire), AlarmAt: x.AlarmAt, Alarm: x.Alarm,
	}
}

func (w *comparedStreamWire) live() comparedStream {
	return comparedStream{
		Each: saved.EachOf(w.Each, (*comparedWire).live), AlarmAt: w.AlarmAt, Alarm: w.Alarm,
	}
}

type trialWire struct {
	Version  string               `cbor:"1,keyasint,omitzero"`
	Shadow   bool                 `cbor:"2,keyasint,omitzero"`
	Units    int64                `cbor:"3,keyasint,omitzero"`
	Last     int64                `cbor:"4,keyasint,omitzero"`
	Other    string               `cbor:"5,keyasint,omitzero"`
	Tests    *battery.Wire        `cbor:"6,keyasint,omitzero"`
	Compared []comparedStreamWire `cbor:"7,keyasint,omitzero"`
	Worse    string               `cbor:"8,keyasint,omitzero"`
	Earned   *earnedWire          `cbor:"9,keyasint,omitzero"`
}

type earnedWire struct {
	Before offpolicy.RunningWire `cbor:"1,keyasint"`
	Now    offpolicy.RunningWire `cbor:"2,keyasint"`
}

func (x *earned) wire() earnedWire { return earnedWire{Before: x.Before.Wire(), Now: x.Now.Wire()} }

func (w *earnedWire) live() earned { return earned{Before: w.Before.Live(), Now: w.Now.Live()} }

func (x *trial) wire() trialWire {
	return trialWire{
		Version: x.Version, Shadow: x.Shadow, Units: x.Units, Last: x.Last, Other: x.Other,
		Tests: saved.Pointer(x.Tests, (*battery.Battery).Wire), Compared: saved.EachOf(x.Compared, (*comparedStream).wire),
		Worse: x.Worse, Earned: saved.Pointer(x.Earned, (*earned).wire),
	}
}

func (w *trialWire) live() trial {
	return trial{
		Version: w.Version, Shadow: w.Shadow, Units: w.Units, Last: w.Last, Other: w.Other,
		Tests:    saved.Pointer(w.Tests, (*battery.Wire).Live),
		Compared: saved.EachOf(w.Compared, (*comparedStreamWire).live), Worse: w.Worse, Earned: saved.Pointer(w.Earned, (*earnedWire).live),
	}
}

type gateMeanWire struct {
	Units int64   `cbor:"1,keyasint,omitzero"`
	Mean  float64 `cbor:"2,keyasint"`
	SD    float64 `cbor:"3,keyasint"`
}

type gateSignalWire struct {
	Signal    string          `cbor:"1,keyasint,omitzero"`
	Quantity  string          `cbor:"2,keyasint,omitzero"`
	Side      int             `cbor:"3,keyasint,omitzero"`
	Verdict   finding.Verdict `cbor:"4,keyasint,omitzero"`
	Why       string          `cbor:"5,keyasint,omitzero"`
	Before    gateMeanWire    `cbor:"6,keyasint"`
	After     gateMeanWire    `cbor:"7,keyasint"`
	Meanwhile gateMeanWire    `cbor:"8,keyasint"`
	Effect    float64         `cbor:"9,keyasint"`
	Low       float64         `cbor:"10,keyasint"`
	High      float64         `cbor:"11,keyasint"`
	Score     float64         `cbor:"12,keyasint"`
	Test      string          `cbor:"13,keyasint,omitzero"`
	AlarmAt   int64           `cbor:"14,keyasint,omitzero"`
	Alarm     string          `cbor:"15,keyasint,omitzero"`
	Fault     string          `cbor:"16,keyasint,omitzero"`
}

func gateSignalWireOf(x *finding.GateSignal) gateSignalWire {
	return gateSignalWire{
		Signal: x.Signal, Quantity: x.Quantity, Side: x.Side, Verdict: x.Verdict, Why: x.Why,
		Before: gateMeanWire(x.Before), After: gateMeanWire(x.After), Meanwhile: gateMeanWire(x.Meanwhile),
		Effect: x.Effect, Low: x.Low, High: x.High, Score: x.Score, Test: x.Test, AlarmAt: x.AlarmAt,
		Alarm: x.Alarm, Fault: x.Fault,
	}
}

func (w *gateSignalWire) live() finding.GateSignal {
	return finding.GateSignal{
		Signal: w.Signal, Quantity: w.Quantity, Side: w.Side, Verdict: w.Verdict, Why: w.Why,
		Before: finding.GateMean(w.Before), After: finding.GateMean(w.After), Meanwhile: finding.GateMean(w.Meanwhile), Effect: w.Effect,
		Low: w.Low, High: w.High, Score: w.Score, Test: w.Test, AlarmAt: w.AlarmAt, Alarm: w.Alarm,
		Fault: w.Fault,
	}
}

type gateWire struct {
	Version    string           `cbor:"1,keyasint,omitzero"`
	Shadow     bool             `cbor:"2,keyasint,omitzero"`
	Verdict    finding.Verdict  `cbor:"3,keyasint,omitzero"`
	Why        string           `cbor:"4,keyasint,omitzero"`
	Units      int64            `cbor:"5,keyasint,omitzero"`
	Wanted     int64            `cbor:"6,keyasint,omitzero"`
	Production string           `cbor:"7,keyasint,omitzero"`
	Baseline   string           `cbor:"8,keyasint,omitzero"`
	Ended      string           `cbor:"9,keyasint,omitzero"`
	Signals    []gateSignalWire `cbor:"10,keyasint,omitzero"`

	OffPolicy *finding.OffPolicyWire `cbor:"11,keyasint,omitzero"`
}

func gateWireOf(x *finding.Gate) gateWire {
	return gateWire{
		Version: x.Version, Shadow: x.Shadow, Verdict: x.Verdict, Why: x.Why, Units: x.Units, Wanted: x.Wanted,
		Production: x.Production, Baseline: x.Baseline, Ended: x.Ended,
		Signals: saved.EachOf(x.Signals, gateSignalWireOf), OffPolicy: saved.Pointer(x.OffPolicy, finding.OffPolicyWireOf),
	}
}

func (w *gateWire) live() finding.Gate {
	return finding.Gate{
		Version: w.Version, Shadow: w.Shadow, Verdict: w.Verdict, Why: w.Why, Units: w.Units, Wanted: w.Wanted,
		Production: w.Production, Baseline: w.Baseline, Ended: w.Ended,
		Signals: saved.EachOf(w.Signals, (*gateSignalWire).live), OffPolicy: saved.Pointer(w.OffPolicy, (*finding.OffPolicyWire).Live),
	}
}

// Wire is the wire form of Gates.
type Wire struct {
	Baseline   string       `cbor:"1,keyasint,omitzero"`
	Production string       `cbor:"2,keyasint,omitzero"`
	Seen       int64        `cbor:"3,keyasint,omitzero"`
	Trials     []*trialWire `cbor:"4,keyasint,omitzero"`
	Ended      []gateWire   `cbor:"5,keyasint,omitzero"`
}

// Wire returns the wire form of the gates.
func (x *Gates) Wire() Wire {
	return Wire{
		Baseline: x.Baseline, Production: x.Production, Seen: x.Seen,
		Trials: saved.Each(x.Trials, func(e *trial) *trialWire { return saved.Pointer(e, (*trial).wire) }),
		Ended:  saved.EachOf(x.Ended, gateWireOf),
	}
}

// Live returns the gates. Attach completes them.
func (w *Wire) Live() Gates {
	return Gates{
		Baseline: w.Baseline, Production: w.Production, Seen: w.Seen,
		Trials: saved.Each(w.Trials, func(e *trialWire) *trial { return saved.Pointer(e, (*trialWire).live) }),
		Ended:  saved.EachOf(w.Ended, (*gateWire).live),
	}
}
