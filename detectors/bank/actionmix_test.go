package bank

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// A bank saved by an older version continues with the mix that it was calibrated with, and with no other mix.
func TestAnOlderMixKeepsItsScores(t *testing.T) {
	s := newManyActions(12, 0, 1).follow(uniformActions, 80)
	p := s.frozen()
	g := p.groups[0]
	at, _ := g.Find(signals.Action)
	actions := g.Streams[at]
	actions.Quantities = slices.DeleteFunc(actions.Quantities, func(q *stream.Quantity) bool { return q.Mix != nil && q.Name != stream.MixQuantity })
	branches := actions.Find(stream.MixQuantity).Frequency().Branches
	for i := range branches {
		branches[i].Family = detectors.Frequency
	}
	quantities := len(actions.Quantities)
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	cfg := p.cfg
	p = newBank(cfg)
	if err := p.Restore(&b, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p.Observe(s.unit(), time.Unix(0, 0))
	}
	g = p.groups[0]
	actions = g.Streams[at]
	if m := actions.Find(stream.MixQuantity).Mix; m.Prior != stream.JeffreysPrior(len(g.BaseActions)) {
		t.Errorf("the prior is %+v", m.Prior)
	}
	if len(actions.Quantities) != quantities {
		t.Errorf("%d quantities have become %d", quantities, len(actions.Quantities))
	}
}

// The quantities that judge all actions at once have one half of the actions' part of the budget, and the shares have
// the other half.
func TestMixesHaveHalfOfTheBudgetOfActions(t *testing.T) {
	g := newManyActions(13, 0, 20).follow(uniformActions, 30).frozen().groups[0]
	at, _ := g.Find(signals.Action)
	mixes, each, shares := 0.0, 0.0, 0
	for _, q := range g.Streams[at].Quantities {
		if q.Mix == nil {
			shares += q.Candidates(false)
		}
		w := q.Walks()
		if w == nil {
			continue
		}
		for _, b := range w.Branches {
			if b.Height == 0 {
				continue
			}
			if rate := math.Exp(b.LogA - b.Height); q.Mix != nil {
				mixes += rate
			} else {
				each = rate
			}
		}
	}
	if all := each * float64(shares); mixes == 0 || math.Abs(mixes/all-1) > 1e-9 {
		t.Errorf("mixes may spend %g, shares %g", mixes, all)
	}
}

// Episodes have one step, as with a recommender. In the baseline, a score excludes its own step, so ranks would
// distinguish the baseline's scores of an action from later ones, and any incident would be attributed to the policy.
func TestMixesOfSingleStepsStayWhereTheyWere(t *testing.T) {
	for seed := range uint64(8) {
		s := newManyActions(30, seed, 1).follow(zipfActions, 60)
		p := s.frozen()
		for range 300 {
			p.Observe(s.unit(), time.Time{})
		}
		mixes := func(check func(quantity string, z float64)) {
			for _, shift := range p.groups[0].shifts(p.groups[0].Trail.Next() - 200) {
				if slices.ContainsFunc(stream.MixForms(), func(f stream.MixForm) bool { return f.Name == shift.Quantity }) {
					check(shift.Quantity, shift.Z)
				}
			}
		}
		seen := 0
		mixes(func(quantity string, z float64) {
			if seen++; math.Abs(z) > 4 {
				t.Errorf("run %d: %s has moved by %.1f standard errors, although nothing has", seed, quantity, z)
			}
		})
		if seen < 4 {
			t.Fatalf("%d mixes", seen)
		}
		s.follow(permutedZipf, 60)
		for range 200 {
			p.Observe(s.unit(), time.Time{})
		}
		mixes(func(quantity string, z float64) {
			if quantity == stream.MixQuantity && z < 4 {
				t.Errorf("run %d: the actions of another policy move the mix by %.1f standard errors only", seed, z)
			}
		})
	}
}
