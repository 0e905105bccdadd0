package cli

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/guard"
)

func TestGuardVerb(t *testing.T) {
	v, o := apitest.SomeView(), &apitest.FixedOrders{}
	v.Guard(&guard.Summary{
		Events: []guard.Event{
			{
				Seq: 1, Guard: "unsafe", From: guard.Warn, To: guard.Hold, At: finding.UnitRef{Ordinal: 300, TS: apitest.QuietTime.Add(-time.Hour).UnixNano()},
				Why: "steps with action refund_all: 9% of 300 steps (limit 1%)",
			},
			{
				Seq: 2, Guard: "unsafe", From: guard.Hold, To: guard.OK, At: finding.UnitRef{Ordinal: 400, TS: apitest.QuietTime.Add(-time.Minute).UnixNano()},
				By: "ann", Why: "the rule is fixed", Decided: apitest.QuietTime,
			},
			{
				Seq: 3, Guard: "unsafe", To: guard.Hold, At: finding.UnitRef{Ordinal: 700, TS: apitest.QuietTime.UnixNano()},
				Why: "steps with action refund_all: 7.5% of 700 steps (limit 1%)",
			},
		},
		Policy: "ranker", Seq: 3, State: guard.Hold, MaxAge: time.Minute, OnSilence: "fallback",
		Guards: []guard.Verdict{
			{Name: "never", Limit: "no step with action delete_account", Alpha: .01, Evidence: 1},
			{
				Name: "unsafe", Limit: "steps with action refund_all at most 1% of steps", State: guard.Hold, Tripped: true,
				Since: finding.UnitRef{Ordinal: 700, TS: apitest.QuietTime.UnixNano()}, Values: 40, Mean: .1, Evidence: 2, Alpha: .01,
				Why: "steps with action refund_all: 7.5% of 700 steps (limit 1%)",
			},
		},
	})
	flags := serveOrders(t, v, o)
	for name, args := range map[string][]string{"list": {"list"}, "show": {"show", "ranker"}, "history": {"history", "ranker"}} {
		got := runVerb(append(append([]string{"guard"}, args...), flags...)...)
		if got.code != exitFine || got.err != "" {
			t.Errorf("%s: exit %d: %s", name, got.code, got.err)
		}
		testkit.SameAsFile(t, filepath.Join("testdata", "verbs", "guard_"+name+".txt"), got.out)
	}
	if got := completions(t, slices.Concat([]string{"guard", "release"}, flags, []string{"ranker", ""})...); !slices.Equal(got, []string{"unsafe"}) {
		t.Errorf("a release offers %q", got)
	}
	release := []string{"guard", "release", "ranker", "unsafe"}
	if got := runVerb(append(release, flags...)...); got.code != exitError || len(o.Asked) > 0 {
		t.Errorf("a release without a reason: exit %d, asked %v", got.code, o.Asked)
	}
	if got := runVerb(append(append(release, "--why", "the rule is fixed", "--by", "ann"), flags...)...); got.code != exitFine {
		t.Errorf("a release: exit %d: %s", got.code, got.err)
	}
	if !slices.Equal(o.Asked, []string{"release ranker unsafe"}) || o.Decision.By != "ann" || o.Decision.Why != "the rule is fixed" {
		t.Errorf("asked %v with %+v", o.Asked, o.Decision)
	}
	if got := runVerb(append([]string{"guard", "show", "nobody"}, flags...)...); got.code != exitError {
		t.Errorf("of a policy that is not watched: exit %d", got.code)
	}
}
