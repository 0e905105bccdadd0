package main

import (
	"encoding/json"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
)

// gates puts a gate with each verdict, and groups that differ, into a view.
func gates() *fixedView {
	v := someView()
	g := &v.summaries[1].Groups[0]
	nan := math.NaN()
	signals := []bank.GateSignal{
		{
			Signal: "action", Quantity: "share of offer_b", Why: "moved: the test share of offer_b frequency +0.8 reached its threshold at unit 41 of the version",
			Before: bank.GateMean{Units: 500, Mean: .3, SD: .1}, After: bank.GateMean{Units: 61, Mean: .5, SD: .1},
			Effect: 2, Low: 1.2, High: 2.8, Score: 1.4, Test: "share of offer_b frequency +0.8", AlarmAt: 41, Alarm: "share of offer_b frequency +0.8",
		},
		{
			Signal: "return", Quantity: "return", Side: 1, Verdict: bank.Worse, Why: "return was 10 and is 8.9, by -0.55 baseline sd (-0.97 to -0.13)",
			Before: bank.GateMean{Units: 500, Mean: 10, SD: 2}, After: bank.GateMean{Units: 61, Mean: 8.9, SD: 2.1},
			Meanwhile: bank.GateMean{Units: 300, Mean: 10.1, SD: 2}, Effect: -.55, Low: -.97, High: -.13, Score: .4, Test: "return location -0.8",
		},
		{
			Signal: "outcome.conversion", Quantity: "mean", Side: -1, Verdict: bank.NotEnoughData, Fault: "missing",
			Why: "outcome.conversion is in a telemetry fault (missing)", Effect: nan, Low: nan, High: nan,
		},
	}
	gate := func(version string, verdict bank.Verdict, why string) bank.Gate {
		return bank.Gate{
			Version: version, Verdict: verdict, Why: why, Units: 61, Wanted: 410, Production: "v1", Baseline: "b1", Signals: signals,
		}
	}
	shadow, ended := gate("v3", bank.NotEnoughData, "return: 12 of at least 30 units"), gate("v5", bank.Better, "return was 10 and is 12")
	shadow.Shadow, shadow.Wanted = true, -1
	ended.Ended = "policy_version v5 has a baseline of its own"
	g.Production = "v1"
	g.Gates = []bank.Gate{ended, gate("v2", bank.Worse, "after 61 units: return was 10 and is 8.9"), shadow, gate("v4", bank.Same, "return was 10 and is 10.1")}
	return v
}

func TestGateVerb(t *testing.T) {
	v := gates()
	flags := serveOrders(t, v, &fixedOrders{})
	policy := v.summaries[1].Policy
	for version, want := range map[string]int{"v2": exitDrift, "v3": exitOpen, "v4": exitFine, "v5": exitFine, "v9": exitOpen, "v1": exitOpen} {
		got := runVerb(append([]string{"gate", policy, version}, flags...)...)
		if got.code != want || got.err != "" {
			t.Errorf("%s: exit %d, want %d: %s", version, got.code, want, got.err)
		}
		sameAsFile(t, filepath.Join("testdata", "verbs", "gate_"+version+".txt"), got.out)
	}
	got := runVerb(append([]string{"gate", policy, "v2", "--output", "json"}, flags...)...)
	var g gateAPI
	if err := json.Unmarshal([]byte(got.out), &g); err != nil || got.code != exitDrift || g.Verdict != bank.Worse || *g.UnitsNeeded != 410 {
		t.Errorf("exit %d, %v: %s", got.code, err, got.out)
	}
	if got := runVerb(append([]string{"gate", "nobody", "v2"}, flags...)...); got.code != exitError || !strings.Contains(got.err, "404") {
		t.Errorf("of a policy that is not there: exit %d, %s", got.code, got.err)
	}
}

func TestGateOfSeveralGroups(t *testing.T) {
	v := gates()
	p := v.summaries[1]
	other := p.Groups[0]
	other.Gates = []bank.Gate{{Version: "v4", Verdict: bank.NotEnoughData, Units: 5, Wanted: 410}, {Version: "v2", Verdict: bank.Better, Units: 5, Wanted: -1}}
	p.Groups = append(p.Groups, other)
	if g := gateOf(p, "v4"); g.Verdict != bank.NotEnoughData || g.Units != 66 || *g.UnitsNeeded != 820 || len(g.Groups) != 2 {
		t.Errorf("%+v", g)
	}
	if g := gateOf(p, "v2"); g.Verdict != bank.Worse || g.UnitsNeeded != nil {
		t.Errorf("%+v", g)
	}
}

func TestGatesKeepToTheOpenAPIDocument(t *testing.T) {
	v := gates()
	s := quietServer(t, HTTPConfig{}, v, nil)
	for _, version := range []string{"v2", "v3", "v5", "v9"} {
		w := ask(s, http.MethodGet, "/api/v1/gates/"+v.summaries[1].Policy+"/"+version)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d: %s", version, w.Code, w.Body)
		}
		checkAgainstOpenAPI(t, "/api/v1/gates/{policy}/{version}", w.Body.Bytes())
	}
}

// Telemetry in shadow, of the same agents and episodes as production and far worse, raises no alarm; without the label it does.
func TestReplayOfAShadowRaisesNoAlarm(t *testing.T) {
	production, beside := newFleet(51, 3), newFleet(52, 3)
	production.episodes(620)
	beside.mean, beside.policyVersion = -1.5, "2"
	beside.episodes(620)
	for label, want := range map[string]int{`"labels":{"shadow":"true"},`: exitFine, `"labels":{"shadow":"false"},`: exitDrift} {
		both := &fleet{}
		for i, line := range production.lines[:min(len(production.lines), len(beside.lines))] {
			marked := append([]byte("{"+label), beside.lines[i][1:]...)
			both.lines = append(both.lines, line, marked)
			if i < len(production.lines)/2 {
				both.lines = both.lines[:len(both.lines)-1] // production alone has the baseline
			}
		}
		if code, out := verb(t, "replay", "--output", "json", both.file(t)); code != want {
			t.Errorf("%s: exit %d, want %d\n%s", label, code, want, out)
		}
	}
}
