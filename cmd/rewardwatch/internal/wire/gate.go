package wire

import (
	"fmt"
	"math"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Gate is the verdict on a version of a policy, over all groups that have units of it.
type Gate struct {
	Policy      string          `json:"policy"`
	Version     string          `json:"version"`
	Verdict     finding.Verdict `json:"verdict"`
	Why         string          `json:"why"`
	Units       int64           `json:"units"`
	UnitsNeeded *int64          `json:"units_needed"` // null if unknown
	Groups      []GroupGate     `json:"groups"`
}

// GroupGate is the verdict on a version in one group.
type GroupGate struct {
	Group       map[string]string  `json:"group"`
	Shadow      bool               `json:"shadow"`
	Verdict     finding.Verdict    `json:"verdict"`
	Why         string             `json:"why"`
	Unit        string             `json:"unit"`  // what is counted: episode or block
	Block       *Block             `json:"block"` // null unless blocks are counted
	Units       int64              `json:"units"`
	UnitsNeeded *int64             `json:"units_needed"` // null if no number of units is enough
	Production  string             `json:"production_version"`
	Baseline    string             `json:"baseline_id"`
	Ended       *string            `json:"ended"` // why the comparison ended
	Signals     []GateSignal       `json:"signals"`
	OffPolicy   *finding.OffPolicy `json:"off_policy"` // null if the telemetry does not allow an estimate
}

// Block describes the contents of a block.
type Block struct {
	Size int    `json:"size"` // 0 if unknown
	Of   string `json:"of"`   // steps or decisions
}

// UnitName returns the name of the units of the group.
func (g *GroupGate) UnitName() finding.UnitName {
	switch {
	case g.Block == nil && g.Unit == finding.Episodes().Noun:
		return finding.Episodes()
	case g.Block == nil:
		return finding.UnitName{}
	case g.Block.Of == finding.DecisionBlocks(0).Of:
		return finding.DecisionBlocks(g.Block.Size)
	}
	return finding.Blocks(float64(g.Block.Size))
}

// blockOf describes the contents of blocks. It returns nil for other units.
func blockOf(unit finding.UnitName) *Block {
	if unit.Noun != finding.Blocks(0).Noun {
		return nil
	}
	return &Block{unit.Steps, unit.Parts()}
}

// GateSignal compares one quantity of a version with production.
type GateSignal struct {
	Signal    string           `json:"signal"`
	Quantity  string           `json:"quantity"`
	Better    *string          `json:"better"`  // higher or lower; null if unknown
	Verdict   *finding.Verdict `json:"verdict"` // null if the signal is not judged
	Why       string           `json:"why"`
	Before    *GateMean        `json:"before"`         // in the baseline
	After     *GateMean        `json:"after"`          // of the version
	Meanwhile *GateMean        `json:"production_now"` // in production since the first unit of the version
	Effect    Number           `json:"effect_sd"`
	Low       Number           `json:"effect_low_sd"`
	High      Number           `json:"effect_high_sd"`
	Detector  *string          `json:"detector"` // the one with the highest score
	Score     Number           `json:"score"`
	Alarm     *GateAlarm       `json:"alarm"` // null if no test has reached its threshold
	Fault     *string          `json:"fault"`
}

// GateMean is a mean with its interval.
type GateMean struct {
	Units int64  `json:"units"`
	Mean  Number `json:"mean"`
	SD    Number `json:"sd"`
}

// GateAlarm is an alarm raised by the version.
type GateAlarm struct {
	Unit     int64  `json:"unit"`
	Detector string `json:"detector"`
}

// GateOf returns the verdict on a version from the published summary of a policy.
func GateOf(p *finding.Summary, version string) Gate {
	out := Gate{Policy: p.Policy, Version: version, Groups: []GroupGate{}, UnitsNeeded: new(int64(0))}
	var verdicts []finding.Verdict
	for i := range p.Groups {
		for k := range p.Groups[i].Gates {
			if g := &p.Groups[i].Gates[k]; g.Version == version {
				out.add(groupGateOf(&p.Groups[i], g))
				verdicts = append(verdicts, g.Verdict)
			}
		}
	}
	out.Verdict = finding.Overall(verdicts)
	for _, g := range out.Groups {
		if g.Verdict == out.Verdict {
			out.Why = fmt.Sprintf("%s: %s", words.Group(p.Policy, g.Group), g.Why)
			break
		}
	}
	if len(out.Groups) == 0 {
		out.UnitsNeeded, out.Why = nil, unseen(p, version)
	}
	return out
}

func (a *Gate) add(g GroupGate) {
	a.Groups = append(a.Groups, g)
	a.Units += g.Units
	switch {
	case g.UnitsNeeded == nil:
		a.UnitsNeeded = nil
	case a.UnitsNeeded != nil:
		*a.UnitsNeeded += *g.UnitsNeeded
	}
}

// unseen explains why nothing is known about a version.
func unseen(p *finding.Summary, version string) string {
	why := "production has no accepted baseline yet to compare versions with"
	for i := range p.Groups {
		switch g := &p.Groups[i]; {
		case g.Baseline.ID == "" || g.Baseline.Provisional:
		case g.Production == version:
			return fmt.Sprintf("policy_version %s is the baseline that other versions are compared with", version)
		default:
			why = fmt.Sprintf("either no %s of policy_version %s has arrived since the baseline was accepted, or newer versions have replaced the version",
				g.UnitName().One(), version)
		}
	}
	return why
}

func groupGateOf(g *finding.GroupSummary, gate *finding.Gate) GroupGate {
	out := GroupGate{
		Group: g.Group.Map(), Shadow: gate.Shadow, Verdict: gate.Verdict, Why: gate.Why,
		Unit: g.UnitName().One(), Block: blockOf(g.UnitName()), Units: gate.Units,
		Production: gate.Production, Baseline: gate.Baseline, Ended: OrNull(gate.Ended), Signals: []GateSignal{},
		OffPolicy: gate.OffPolicy,
	}
	if gate.Wanted >= 0 {
		out.UnitsNeeded = new(gate.Wanted)
	}
	for i := range gate.Signals {
		out.Signals = append(out.Signals, gateSignalOf(&gate.Signals[i]))
	}
	return out
}

func gateSignalOf(s *finding.GateSignal) GateSignal {
	out := GateSignal{
		Signal: s.Signal, Quantity: s.Quantity, Why: s.Why, Before: gateMeanOf(s.Before), After: gateMeanOf(s.After),
		Meanwhile: gateMeanOf(s.Meanwhile), Effect: Number(s.Effect), Low: Number(s.Low), High: Number(s.High),
		Detector: OrNull(s.Test), Score: Number(math.NaN()), Fault: OrNull(s.Fault),
	}
	if s.Side != 0 {
		out.Better = new(map[int]string{1: "higher", -1: "lower"}[s.Side])
	}
	if s.Verdict != "" {
		out.Verdict = new(s.Verdict)
	}
	if s.Test != "" {
		out.Score = Number(s.Score)
	}
	if s.AlarmAt > 0 {
		out.Alarm = &GateAlarm{s.AlarmAt, s.Alarm}
	}
	return out
}

func gateMeanOf(m finding.GateMean) *GateMean {
	if m.Units == 0 {
		return nil
	}
	return &GateMean{m.Units, Number(m.Mean), Number(m.SD)}
}
