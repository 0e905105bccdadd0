package bank

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// rewardActions sets the rewards of a unit's actions, with a little noise.
func rewardActions(rng *rand.Rand, of map[string]float64) func(*ingest.Unit) {
	return func(u *ingest.Unit) {
		u.Reward, u.Return = ingest.Moments{}, 0
		for i := range u.Actions {
			a := &u.Actions[i]
			for range a.N {
				r := of[a.Name] + .1*rng.NormFloat64()
				a.Reward += r
				u.Reward.Add(r)
				u.Return += r
			}
		}
	}
}

// firstDrift feeds units until a signal drifts.
func firstDrift(t *testing.T, a *agent, p *Policy) finding.Finding {
	t.Helper()
	for range 200 {
		for _, f := range a.feed(p, 1) {
			if f.To == finding.Drift {
				return f
			}
		}
	}
	t.Fatal("nothing drifted")
	return finding.Finding{}
}

func shiftOf(t *testing.T, f finding.Finding, signal, quantity string) finding.Shift {
	t.Helper()
	i := slices.IndexFunc(f.Shifts, func(s finding.Shift) bool { return s.Signal == signal && s.Quantity == quantity })
	if i < 0 {
		t.Fatalf("no shift of the %s of %s in %+v", quantity, signal, f.Shifts)
	}
	return f.Shifts[i]
}

func TestDriftTellsWhatAllSignalsDid(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(301)
	rewards := map[string]float64{"a": 1, "b": -1, "c": .5}
	odd := func(x float64) ingest.NamedMoments {
		n := ingest.NamedMoments{Signal: "observation.now_and_then"}
		n.Add(x)
		return n
	}
	a.edit = func(u *ingest.Unit) {
		rewardActions(a.rng, rewards)(u)
		if a.made%3 == 0 {
			u.Numeric = append(u.Numeric, odd(a.rng.NormFloat64()))
		}
	}
	a.feed(p, 500)
	rewards["a"], rewards["b"], rewards["c"] = 1.3, -.7, .8
	f := firstDrift(t, a, p)
	for range 49 {
		for _, renewed := range a.feed(p, 1) {
			if renewed.Kind == finding.StreamUpdated && renewed.Signal == f.Signal {
				f = renewed
			}
		}
	}
	units := int(f.At.Ordinal - f.Onset.Ordinal + 1)
	for _, moved := range []finding.Shift{shiftOf(t, f, "reward", "mean"), shiftOf(t, f, "reward", signals.LikeActions)} {
		if moved.Z < 4 || moved.Units != units || math.Abs(moved.CurrentMean-moved.BaselineMean-.3) > .15 {
			t.Errorf("%+v, want a shift of .3 over %d units", moved, units)
		}
	}
	for _, still := range []finding.Shift{
		shiftOf(t, f, "action", "share of a"), shiftOf(t, f, "episode_length", "length"),
		shiftOf(t, f, "observation.now_and_then", "mean"),
	} {
		if math.Abs(still.Z) > 4 || still.Drifted {
			t.Errorf("%+v, want no shift", still)
		}
	}
	if s := shiftOf(t, f, "observation.now_and_then", "mean"); s.Units > units/3+1 {
		t.Errorf("%d values in %d units, of which one in three had the signal", s.Units, units)
	}
	if s := shiftOf(t, f, f.Signal, f.Effect.Quantity); !s.Drifted {
		t.Errorf("%+v is not marked as drifted", s)
	}
	if !slices.IsSortedFunc(f.Shifts, func(a, b finding.Shift) int { return bytes.Compare([]byte(a.Signal), []byte(b.Signal)) }) {
		t.Error("shifts are not sorted by signal")
	}
	if d := f.Return; d == nil || math.Abs(d.PerStep-.3*20) > 2 || math.Abs(d.Rest) > 1e-9 {
		t.Errorf("the return split into %+v, want 6 by reward per step", d)
	}
}

// Without a shift, the scores of all quantities have mean 0 and variance 1.
func TestSimShiftsOfUnmovedSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const banks, windows, units = 6, 8, 40
	sum, squares, n := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for seed := range uint64(banks) {
		p, a := newBank(episodes(1e6)), newAgent(310+seed)
		a.edit = rewardActions(a.rng, map[string]float64{"a": 1, "b": -1, "c": .5})
		a.feed(p, 500)
		for range windows {
			a.feed(p, units)
			for _, s := range p.groups[0].shifts(a.made - units) {
				if s.Units != units {
					t.Fatalf("%+v, want %d units", s, units)
				}
				name := s.Signal + " " + s.Quantity
				sum[name] += s.Z
				squares[name] += s.Z * s.Z
				n[name]++
			}
		}
	}
	// The windows of a bank share its baseline, whose error is units/500 of the variance.
	slack := 4 * math.Sqrt(1./(banks*windows)+units/500./banks)
	for name := range n {
		if mean := sum[name] / n[name]; math.Abs(mean) > slack {
			t.Errorf("%s: mean %.2f, want 0 but for %.2f", name, mean, slack)
		}
		if square := squares[name] / n[name]; square > 1+4*math.Sqrt(2./(banks*windows)) {
			t.Errorf("%s: mean square %.2f, want 1", name, square)
		}
	}
}

func TestSimNoDecompositionWithoutReturns(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(330)
	a.edit = func(u *ingest.Unit) { u.HasReturn = false }
	a.feed(p, 500)
	a.mean -= 2
	if f := firstDrift(t, a, p); f.Return != nil || len(f.Shifts) == 0 {
		t.Errorf("return %+v and %d shifts, want none and some", f.Return, len(f.Shifts))
	}
}

// The evidence of a drift is the same after a restart.
func TestSimEvidenceSurvivesARestart(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(340)
	rewards := map[string]float64{"a": 1, "b": -1, "c": .5}
	a.edit = rewardActions(a.rng, rewards)
	a.feed(p, 520)
	rewards["a"] = 0
	a.feed(p, 2)
	var b bytes.Buffer
	if err := p.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	restored := newBank(episodes(20_000))
	if err := restored.Restore(&b, time.Time{}); err != nil {
		t.Fatal(err)
	}
	told := 0
	for range 60 {
		u := a.unit()
		want, got := p.Observe(u, time.Time{}), restored.Observe(u, time.Time{})
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("findings %+v, want %+v", got, want)
		}
		for _, f := range got {
			told += len(f.Shifts)
		}
	}
	if told == 0 {
		t.Error("nothing was told")
	}
}

func BenchmarkShifts(b *testing.B) {
	p, a := newBank(episodes(1e6)), newAgent(350)
	a.edit = func(u *ingest.Unit) {
		rewardActions(a.rng, map[string]float64{"a": 1, "b": -1, "c": .5})(u)
		for i := range 200 {
			n := ingest.NamedMoments{Signal: fmt.Sprintf("observation.%03d", i)}
			n.Add(a.rng.NormFloat64())
			n.Add(a.rng.NormFloat64())
			u.Numeric = append(u.Numeric, n)
		}
	}
	a.feed(p, 800)
	b.ReportAllocs()
	for b.Loop() {
		p.groups[0].shifts(a.made - 200)
	}
}

// Regardless of how many signals drift and for how long, the evidence about old alarms is gathered once per 100 units.
func TestSimOldAlarmsShareTheirEvidence(t *testing.T) {
	p, a := newBank(episodes(20_000)), newAgent(360)
	a.feed(p, 500)
	a.mean -= 3
	a.feed(p, 150)
	if len(p.groups[0].Streams) < 3 || !p.groups[0].Streams[len(p.groups[0].Streams)-1].Alarmed {
		t.Fatal("too few signals drift")
	}
	told, updates := 0, 0
	for _, f := range a.feed(p, 1000) {
		if f.Kind == finding.StreamUpdated {
			updates++
			if f.Shifts != nil {
				told++
			}
		}
	}
	if told < 9 || told > 10 || updates < 2*told {
		t.Errorf("%d of %d updates in 1000 units tell what all signals did, want 10", told, updates)
	}
}
