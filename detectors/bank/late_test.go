package bank

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// An outcome that is reported only after the baseline was accepted gets a baseline of its own, from the reserve of the
// budget, and no threshold moves for it.
func TestLateSignalIsJudged(t *testing.T) {
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
				s.branches(func(b branch) { out = append(out, b.threshold) })
			}
		}
		return out
	}
	before := thresholds()
	report = true
	a.feed(p, 499)
	if s := stateOf(t, p, "outcome.sale"); s.State != WarmingUp || s.Missing != "fewer than 20 units of the baseline have the signal; 499 of 500 for a baseline of its own" {
		t.Errorf("%s, missing %q", s.State, s.Missing)
	}
	a.feed(p, 1)
	if s := stateOf(t, p, "outcome.sale"); s.State != OK || !slices.Contains(s.Armed, DetectorFrequency) {
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
		if f.To == Drift && (f.Baseline.Units != 500 || f.Baseline.ID == p.groups[0].Baseline.ID) {
			t.Errorf("held against the baseline %+v", f.Baseline)
		}
	}
}

// A late signal that is rare is not missed between two units that have it.
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
		if f.To == TelemetryFault {
			t.Fatalf("%s has the fault %s at unit %d", f.Signal, f.Reason, f.At.Ordinal)
		}
	}
	if s := stateOf(t, p, "observation.x"); s.State != OK {
		t.Errorf("%s, missing %q", s.State, s.Missing)
	}
}
