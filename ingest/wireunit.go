package ingest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// WireUnit is the wire form of a Unit in the units topic and in checkpoints. The keys are part of the format and never
// change their meaning. All positions are in one partition.
//
// WireUnit is large because it has a field for each field of Unit.
type WireUnit struct {
	Policy    string       `cbor:"1,keyasint"`
	Labels    string       `cbor:"2,keyasint,omitempty"`
	Agent     string       `cbor:"3,keyasint,omitempty"`
	Episode   string       `cbor:"4,keyasint,omitempty"`
	End       End          `cbor:"5,keyasint,omitempty"`
	Mixed     bool         `cbor:"6,keyasint,omitempty"`
	Versions  wireVersions `cbor:"7,keyasint,omitzero"`
	StartTS   int64        `cbor:"8,keyasint,omitempty"`
	EndTS     int64        `cbor:"9,keyasint,omitempty"`
	Partition Partition    `cbor:"10,keyasint,omitempty"`
	First     wirePosition `cbor:"11,keyasint"`
	Last      wirePosition `cbor:"12,keyasint"`
	Pos       wirePosition `cbor:"13,keyasint"`
	Ord       int32        `cbor:"14,keyasint,omitempty"`
	Reading   int64        `cbor:"15,keyasint,omitempty"`
	Run       int64        `cbor:"16,keyasint,omitempty"`

	Length          int64       `cbor:"17,keyasint,omitempty"`
	HasReturn       bool        `cbor:"18,keyasint,omitempty"`
	Return          float64     `cbor:"19,keyasint"`
	Reward          wireMoments `cbor:"20,keyasint,omitzero"`
	RewardQ10       float64     `cbor:"21,keyasint"`
	RewardQ90       float64     `cbor:"22,keyasint"`
	LongestConstant int64       `cbor:"23,keyasint,omitempty"`
	ConstantReward  float64     `cbor:"24,keyasint"`
	Profile         []byte      `cbor:"25,keyasint,omitempty"` // float32, little endian
	ProfileSteps    int64       `cbor:"26,keyasint,omitempty"`

	ActionKind       ActionKind    `cbor:"27,keyasint,omitempty"`
	MixedActionKinds bool          `cbor:"28,keyasint,omitempty"`
	Actions          []wireCount   `cbor:"29,keyasint,omitempty"`
	Numeric          []wireNumeric `cbor:"30,keyasint,omitempty"`

	Events     int64 `cbor:"31,keyasint,omitempty"`
	Backwards  int64 `cbor:"32,keyasint,omitempty"`
	Duplicates int64 `cbor:"33,keyasint,omitempty"`
	Abandoned  int64 `cbor:"34,keyasint,omitempty"`
	Shadow     bool  `cbor:"35,keyasint,omitempty"`
	Unfinished int64 `cbor:"36,keyasint,omitempty"`
	Late       int64 `cbor:"37,keyasint,omitempty"`

	Propensity *wirePropensity `cbor:"38,keyasint,omitempty"`
	Decisions  *wireDecisions  `cbor:"39,keyasint,omitempty"`
	Steps      *WireSteps      `cbor:"40,keyasint,omitempty"`
	Split      []wireLabel     `cbor:"41,keyasint,omitempty"` // Unit.Labels; Labels above are those of the group
	Shown      bool            `cbor:"42,keyasint,omitempty"`
}

type wireLabel struct {
	_           struct{} `cbor:",toarray"`
	Name, Value string
}

type wireVersions struct {
	_                   struct{} `cbor:",toarray"`
	Policy, Env, Reward string
}

type wirePosition struct {
	_      struct{} `cbor:",toarray"`
	Offset int64
	Record int32
}

type wireMoments struct {
	_                  struct{} `cbor:",toarray"`
	N, NonFinite       int64
	Mean, M2, Min, Max float64
	Positive, Negative float64
}

type wireCount struct {
	_      struct{} `cbor:",toarray"`
	Name   string
	N      int64
	Reward float64
}

type wireNumeric struct {
	_        struct{} `cbor:",toarray"`
	Signal   string
	Moments  wireMoments
	Q10, Q90 float64
}

type wireDecisions struct {
	N       int64       `cbor:"1,keyasint"`
	Returns wireMoments `cbor:"2,keyasint"`
}

type wirePropensity struct {
	_              struct{} `cbor:",toarray"`
	Steps          int64
	Invalid        int64
	Log            float64
	Targets        int64
	LogTarget      float64
	Weight         float64
	WeightedReward float64
	Actions        []wireInverseProbs
}

type wireInverseProbs struct {
	_           struct{} `cbor:",toarray"`
	Sum, Reward float64
}

// WireUnitOf returns the wire form of a unit. All positions of the unit must be in one partition, which holds for every
// unit.
func WireUnitOf(u *Unit) *WireUnit {
	at := func(p Position) wirePosition { return wirePosition{Offset: p.Offset, Record: p.Record} }
	w := &WireUnit{
		Policy: u.Group.Policy, Labels: u.Group.labels, Agent: u.Agent, Episode: u.Episode, End: u.End, Mixed: u.Mixed,
		Versions: wireVersions{Policy: u.Versions.Policy, Env: u.Versions.Env, Reward: u.Versions.Reward},
		StartTS:  u.StartTS, EndTS: u.EndTS, Partition: u.Pos.Partition, First: at(u.First), Last: at(u.Last), Pos: at(u.Pos),
		Ord: u.Ord, Reading: u.Reading, Run: u.Run, Length: u.Length, HasReturn: u.HasReturn, Return: u.Return,
		Reward: wireMomentsOf(u.Reward), RewardQ10: u.RewardQ10, RewardQ90: u.RewardQ90,
		LongestConstant: u.LongestConstant, ConstantReward: u.ConstantReward, ProfileSteps: u.ProfileSteps,
		ActionKind: u.ActionKind, MixedActionKinds: u.MixedActionKinds,
		Events: u.Events, Backwards: u.Backwards, Duplicates: u.Duplicates, Abandoned: u.Abandoned, Shadow: u.Shadow,
		Unfinished: u.Unfinished, Late: u.Late, Shown: u.Shown,
	}
	w.Profile = slices.Grow(w.Profile, 4*len(u.Profile))
	for _, x := range u.Profile {
		w.Profile = binary.LittleEndian.AppendUint32(w.Profile, math.Float32bits(x))
	}
	w.Actions = slices.Grow(w.Actions, len(u.Actions))
	for _, a := range u.Actions {
		w.Actions = append(w.Actions, wireCount{Name: a.Name, N: a.N, Reward: a.Reward})
	}
	w.Numeric = slices.Grow(w.Numeric, len(u.Numeric))
	for _, n := range u.Numeric {
		w.Numeric = append(w.Numeric, wireNumeric{Signal: n.Signal, Moments: wireMomentsOf(n.Moments), Q10: n.Q10, Q90: n.Q90})
	}
	if u.Propensity != nil {
		w.Propensity = wirePropensityOf(u.Propensity)
	}
	if u.Decisions != nil {
		w.Decisions = &wireDecisions{N: u.Decisions.N, Returns: wireMomentsOf(u.Decisions.Returns)}
	}
	if u.Steps != nil {
		w.Steps = (*WireSteps)(u.Steps.Clone())
	}
	for _, l := range u.Labels {
		w.Split = append(w.Split, wireLabel{Name: l.Name, Value: l.Value})
	}
	return w
}

// Unit decodes the unit. It shares no memory with w. The error wraps ErrUnitDamaged.
func (w *WireUnit) Unit() (*Unit, error) {
	if int(w.End) >= Ends || w.ActionKind > ActionNumeric || w.Partition < 0 || len(w.Profile)%4 != 0 ||
		w.Propensity != nil && len(w.Propensity.Actions) > len(w.Actions) {
		return nil, fmt.Errorf("%w: its values are invalid", ErrUnitDamaged)
	}
	at := func(p wirePosition) Position {
		return Position{Partition: w.Partition, Offset: p.Offset, Record: p.Record}
	}
	u := &Unit{
		Group: Group{Policy: w.Policy, labels: w.Labels}, Agent: w.Agent, Episode: w.Episode, End: w.End, Mixed: w.Mixed,
		Versions: Versions{Policy: w.Versions.Policy, Env: w.Versions.Env, Reward: w.Versions.Reward},
		StartTS:  w.StartTS, EndTS: w.EndTS, First: at(w.First), Last: at(w.Last), Pos: at(w.Pos),
		Ord: w.Ord, Reading: w.Reading, Run: w.Run, Length: w.Length, HasReturn: w.HasReturn, Return: w.Return,
		Reward: w.Reward.moments(), RewardQ10: w.RewardQ10, RewardQ90: w.RewardQ90,
		LongestConstant: w.LongestConstant, ConstantReward: w.ConstantReward, ProfileSteps: w.ProfileSteps,
		ActionKind: w.ActionKind, MixedActionKinds: w.MixedActionKinds,
		Events: w.Events, Backwards: w.Backwards, Duplicates: w.Duplicates, Abandoned: w.Abandoned, Shadow: w.Shadow,
		Unfinished: w.Unfinished, Late: w.Late, Shown: w.Shown,
	}
	for rest := w.Profile; len(rest) > 0; rest = rest[4:] {
		u.Profile = append(u.Profile, math.Float32frombits(binary.LittleEndian.Uint32(rest)))
	}
	for _, a := range w.Actions {
		u.Actions = append(u.Actions, Count{Name: a.Name, N: a.N, Reward: a.Reward})
	}
	for _, n := range w.Numeric {
		u.Numeric = append(u.Numeric, NamedMoments{Signal: n.Signal, Moments: n.Moments.moments(), Q10: n.Q10, Q90: n.Q90})
	}
	if w.Propensity != nil {
		u.Propensity = w.Propensity.propensity()
	}
	if w.Decisions != nil {
		u.Decisions = &Decisions{N: w.Decisions.N, Returns: w.Decisions.Returns.moments()}
	}
	if w.Steps != nil {
		u.Steps = (*Steps)(w.Steps).Clone()
	}
	for _, l := range w.Split {
		u.Labels = append(u.Labels, Label{Name: l.Name, Value: l.Value})
	}
	return u, nil
}

func wirePropensityOf(p *Propensity) *wirePropensity {
	w := &wirePropensity{
		Steps: p.Steps, Invalid: p.Invalid, Log: p.Log, Targets: p.Targets, LogTarget: p.LogTarget, Weight: p.Weight,
		WeightedReward: p.WeightedReward,
	}
	for _, a := range p.Actions {
		w.Actions = append(w.Actions, wireInverseProbs{Sum: a.Sum, Reward: a.Reward})
	}
	return w
}

func (w *wirePropensity) propensity() *Propensity {
	p := &Propensity{
		Steps: w.Steps, Invalid: w.Invalid, Log: w.Log, Targets: w.Targets, LogTarget: w.LogTarget, Weight: w.Weight,
		WeightedReward: w.WeightedReward,
	}
	for _, a := range w.Actions {
		p.Actions = append(p.Actions, InverseProbs{Sum: a.Sum, Reward: a.Reward})
	}
	return p
}

func wireMomentsOf(m Moments) wireMoments {
	return wireMoments{
		N: m.N, NonFinite: m.NonFinite, Mean: m.Mean, M2: m.M2, Min: m.Min, Max: m.Max, Positive: m.Positive, Negative: m.Negative,
	}
}

func (w wireMoments) moments() Moments {
	return Moments{
		N: w.N, NonFinite: w.NonFinite, Mean: w.Mean, M2: w.M2, Min: w.Min, Max: w.Max, Positive: w.Positive, Negative: w.Negative,
	}
}
