package alerts

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// The wire form of a group's part of a checkpoint. Field numbers are never reused; package saved has the rules.

// groupFormat is the format in which a group is saved. In format 5 fields had names.
var groupFormat = saved.Format[groupWire]{Version: 6, Before: map[byte]saved.Migration[groupWire]{5: saved.Named[groupWire]}}

type groupWire struct {
	Group      ingest.Group        `cbor:"1,keyasint"`
	Open       *incidentWire       `cbor:"2,keyasint,omitzero"`
	Closed     []incidentWire      `cbor:"3,keyasint,omitzero"`
	Faulty     []streamFaultWire   `cbor:"4,keyasint,omitzero"`
	FaultSince finding.UnitRefWire `cbor:"5,keyasint,omitzero"`
	PastFaults []streamFaultWire   `cbor:"6,keyasint,omitzero"`
}

type incidentWire struct {
	ID          string              `cbor:"1,keyasint"`
	Group       ingest.Group        `cbor:"2,keyasint"`
	Severity    Severity            `cbor:"3,keyasint,omitzero"`
	Provisional bool                `cbor:"4,keyasint,omitzero"`
	Improvement bool                `cbor:"5,keyasint,omitzero"`
	Cause       Cause               `cbor:"6,keyasint,omitzero"`
	Evidence    []string            `cbor:"7,keyasint,omitzero"`
	Causes      []rankedCauseWire   `cbor:"8,keyasint,omitzero"`
	Alarms      []alarmWire         `cbor:"9,keyasint,omitzero"`
	Omitted     int                 `cbor:"10,keyasint,omitzero"`
	Opened      finding.UnitRefWire `cbor:"11,keyasint,omitzero"`
	Closed      bool                `cbor:"12,keyasint,omitzero"`
	ClosedAt    finding.UnitRefWire `cbor:"13,keyasint,omitzero"`
	Decisions   []decisionWire      `cbor:"14,keyasint,omitzero"`
	MutedUntil  time.Time           `cbor:"15,keyasint,omitzero"`
}

// alarmWire is large because it has one field for each field of Alarm.
type alarmWire struct {
	ID           string                  `cbor:"1,keyasint"`
	Incident     string                  `cbor:"2,keyasint,omitzero"`
	Group        ingest.Group            `cbor:"3,keyasint"`
	Signal       string                  `cbor:"4,keyasint,omitzero"`
	Provisional  bool                    `cbor:"5,keyasint,omitzero"`
	Improvement  bool                    `cbor:"6,keyasint,omitzero"`
	Detectors    []string                `cbor:"7,keyasint,omitzero"`
	Score        float64                 `cbor:"8,keyasint"`
	At           finding.UnitRefWire     `cbor:"9,keyasint,omitzero"`
	Onset        finding.UnitRefWire     `cbor:"10,keyasint,omitzero"`
	OnsetFrom    finding.UnitRefWire     `cbor:"11,keyasint,omitzero"`
	OnsetTo      finding.UnitRefWire     `cbor:"12,keyasint,omitzero"`
	OnsetOffsets []saved.Range           `cbor:"13,keyasint,omitzero"`
	Effect       finding.EffectWire      `cbor:"14,keyasint"`
	Histogram    *finding.HistogramWire  `cbor:"15,keyasint,omitzero"`
	Shifts       []shiftWire             `cbor:"16,keyasint,omitzero"`
	Return       *decompositionWire      `cbor:"17,keyasint,omitzero"`
	Promise      finding.PromiseWire     `cbor:"18,keyasint"`
	Baseline     finding.BaselineRefWire `cbor:"19,keyasint,omitzero"`
	Before       saved.Versions          `cbor:"20,keyasint,omitzero"`
	After        saved.Versions          `cbor:"21,keyasint,omitzero"`
	Offsets      []saved.Range           `cbor:"22,keyasint,omitzero"`
	Cause        Cause                   `cbor:"23,keyasint,omitzero"`
	Evidence     []string                `cbor:"24,keyasint,omitzero"`
	Causes       []rankedCauseWire       `cbor:"25,keyasint,omitzero"`
	EvidenceAt   finding.UnitRefWire     `cbor:"26,keyasint,omitzero"`
	Resolved     bool                    `cbor:"27,keyasint,omitzero"`
	ResolvedAt   finding.UnitRefWire     `cbor:"28,keyasint,omitzero"`
	OffPolicy    *finding.OffPolicyWire  `cbor:"29,keyasint,omitzero"`
	Mix          *splitWire              `cbor:"30,keyasint,omitzero"`
	Guard        *guardWire              `cbor:"31,keyasint,omitzero"`
	Height       finding.EffectWire      `cbor:"33,keyasint,omitzero"`
	HeightHist   *finding.HistogramWire  `cbor:"34,keyasint,omitzero"`
}

type guardWire struct {
	Name  string `cbor:"1,keyasint"`
	State string `cbor:"2,keyasint"`
	Limit string `cbor:"3,keyasint"`
	Why   string `cbor:"4,keyasint"`
	Cause string `cbor:"5,keyasint,omitzero"`
}

type streamFaultWire struct {
	Signal string              `cbor:"1,keyasint"`
	Rule   string              `cbor:"2,keyasint"`
	Since  finding.UnitRefWire `cbor:"3,keyasint,omitzero"`
	Ended  bool                `cbor:"4,keyasint,omitzero"`
	Until  finding.UnitRefWire `cbor:"5,keyasint,omitzero"`
}

type rankedCauseWire struct {
	Cause    Cause    `cbor:"1,keyasint"`
	Weight   float64  `cbor:"2,keyasint"`
	Evidence []string `cbor:"3,keyasint,omitzero"`
}

type decisionWire struct {
	Kind  DecisionKind `cbor:"1,keyasint"`
	By    string       `cbor:"2,keyasint,omitzero"`
	Why   string       `cbor:"3,keyasint,omitzero"`
	At    time.Time    `cbor:"4,keyasint,omitzero"`
	Until time.Time    `cbor:"5,keyasint,omitzero"`
}

type shiftWire struct {
	Signal        string  `cbor:"1,keyasint,omitzero"`
	Quantity      string  `cbor:"2,keyasint,omitzero"`
	BaselineMean  float64 `cbor:"3,keyasint"`
	CurrentMean   float64 `cbor:"4,keyasint"`
	StandardShift float64 `cbor:"5,keyasint"`
	Z             float64 `cbor:"6,keyasint"`
	SpreadZ       float64 `cbor:"7,keyasint"`
	StandardError float64 `cbor:"8,keyasint"`
	Units         int     `cbor:"9,keyasint,omitzero"`
	Drifted       bool    `cbor:"10,keyasint,omitzero"`
	Turn          float64 `cbor:"11,keyasint,omitzero"`
	Better        int     `cbor:"12,keyasint,omitzero"`
}

type decompositionWire struct {
	Change    float64 `cbor:"1,keyasint" was:"change"`
	PerStep   float64 `cbor:"2,keyasint" was:"reward_per_step"`
	Length    float64 `cbor:"3,keyasint" was:"episode_length"`
	ActionMix float64 `cbor:"4,keyasint" was:"action_mix"`
	Rest      float64 `cbor:"5,keyasint" was:"rest"`
}

type splitWire struct {
	Quantity    string  `cbor:"1,keyasint,omitzero"`
	By          string  `cbor:"2,keyasint,omitzero"`
	Units       int64   `cbor:"3,keyasint,omitzero"`
	SD          float64 `cbor:"4,keyasint"`
	Change      float64 `cbor:"5,keyasint"`
	Mix         float64 `cbor:"6,keyasint"`
	MixError    float64 `cbor:"7,keyasint"`
	Within      float64 `cbor:"8,keyasint"`
	WithinError float64 `cbor:"9,keyasint"`
	P           float64 `cbor:"10,keyasint"`
	Stratum     string  `cbor:"11,keyasint,omitzero"`
	Before      float64 `cbor:"12,keyasint"`
	After       float64 `cbor:"13,keyasint"`
}

func (g *groupTracker) wire() *groupWire {
	w := &groupWire{
		Group: g.Group, Closed: saved.Each(g.Closed, wireOfIncident), Faulty: saved.Each(g.Faulty, wireOfFault),
		FaultSince: finding.UnitRefWireOf(&g.FaultSince), PastFaults: saved.Each(g.PastFaults, wireOfFault),
	}
	if g.Open != nil {
		w.Open = new(wireOfIncident(*g.Open))
	}
	return w
}

func (w *groupWire) live() *groupTracker {
	g := &groupTracker{
		Group: w.Group, Closed: saved.Each(w.Closed, incidentWire.live), Faulty: saved.Each(w.Faulty, streamFaultWire.live),
		FaultSince: w.FaultSince.Live(), PastFaults: saved.Each(w.PastFaults, streamFaultWire.live),
	}
	if w.Open != nil {
		g.Open = new(w.Open.live())
	}
	return g
}

func wireOfIncident(i Incident) incidentWire {
	return incidentWire{
		ID: i.ID, Group: i.Group, Severity: i.Severity, Provisional: i.Provisional, Improvement: i.Improvement, Cause: i.Cause,
		Evidence: i.Evidence, Causes: saved.Each(i.Causes, wireOfCause), Alarms: saved.Each(i.Alarms, wireOfAlarm), Omitted: i.Omitted,
		Opened: finding.UnitRefWireOf(&i.Opened), Closed: i.Closed, ClosedAt: finding.UnitRefWireOf(&i.ClosedAt),
		Decisions: saved.Each(i.Decisions, func(d Decision) decisionWire { return decisionWire(d) }), MutedUntil: i.MutedUntil,
	}
}

func (w incidentWire) live() Incident {
	return Incident{
		ID: w.ID, Group: w.Group, Severity: w.Severity, Provisional: w.Provisional, Improvement: w.Improvement, Cause: w.Cause,
		Evidence: w.Evidence, Causes: saved.Each(w.Causes, rankedCauseWire.live), Alarms: saved.Each(w.Alarms, alarmWire.live),
		Omitted: w.Omitted, Opened: w.Opened.Live(), Closed: w.Closed, ClosedAt: w.ClosedAt.Live(),
		Decisions: saved.Each(w.Decisions, func(d decisionWire) Decision { return Decision(d) }), MutedUntil: w.MutedUntil,
	}
}

func wireOfAlarm(a Alarm) alarmWire {
	return alarmWire{
		ID: a.ID, Incident: a.Incident, Group: a.Group, Signal: a.Signal, Provisional: a.Provisional, Improvement: a.Improvement,
		Detectors: a.Detectors, Score: a.Score, At: finding.UnitRefWireOf(&a.At), Onset: finding.UnitRefWireOf(&a.Onset), OnsetFrom: finding.UnitRefWireOf(&a.OnsetFrom),
		OnsetTo: finding.UnitRefWireOf(&a.OnsetTo), OnsetOffsets: saved.RangesOf(a.OnsetOffsets), Effect: finding.EffectWire(a.Effect),
		Histogram: (*finding.HistogramWire)(a.Histogram), Shifts: saved.Each(a.Shifts, func(s finding.Shift) shiftWire { return shiftWire(s) }),
		Return: (*decompositionWire)(a.Return), Promise: finding.PromiseWire(a.Promise), Baseline: finding.BaselineRefWireOf(&a.Baseline),
		Before: saved.Versions(a.Before), After: saved.Versions(a.After), Offsets: saved.RangesOf(a.Offsets), Cause: a.Cause,
		Evidence: a.Evidence, Causes: saved.Each(a.Causes, wireOfCause), EvidenceAt: finding.UnitRefWireOf(&a.EvidenceAt),
		Resolved: a.Resolved, ResolvedAt: finding.UnitRefWireOf(&a.ResolvedAt), OffPolicy: saved.Pointer(a.OffPolicy, finding.OffPolicyWireOf),
		Mix:   (*splitWire)(a.Mix),
		Guard: (*guardWire)(a.Guard), Height: finding.EffectWire(a.Height), HeightHist: (*finding.HistogramWire)(a.HeightHistogram),
	}
}

func (w alarmWire) live() Alarm {
	return Alarm{
		ID: w.ID, Incident: w.Incident, Group: w.Group, Signal: w.Signal, Provisional: w.Provisional, Improvement: w.Improvement,
		Detectors: w.Detectors, Score: w.Score, At: w.At.Live(), Onset: w.Onset.Live(), OnsetFrom: w.OnsetFrom.Live(),
		OnsetTo: w.OnsetTo.Live(), OnsetOffsets: saved.LiveRanges(w.OnsetOffsets), Effect: finding.Effect(w.Effect),
		Histogram: (*finding.Histogram)(w.Histogram), Shifts: saved.Each(w.Shifts, func(s shiftWire) finding.Shift { return finding.Shift(s) }),
		Return: (*finding.Decomposition)(w.Return), Promise: finding.Promise(w.Promise), Baseline: w.Baseline.Live(),
		Before: ingest.Versions(w.Before), After: ingest.Versions(w.After), Offsets: saved.LiveRanges(w.Offsets), Cause: w.Cause,
		Evidence: w.Evidence, Causes: saved.Each(w.Causes, rankedCauseWire.live), EvidenceAt: w.EvidenceAt.Live(),
		Resolved: w.Resolved, ResolvedAt: w.ResolvedAt.Live(), OffPolicy: saved.Pointer(w.OffPolicy, (*finding.OffPolicyWire).Live),
		Mix:   (*mix.Split)(w.Mix),
		Guard: (*finding.Guard)(w.Guard), Height: finding.Effect(w.Height), HeightHistogram: (*finding.Histogram)(w.HeightHist),
	}
}

func wireOfFault(s StreamFault) streamFaultWire {
	return streamFaultWire{Signal: s.Signal, Rule: s.Rule, Since: finding.UnitRefWireOf(&s.Since), Ended: s.Ended, Until: finding.UnitRefWireOf(&s.Until)}
}

func (w streamFaultWire) live() StreamFault {
	return StreamFault{Signal: w.Signal, Rule: w.Rule, Since: w.Since.Live(), Ended: w.Ended, Until: w.Until.Live()}
}

func wireOfCause(c RankedCause) rankedCauseWire { return rankedCauseWire(c) }
func (w rankedCauseWire) live() RankedCause     { return RankedCause(w) }
