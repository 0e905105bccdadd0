package outcome

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/retrain/expectation"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// storedFollower returns the content of the stored part: one awaited outcome, and one missed outcome that is
// compared.
func storedFollower() *Follower {
	since := time.Date(2026, 9, 1, 10, 0, 0, 7, time.UTC)
	check := func(values ...float64) *expectation.Check {
		c := expectation.New(expectation.Condition{Statistic: "mean", Comparison: ">", Value: 105, Over: 100})
		c.Refer(1.5, -3, 300)
		for _, x := range values {
			c.Add(x)
		}
		return c
	}
	expected := recipe.Expected{
		Text: "mean return > 1.05 * baseline", Statistic: "mean", Signal: "return", Comparison: ">", Value: 105, Over: 100, Unit: "episodes", Within: 86400,
		Relative: recipe.Relative{Times: 1.05, Plus: -.5, PlusSD: .25, Level: 100, SD: 10},
	}
	missed := check(80, 81, 79.5)
	missed.Verdict = expectation.Missed
	return &Follower{
		Seen: []seenVersion{{"v1", since}, {"v2", time.Time{}}},
		Open: &Retraining{
			Verification: ledger.Verification{
				Request: "rr_2", Policy: "ranker", Group: map[string]string{"env": "prod"}, Version: "v3", Ordered: []string{"v1", "v2"},
				Expected: expected, Since: since, Due: since.Add(time.Hour),
			},
			Check: check(1, math.Copysign(0, -1), 200.25, 105), News: true,
		},
		Missed: &Retraining{
			Verification: ledger.Verification{Request: "rr_1", Policy: "ranker", Version: "v2", Expected: expected, Since: since.Add(-time.Hour)},
			Check:        missed, Before: check(80, 0, 1), Previous: "v1",
		},
	}
}

// Outcomes that a build with format 1 has saved are read unchanged.
func TestFollowerOfFormat1IsRead(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "snapshots", "1", "closing"))
	if err != nil {
		t.Fatal(err)
	}
	var got Follower
	if err := got.Resume(ingest.Parts{Part: old}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(got), ingesttest.Text(*storedFollower()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWireFormKeepsEveryField(t *testing.T) {
	var want, got Follower
	ingesttest.Fill(&want)
	want.changed = true
	parts := ingest.Parts{}
	if err := want.Changes(parts); err != nil {
		t.Fatal(err)
	}
	if err := got.Resume(parts, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
