package bank

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// recovery feeds a bank 700 healthy units and 300 units with a worse reward, lets mend repair the reward, and feeds 300
// more. Half of the way after the repair, the bank is saved and restored. It returns the findings of the reward.
func recovery(t *testing.T, seed uint64, mend func(a *agent)) (found []finding.Finding) {
	t.Helper()
	p, a := newBank(episodes(20_000)), newAgent(seed)
	a.feed(p, 700)
	a.mean -= .5
	all := a.feed(p, 300)
	mend(a)
	all = append(all, a.feed(p, 20)...)
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	p = newBank(episodes(20_000))
	if err := p.Restore(&b, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(all, a.feed(p, 280)...) {
		if f.Signal == "reward" {
			found = append(found, f)
		}
	}
	return found
}

// ofTheDrift fails unless an effect is that of a reward which is .5 lower: within four standard errors.
func ofTheDrift(t *testing.T, f finding.Finding) {
	t.Helper()
	e := f.Effect
	if margin := 4 * e.CurrentSD / math.Sqrt(float64(e.CurrentUnits)); !about(e.MeanShift, -.5, margin) {
		t.Errorf("at unit %d the reward has moved by %v over %d units, want -0.5 within %v", f.At.Ordinal, e.MeanShift, e.CurrentUnits, margin)
	}
}

// A signal that a new version brings back, or moves further, has moved as far as it did under the version that drifted.
func TestEffectIsThatOfTheVersionThatDrifted(t *testing.T) {
	for name, mean := range map[string]float64{"mended": -2, "somewhat better": -2.3, "worse": -3} {
		t.Run(name, func(t *testing.T) {
			found := recovery(t, 351, func(a *agent) { a.mean, a.versions.Policy = mean, "p2" })
			later := 0
			for _, f := range found {
				if f.To == finding.Drift || f.From == finding.Drift {
					ofTheDrift(t, f)
				}
				if f.Kind != finding.StreamUpdated || f.At.Ordinal < 1000 {
					continue
				}
				later++
				if f.Successor != "policy_version p2" || f.Shifts != nil {
					t.Errorf("update at unit %d names %q as the successor, with %d shifts", f.At.Ordinal, f.Successor, len(f.Shifts))
				}
			}
			if name == "mended" {
				if last := found[len(found)-1]; last.To != finding.OK {
					t.Errorf("the last finding is of state %s", last.To)
				}
			} else if later == 0 {
				t.Error("no update after the new version")
			}
		})
	}
}

// Where versions come all the time, as from a policy that learns, a new one does not end the drift.
func TestFrequentVersionsDoNotEndADrift(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(353)
	version := func(units int) (found []finding.Finding) {
		a.versions.Policy += "+"
		return a.feed(p, units)
	}
	for range 10 {
		version(70)
	}
	a.mean -= .5
	var last finding.Finding
	for range 5 {
		for _, f := range version(70) {
			if f.Signal == "reward" && f.To == finding.Drift {
				last = f
			}
		}
	}
	if last.Kind != finding.StreamUpdated || last.Successor != "" || last.At.Ordinal-last.Onset.Ordinal < 200 || last.Effect.CurrentUnits != 200 {
		t.Errorf("the last update has the successor %q and an effect over %d units", last.Successor, last.Effect.CurrentUnits)
	}
}

// An alarm of an improvement turns into one of a deterioration if a later version is worse.
func TestImprovementIsMeasuredAcrossVersions(t *testing.T) {
	cfg := episodes(20_000)
	cfg.Direction = watch.Directions{"reward": watch.DirectionUp}
	p, a := newBank(cfg), newAgent(354)
	a.feed(p, 700)
	a.mean += .5
	better := a.feed(p, 150)
	a.mean, a.versions.Policy = -3, "p2"
	worse := a.feed(p, 300)
	is := func(found []finding.Finding) (improvement, told bool) {
		for _, f := range found {
			if f.Signal == "reward" && f.To == finding.Drift {
				improvement, told = f.Improvement, true
			}
		}
		return improvement, told
	}
	if improvement, told := is(better); !told || !improvement {
		t.Fatalf("alarm %t, improvement %t", told, improvement)
	}
	if improvement, told := is(worse); !told || improvement {
		t.Errorf("after the worse version: update %t, improvement %t", told, improvement)
	}
}
