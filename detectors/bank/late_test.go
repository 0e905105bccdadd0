package bank

import (
	"math"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// An outcome that is first reported after the baseline was accepted gets its own baseline from the reserve of the
// budget, and no threshold moves.
func TestSimLateSignalIsJudged(t *testing.T) {
	rate := .5
	report := false
	a := newAgent(170)
	a.edit = func(u *ingest.Unit) {
		if !report {
			return
		}
		m := ingest.NamedMoments{Signal: "outcome.sale"}
		for range u.Length {
			if a.rng.Float64() < rate {
				m.Add(1)
			} else {
				m.Add(0)
			}
		}
		u.Numeric = append(u.Numeric, m)
	}
	p := newBank(episodes(2000))
	a.feed(p, 600)
	thresholds := func() (out []float64) {
		for _, s := range p.groups[0].Streams {
			if s.Signal != "outcome.sale" {
				s.Branches(func(b stream.Branch) { out = append(out, b.Threshold) })
			}
		}
		return out
	}
	before := thresholds()
	report = true
	a.feed(p, 499)
	if s := stateOf(t, p, "outcome.sale"); s.State != finding.WarmingUp || s.Missing != "fewer than 20 episodes in the baseline contain the signal; collected 499 of 500 for a separate baseline" {
		t.Errorf("%s, missing %q", s.State, s.Missing)
	}
	a.feed(p, 1)
	if s := stateOf(t, p, "outcome.sale"); s.State != finding.OK || !slices.Contains(s.Armed, finding.DetectorFrequency) {
		t.Fatalf("%s, armed %v", s.State, s.Armed)
	}
	if !slices.Equal(before, thresholds()) {
		t.Error("thresholds moved")
	}
	p = restored(t, p)
	rate = .2
	found := a.feed(p, 30)
	if got := alarmsIn(found); !slices.Equal(got, []string{"outcome.sale"}) {
		t.Fatalf("alarms of %v", got)
	}
	for _, f := range found {
		if f.To == finding.Drift && (f.Baseline.Units != 500 || f.Baseline.ID == p.groups[0].Baseline.ID) {
			t.Errorf("held against the baseline %+v", f.Baseline)
		}
	}
}

// A rare late signal is not missing between two units that have it.
func TestRareLateSignalIsNoFault(t *testing.T) {
	report := false
	a := newAgent(171)
	a.edit = func(u *ingest.Unit) {
		if !report || a.made%30 != 0 {
			return
		}
		m := ingest.NamedMoments{Signal: "observation.x"}
		for range u.Length {
			m.Add(a.rng.NormFloat64())
		}
		u.Numeric = append(u.Numeric, m)
	}
	cfg := episodes(2000)
	cfg.Baseline.Units = 100
	p := newBank(cfg)
	a.feed(p, 200)
	report = true
	for _, f := range a.feed(p, 3300) {
		if f.To == finding.TelemetryFault {
			t.Fatalf("%s has the fault %s at unit %d", f.Signal, f.Reason, f.At.Ordinal)
		}
	}
	if s := stateOf(t, p, "observation.x"); s.State != finding.OK {
		t.Errorf("%s, missing %q", s.State, s.Missing)
	}
}

// A late signal with a trend gets no baseline until it has settled, and a message says so.
func TestTrendingLateSignalIsRefused(t *testing.T) {
	a := newAgent(172)
	cfg := episodes(2000)
	cfg.Baseline.Units = 100
	p := newBank(cfg)
	a.feed(p, 110)
	level := 0.
	a.edit = func(u *ingest.Unit) {
		x := make([]float64, u.Length)
		for i := range x {
			x[i] = level + a.rng.NormFloat64()
		}
		u.Numeric = append(u.Numeric, numbers("observation.x", x...))
		level = min(2, level+.01)
	}
	a.feed(p, 100)
	want := "observation.x mean was not stationary over the last 100 episodes; collecting a new baseline, 50 of 100"
	if s := stateOf(t, p, "observation.x"); s.State != finding.WarmingUp || s.Missing != want {
		t.Fatalf("%s, missing %q", s.State, s.Missing)
	}
	p = restored(t, p)
	a.feed(p, 400)
	s := stateOf(t, p, "observation.x")
	if s.State != finding.OK {
		t.Fatalf("%s, missing %q", s.State, s.Missing)
	}
	if math.Abs(s.Baseline.Mean-2) > .1 {
		t.Errorf("the baseline of a signal that settled at 2 has the mean %v", s.Baseline.Mean)
	}
}

// The residual of a late outcome is learned from the units of its own baseline, and judged after it has been validated.
func TestLateOutcomeIsHeldAgainstTheReward(t *testing.T) {
	c := newCourses(173)
	c.edit = func(u *ingest.Unit) { u.Numeric = nil }
	p := c.frozen(200, 20_000, 10)
	c.edit = nil
	c.feed(p, 199)
	residual := func() *stream.Quantity {
		s := p.groups[0].stream("outcome.sales")
		return s.Find(signals.GivenReward)
	}
	if q := residual(); q != nil {
		t.Fatalf("learnt from fewer units than a baseline takes: %+v", q.Learnt)
	}
	p = restored(t, p)
	c.feed(p, 1)
	q := residual()
	if q == nil || q.Learnt == nil || q.Learnt.Given != "reward" || q.Rank() == nil || q.Rank().Armed() == 0 {
		t.Fatalf("not learnt: %+v", q)
	}
	if got := len(p.groups[0].stream("outcome.sales").LateGiven); got != 0 {
		t.Errorf("%d rewards are kept after the freeze", got)
	}
	for range 10 {
		if c.feed(p, stream.ProvingUnits); q.Learnt.Proved {
			break
		}
	}
	if !q.Learnt.Proved {
		t.Fatalf("not armed: %s", q.Learnt.Refuted)
	}
	c.shuffled = true // the same laws, but the outcome follows other rewards
	for _, f := range c.feed(p, 100) {
		if f.To == finding.Drift {
			if f.Signal != "outcome.sales" || f.Effect.Quantity != signals.GivenReward {
				t.Errorf("alarm of %s of %s", f.Effect.Quantity, f.Signal)
			}
			return
		}
	}
	t.Error("an outcome that no longer goes by the reward was not found in 100 units")
}

// A late outcome is learned from one signal, even if another signal gets a baseline in the meantime.
func TestLateOutcomeIsLearntFromOneSignal(t *testing.T) {
	c, outcome := newCourses(173), false
	c.edit = func(u *ingest.Unit) {
		u.Numeric, u.Reward, u.Profile = nil, ingest.Moments{}, nil
	}
	p := c.frozen(200, 20_000, 10)
	c.edit = func(u *ingest.Unit) {
		if !outcome {
			u.Numeric = nil
		}
	}
	c.feed(p, 100)
	outcome = true
	c.feed(p, 150)
	if s := p.groups[0].stream("reward"); !s.InBaseline {
		t.Fatal("the reward has no baseline")
	}
	for i, o := range p.groups[0].stream("outcome.sales").LateGiven {
		if o.X < 3*courseSteps { // a return is the sum of as many rewards of about 5
			t.Fatalf("what was kept of unit %d is %v, no return", i, o.X)
		}
	}
	p = restored(t, p)
	c.feed(p, 50)
	q := p.groups[0].stream("outcome.sales").Find(signals.GivenReward)
	if q == nil || q.Learnt == nil || q.Learnt.Given != "return" {
		t.Errorf("not learnt from the return: %+v", q)
	}
}
