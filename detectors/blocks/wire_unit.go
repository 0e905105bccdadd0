package blocks

import (
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

type namedMomentsWire struct {
	Signal    string  `cbor:"1,keyasint,omitzero"`
	N         int64   `cbor:"2,keyasint,omitzero"`
	NonFinite int64   `cbor:"3,keyasint,omitzero"`
	Mean      float64 `cbor:"4,keyasint"`
	M2        float64 `cbor:"5,keyasint"`
	Min       float64 `cbor:"6,keyasint"`
	Max       float64 `cbor:"7,keyasint"`
	Positive  float64 `cbor:"8,keyasint"`
	Negative  float64 `cbor:"9,keyasint"`
	Q10       float64 `cbor:"10,keyasint"`
	Q90       float64 `cbor:"11,keyasint"`
}

func namedMomentsWireOf(x *ingest.NamedMoments) namedMomentsWire {
	return namedMomentsWire{
		Signal: x.Signal, N: x.N, NonFinite: x.NonFinite, Mean: x.Mean, M2: x.M2, Min: x.Min, Max: x.Max,
		Positive: x.Positive, Negative: x.Negative, Q10: x.Q10, Q90: x.Q90,
	}
}

func (w *namedMomentsWire) live() ingest.NamedMoments {
	return ingest.NamedMoments{
		Signal:  w.Signal,
		Moments: ingest.Moments{N: w.N, NonFinite: w.NonFinite, Mean: w.Mean, M2: w.M2, Min: w.Min, Max: w.Max, Positive: w.Positive, Negative: w.Negative},
		Q10:     w.Q10, Q90: w.Q90,
	}
}

type decisionsWire struct {
	N       int64         `cbor:"1,keyasint,omitzero"`
	Returns saved.Moments `cbor:"2,keyasint"`
}

func decisionsWireOf(x *ingest.Decisions) decisionsWire {
	return decisionsWire{N: x.N, Returns: saved.Moments(x.Returns)}
}

func (w *decisionsWire) live() ingest.Decisions {
	return ingest.Decisions{N: w.N, Returns: ingest.Moments(w.Returns)}
}

// unitWire is large because it has a field for each one of ingest.Unit.
type unitWire struct {
	Group            ingest.Group       `cbor:"1,keyasint"`
	Agent            string             `cbor:"2,keyasint,omitzero"`
	Episode          string             `cbor:"3,keyasint,omitzero"`
	End              ingest.End         `cbor:"4,keyasint,omitzero"`
	Mixed            bool               `cbor:"5,keyasint,omitzero"`
	Versions         saved.Versions     `cbor:"6,keyasint"`
	StartTS          int64              `cbor:"7,keyasint,omitzero"`
	EndTS            int64              `cbor:"8,keyasint,omitzero"`
	First            saved.Position     `cbor:"9,keyasint"`
	Last             saved.Position     `cbor:"10,keyasint"`
	Pos              saved.Position     `cbor:"11,keyasint"`
	Ord              int32              `cbor:"12,keyasint,omitzero"`
	Reading          int64              `cbor:"13,keyasint,omitzero"`
	Run              int64              `cbor:"14,keyasint,omitzero"`
	Length           int64              `cbor:"15,keyasint,omitzero"`
	HasReturn        bool               `cbor:"16,keyasint,omitzero"`
	Return           float64            `cbor:"17,keyasint"`
	Reward           saved.Moments      `cbor:"18,keyasint"`
	RewardQ10        float64            `cbor:"19,keyasint"`
	RewardQ90        float64            `cbor:"20,keyasint"`
	LongestConstant  int64              `cbor:"21,keyasint,omitzero"`
	ConstantReward   float64            `cbor:"22,keyasint"`
	Profile          []float32          `cbor:"23,keyasint,omitzero"`
	ProfileSteps     int64              `cbor:"24,keyasint,omitzero"`
	ActionKind       ingest.ActionKind  `cbor:"25,keyasint,omitzero"`
	MixedActionKinds bool               `cbor:"26,keyasint,omitzero"`
	Actions          []saved.Count      `cbor:"27,keyasint,omitzero"`
	Numeric          []namedMomentsWire `cbor:"28,keyasint,omitzero"`
	Events           int64              `cbor:"29,keyasint,omitzero"`
	Backwards        int64              `cbor:"30,keyasint,omitzero"`
	Duplicates       int64              `cbor:"31,keyasint,omitzero"`
	Late             int64              `cbor:"32,keyasint,omitzero"`
	Abandoned        int64              `cbor:"33,keyasint,omitzero"`
	Unfinished       int64              `cbor:"34,keyasint,omitzero"`
	Shadow           bool               `cbor:"35,keyasint,omitzero"`
	Propensity       *saved.Propensity  `cbor:"36,keyasint,omitzero"`
	Decisions        *decisionsWire     `cbor:"37,keyasint,omitzero"`
	Steps            *ingest.WireSteps  `cbor:"38,keyasint,omitzero"`
	Labels           []saved.Label      `cbor:"39,keyasint,omitzero"`
	Shown            bool               `cbor:"40,keyasint,omitzero"`
}

func unitWireOf(x *ingest.Unit) unitWire {
	return unitWire{
		Group: x.Group, Agent: x.Agent, Episode: x.Episode, End: x.End, Mixed: x.Mixed,
		Versions: saved.Versions(x.Versions), StartTS: x.StartTS, EndTS: x.EndTS, First: saved.Position(x.First),
		Last: saved.Position(x.Last), Pos: saved.Position(x.Pos), Ord: x.Ord, Reading: x.Reading, Run: x.Run,
		Length: x.Length, HasReturn: x.HasReturn, Return: x.Return, Reward: saved.Moments(x.Reward),
		RewardQ10: x.RewardQ10, RewardQ90: x.RewardQ90, LongestConstant: x.LongestConstant,
		ConstantReward: x.ConstantReward, Profile: x.Profile, ProfileSteps: x.ProfileSteps,
		ActionKind: x.ActionKind, MixedActionKinds: x.MixedActionKinds,
		Actions: saved.EachOf(x.Actions, saved.CountOf), Numeric: saved.EachOf(x.Numeric, namedMomentsWireOf),
		Events: x.Events, Backwards: x.Backwards, Duplicates: x.Duplicates, Late: x.Late, Abandoned: x.Abandoned,
		Unfinished: x.Unfinished, Shadow: x.Shadow, Shown: x.Shown, Propensity: saved.Pointer(x.Propensity, saved.PropensityOf),
		Decisions: saved.Pointer(x.Decisions, decisionsWireOf), Steps: (*ingest.WireSteps)(x.Steps),
		Labels: saved.Each(x.Labels, func(l ingest.Label) saved.Label { return saved.Label(l) }),
	}
}

func (w *unitWire) live() ingest.Unit {
	return ingest.Unit{
		Group: w.Group, Agent: w.Agent, Episode: w.Episode, End: w.End, Mixed: w.Mixed, Shadow: w.Shadow, Shown: w.Shown,
		Versions: ingest.Versions(w.Versions), StartTS: w.StartTS, EndTS: w.EndTS,
		First: ingest.Position(w.First), Last: ingest.Position(w.Last), Pos: ingest.Position(w.Pos), Ord: w.Ord,
		Reading: w.Reading, Run: w.Run, Length: w.Length, HasReturn: w.HasReturn, Return: w.Return,
		Reward: ingest.Moments(w.Reward), RewardQ10: w.RewardQ10, RewardQ90: w.RewardQ90,
		LongestConstant: w.LongestConstant, ConstantReward: w.ConstantReward, Profile: w.Profile,
		ProfileSteps: w.ProfileSteps, ActionKind: w.ActionKind, MixedActionKinds: w.MixedActionKinds,
		Actions: saved.EachOf(w.Actions, (*saved.Count).Live),
		Numeric: saved.EachOf(w.Numeric, (*namedMomentsWire).live), Events: w.Events, Backwards: w.Backwards,
		Duplicates: w.Duplicates, Late: w.Late, Abandoned: w.Abandoned, Unfinished: w.Unfinished,
		Propensity: saved.Pointer(w.Propensity, (*saved.Propensity).Live),
		Decisions:  saved.Pointer(w.Decisions, (*decisionsWire).live), Steps: (*ingest.Steps)(w.Steps),
		Labels: saved.Each(w.Labels, func(l saved.Label) ingest.Label { return ingest.Label(l) }),
	}
}
