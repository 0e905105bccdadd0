package main

import (
	"fmt"
	"math"
	"net/http"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// gateAPI is what is known of a version of a policy, over all groups that have units of it.
type gateAPI struct {
	Policy      string         `json:"policy"`
	Version     string         `json:"version"`
	Verdict     bank.Verdict   `json:"verdict"`
	Why         string         `json:"why"`
	Units       int64          `json:"units"`
	UnitsNeeded *int64         `json:"units_needed"` // null where that is not known
	Groups      []groupGateAPI `json:"groups"`
}

type groupGateAPI struct {
	Group       map[string]string `json:"group"`
	Shadow      bool              `json:"shadow"`
	Verdict     bank.Verdict      `json:"verdict"`
	Why         string            `json:"why"`
	Units       int64             `json:"units"`
	UnitsNeeded *int64            `json:"units_needed"` // null where no number of units is enough
	Production  string            `json:"production_version"`
	Baseline    string            `json:"baseline_id"`
	Ended       *string           `json:"ended"` // why nothing is compared any more
	Signals     []gateSignalAPI   `json:"signals"`
}

type gateSignalAPI struct {
	Signal    string        `json:"signal"`
	Quantity  string        `json:"quantity"`
	Better    *string       `json:"better"`  // higher or lower; null where neither is
	Verdict   *bank.Verdict `json:"verdict"` // null where the signal is not judged
	Why       string        `json:"why"`
	Before    *gateMeanAPI  `json:"before"`         // in the baseline
	After     *gateMeanAPI  `json:"after"`          // of the version
	Meanwhile *gateMeanAPI  `json:"production_now"` // of production since the first unit of the version
	Effect    number        `json:"effect_sd"`
	Low       number        `json:"effect_low_sd"`
	High      number        `json:"effect_high_sd"`
	Detector  *string       `json:"detector"` // the one that has gone furthest
	Score     number        `json:"score"`
	Alarm     *gateAlarmAPI `json:"alarm"` // null where no test has reached its threshold
	Fault     *string       `json:"fault"`
}

type gateMeanAPI struct {
	Units int64  `json:"units"`
	Mean  number `json:"mean"`
	SD    number `json:"sd"`
}

type gateAlarmAPI struct {
	Unit     int64  `json:"unit"`
	Detector string `json:"detector"`
}

func (s *server) gate(w http.ResponseWriter, r *http.Request) {
	policy := r.PathValue("policy")
	for _, p := range s.view.Summaries() {
		if p.Policy == policy {
			s.answer(w, http.StatusOK, gateOf(p, r.PathValue("version")))
			return
		}
	}
	s.refuse(w, http.StatusNotFound, "no unit of such a policy has been seen")
}

// gateOf gives what a policy shows of a version.
func gateOf(p *bank.Summary, version string) gateAPI {
	out := gateAPI{Policy: p.Policy, Version: version, Groups: []groupGateAPI{}, UnitsNeeded: new(int64(0))}
	var verdicts []bank.Verdict
	for i := range p.Groups {
		for k := range p.Groups[i].Gates {
			if g := &p.Groups[i].Gates[k]; g.Version == version {
				out.add(groupGateOf(&p.Groups[i], g))
				verdicts = append(verdicts, g.Verdict)
			}
		}
	}
	out.Verdict = bank.Overall(verdicts)
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

func (a *gateAPI) add(g groupGateAPI) {
	a.Groups = append(a.Groups, g)
	a.Units += g.Units
	switch {
	case g.UnitsNeeded == nil:
		a.UnitsNeeded = nil
	case a.UnitsNeeded != nil:
		*a.UnitsNeeded += *g.UnitsNeeded
	}
}

// unseen says why nothing is known of a version.
func unseen(p *bank.Summary, version string) string {
	why := "production has no accepted baseline yet, which versions could be compared with"
	for i := range p.Groups {
		switch g := &p.Groups[i]; {
		case g.Baseline.ID == "" || g.Baseline.Provisional:
		case g.Production == version:
			return fmt.Sprintf("policy_version %s is the one that the baseline is of, which others are compared with", version)
		default:
			why = fmt.Sprintf("no unit of policy_version %s has been seen since the baseline was accepted, or others have come since", version)
		}
	}
	return why
}

func groupGateOf(g *bank.GroupSummary, gate *bank.Gate) groupGateAPI {
	out := groupGateAPI{
		Group: g.Group.Map(), Shadow: gate.Shadow, Verdict: gate.Verdict, Why: gate.Why, Units: gate.Units,
		Production: gate.Production, Baseline: gate.Baseline, Ended: orNull(gate.Ended), Signals: []gateSignalAPI{},
	}
	if gate.Wanted >= 0 {
		out.UnitsNeeded = new(gate.Wanted)
	}
	for i := range gate.Signals {
		out.Signals = append(out.Signals, gateSignalOf(&gate.Signals[i]))
	}
	return out
}

func gateSignalOf(s *bank.GateSignal) gateSignalAPI {
	out := gateSignalAPI{
		Signal: s.Signal, Quantity: s.Quantity, Why: s.Why, Before: gateMeanOf(s.Before), After: gateMeanOf(s.After),
		Meanwhile: gateMeanOf(s.Meanwhile), Effect: number(s.Effect), Low: number(s.Low), High: number(s.High),
		Detector: orNull(s.Test), Score: number(math.NaN()), Fault: orNull(s.Fault),
	}
	if s.Side != 0 {
		out.Better = new(map[int]string{1: "higher", -1: "lower"}[s.Side])
	}
	if s.Verdict != "" {
		out.Verdict = new(s.Verdict)
	}
	if s.Test != "" {
		out.Score = number(s.Score)
	}
	if s.AlarmAt > 0 {
		out.Alarm = &gateAlarmAPI{s.AlarmAt, s.Alarm}
	}
	return out
}

func gateMeanOf(m bank.GateMean) *gateMeanAPI {
	if m.Units == 0 {
		return nil
	}
	return &gateMeanAPI{m.Units, number(m.Mean), number(m.SD)}
}
