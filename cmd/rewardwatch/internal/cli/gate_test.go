package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

func TestGateVerb(t *testing.T) {
	v := apitest.Gates()
	flags := serveOrders(t, v, &apitest.FixedOrders{})
	policy := v.Policies[1].Policy
	for version, want := range map[string]int{"v2": exitDrift, "v3": exitOpen, "v4": exitFine, "v5": exitFine, "v9": exitOpen, "v1": exitOpen} {
		got := runVerb(append([]string{"gate", policy, version}, flags...)...)
		if got.code != want || got.err != "" {
			t.Errorf("%s: exit %d, want %d: %s", version, got.code, want, got.err)
		}
		testkit.SameAsFile(t, filepath.Join("testdata", "verbs", "gate_"+version+".txt"), got.out)
	}
	got := runVerb(append([]string{"gate", policy, "v2", "--output", "json"}, flags...)...)
	var g wire.Gate
	if err := json.Unmarshal([]byte(got.out), &g); err != nil || got.code != exitDrift || g.Verdict != finding.Worse || *g.UnitsNeeded != 410 {
		t.Errorf("exit %d, %v: %s", got.code, err, got.out)
	}
	if got := runVerb(append([]string{"gate", "nobody", "v2"}, flags...)...); got.code != exitRefused || !strings.Contains(got.err, "nobody: policy not found") {
		t.Errorf("of a policy that is not there: exit %d, %s", got.code, got.err)
	}
}

func TestGateOfSeveralGroups(t *testing.T) {
	v := apitest.Gates()
	p := v.Policies[1]
	other := p.Groups[0]
	other.Gates = []finding.Gate{{Version: "v4", Verdict: finding.NotEnoughData, Units: 5, Wanted: 410}, {Version: "v2", Verdict: finding.Better, Units: 5, Wanted: -1}}
	p.Groups = append(p.Groups, other)
	if g := wire.GateOf(p, "v4"); g.Verdict != finding.NotEnoughData || g.Units != 66 || *g.UnitsNeeded != 820 || len(g.Groups) != 2 {
		t.Errorf("%+v", g)
	}
	if g := wire.GateOf(p, "v2"); g.Verdict != finding.Worse || g.UnitsNeeded != nil {
		t.Errorf("%+v", g)
	}
}

// A pipeline repeats a gate, and the report of its success, if and only if the service may respond later.
func TestGateOfAServiceThatRefuses(t *testing.T) {
	request := "rr_" + strings.Repeat("0", 29)
	for status, want := range map[int]int{
		http.StatusUnauthorized: exitRefused, http.StatusForbidden: exitRefused, http.StatusNotFound: exitRefused, http.StatusFound: exitRefused, http.StatusOK: exitRefused,
		http.StatusRequestTimeout: exitError, http.StatusTooManyRequests: exitError, http.StatusBadGateway: exitError, http.StatusServiceUnavailable: exitError,
	} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if status == http.StatusFound {
				w.Header().Set("Location", "/login")
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>"))
		}))
		for _, args := range [][]string{{"gate", "p", "v2"}, {"retrain", "status", request, "succeeded", "--version", "v2"}} {
			if got := runVerb(append(args, "--server", service.URL)...); got.code != want || got.err == "" {
				t.Errorf("%s: HTTP %d: exit %d, want %d: %s", args, status, got.code, want, got.err)
			}
		}
		service.Close()
		if status == http.StatusOK { // nothing listens there any more
			if got := runVerb("gate", "p", "v2", "--server", service.URL); got.code != exitError {
				t.Errorf("nobody: exit %d: %s", got.code, got.err)
			}
		}
	}
}

// Shadow telemetry of the same agents and episodes as production, although far worse, raises no alarm; without the
// label, it does.
func TestSimReplayOfAShadowRaisesNoAlarm(t *testing.T) {
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
				both.lines = both.lines[:len(both.lines)-1] // only production has the baseline
			}
		}
		if code, out := verb(t, "replay", "--output", "json", both.file(t)); code != want {
			t.Errorf("%s: exit %d, want %d\n%s", label, code, want, out)
		}
	}
}
