package bank

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// units makes so many units.
func (s *simulation) units(n int) []*ingest.Unit {
	out := make([]*ingest.Unit, n)
	for i := range out {
		out[i] = s.unit()
	}
	return out
}

func measured(p *Policy, units []*ingest.Unit, seconds float64) Measurement {
	return p.Measure(p.groups[0].Key, Measuring{Units: units, HeldOut: true, Seed: 1, Seconds: seconds})
}

// The true mean time between alarms lies in its 90 % interval, for at least three of five laws: fewer come once in a
// hundred times.
func TestMeasuredIntervalHoldsTheTruth(t *testing.T) {
	within := 0
	for i, l := range laws() {
		s := newSimulation(l, 710, uint64(i))
		p := s.frozen(250, 200)
		f := measured(p, s.units(2000), .8).FalseAlarms
		pool := s.sample(10_000)
		truth := newJudge(p.groups[0], pool.columns).count(pool, s.rng, 100, math.MaxInt).arl0()
		if f.Low <= truth && truth <= f.High {
			within++
		}
		if f.At != 200 || f.Low > f.ARL0 || f.ARL0 > f.High || f.Alarms < 100 {
			t.Errorf("%s: %+v", l.name, f)
		}
		t.Logf("%s: %.0f (%.0f to %.0f), in truth %.0f", l.name, f.ARL0, f.Low, f.High, truth)
	}
	if within < 3 {
		t.Errorf("%d of %d intervals hold the truth", within, len(laws()))
	}
}

// The limits are those of Garwood's tables: of 10 events the 90 % interval is 5.425 to 16.962, of none up to 2.996.
func TestIntervalOfAFewAlarms(t *testing.T) {
	near := func(got, want float64) bool { return got == want || math.Abs(got/want-1) < 1e-3 }
	for _, tt := range []struct {
		c               count
		arl0, low, high float64
	}{
		{count{1000, 10}, 100, 1000 / 16.962, 1000 / 5.425},
		{count{1000, 0}, 1000, 1000 / 2.996, math.Inf(1)},
	} {
		if arl0, low, high := tt.c.interval(); !near(arl0, tt.arl0) || !near(low, tt.low) || !near(high, tt.high) {
			t.Errorf("%+v: %v (%v to %v), want %v (%v to %v)", tt.c, arl0, low, high, tt.arl0, tt.low, tt.high)
		}
	}
}

func TestChangedUnitsLackTheBudget(t *testing.T) {
	s := newSimulation(laws()[0], 711, 0)
	p := s.frozen(500, 1000)
	healthy := s.units(1000)
	if f := measured(p, healthy, 1).FalseAlarms; f.Lacks() {
		t.Errorf("healthy units lack the budget: %+v", f)
	}
	s.shift = .1 // .45 standard deviations of an episode's mean
	if f := measured(p, s.units(1000), 1).FalseAlarms; !f.Lacks() {
		t.Errorf("changed units keep the budget: %+v", f)
	}
}

func TestMeasuringTwiceGivesTheSameFigures(t *testing.T) {
	s := newSimulation(laws()[0], 712, 0)
	p := s.frozen(250, 2000)
	for range 30 {
		p.Observe(s.unit(), time.Time{})
	}
	before := walksOf(p.groups[0])
	with := Measuring{Units: s.units(300), Seed: 5, Seconds: .3}
	first := p.Measure(p.groups[0].Key, with)
	if again := p.Measure(p.groups[0].Key, with); !reflect.DeepEqual(withoutNaN(first), withoutNaN(again)) {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
	if after := walksOf(p.groups[0]); !slices.Equal(before, after) {
		t.Errorf("measuring has changed the walks from %v to %v", before, after)
	}
	with.Seed = 6
	if other := p.Measure(p.groups[0].Key, with); reflect.DeepEqual(first.FalseAlarms, other.FalseAlarms) {
		t.Error("another seed gives the same figures")
	}
}

// walksOf gives where the armed tests of a group stand.
func walksOf(g *group) (out []float64) {
	for _, s := range g.Streams {
		s.branches(func(b branch) { out = append(out, b.score, b.threshold) })
	}
	return out
}

// withoutNaN makes delays comparable.
func withoutNaN(m Measurement) Measurement {
	m.Delays = slices.Clone(m.Delays)
	for i := range m.Delays {
		for _, x := range []*float64{&m.Delays[i].Units, &m.Delays[i].StandardError, &m.Delays[i].Missed} {
			if math.IsNaN(*x) {
				*x = -1
			}
		}
	}
	return m
}

func TestRareAlarmsAreMeasuredAtASmallerBudget(t *testing.T) {
	s := newSimulation(laws()[0], 713, 0)
	p := s.frozen(500, 1_000_000)
	f := measured(p, s.units(1000), 1).FalseAlarms
	if f.At < leastPromised || f.At > 5000 || f.Alarms < 30 {
		t.Fatalf("%+v", f)
	}
	// Healthy units keep the lowered budget too, and not by orders of magnitude.
	if f.Lacks() || f.ARL0 > 100*f.At {
		t.Errorf("%+v", f)
	}
}

func TestDependentUnitsAreDrawnInRows(t *testing.T) {
	s := newSimulation(laws()[0], 714, 0)
	s.keeps, s.wander = .5, .2
	p := s.frozen(500, 1000)
	if f := measured(p, s.units(600), .3).FalseAlarms; !f.Dependent {
		t.Errorf("factor %.2f, and %+v", p.groups[0].Streams[0].factor(), f)
	}
}

// The delay on changed units is that of a simulation that has changed, within four standard errors.
func TestMeasuredDelayIsThatOfChangedTelemetry(t *testing.T) {
	s := newSimulation(laws()[0], 715, 0)
	p := s.frozen(500, 2000)
	units := s.units(4000)
	before := s.sample(4000)
	s.shift = -before.sd("reward", "mean")
	after := s.sample(4000)
	want := newJudge(p.groups[0], before.columns).delays(before, after, s.rng, 100, longestDelay, math.MaxInt)
	m := measured(p, units, 1.5)
	i := slices.IndexFunc(m.Delays, func(d Delay) bool { return d.Change == "mean -1 sd" })
	got := m.Delays[i]
	within := 4 * math.Hypot(got.StandardError, want.found.SD()/10)
	if math.Abs(got.Units-want.found.Mean) > within || got.Runs != 100 || got.Missed != 0 {
		t.Errorf("%+v, of changed telemetry %.1f within %.1f", got, want.found.Mean, within)
	}
	for _, d := range m.Delays[:3] {
		if next := m.Delays[slices.IndexFunc(m.Delays, func(e Delay) bool { return e == d })+1]; next.Units > d.Units {
			t.Errorf("%s takes %.1f units, %s %.1f", d.Change, d.Units, next.Change, next.Units)
		}
	}
}

// A bound on the delay is kept, and runs that end at it are counted.
func TestMissedChangesAreCounted(t *testing.T) {
	s := newSimulation(laws()[0], 716, 0)
	p := s.frozen(500, 20_000)
	same := s.sample(1000)
	d := newJudge(p.groups[0], same.columns).delays(same, same, s.rng, 10, 50, math.MaxInt)
	if d.missed < 9 || int(d.found.N)+d.missed != 10 || d.units > 10*(unitsBeforeChange+50)+unitsBeforeChange*d.discarded {
		t.Errorf("%+v", d)
	}
}

// Units that lack a signal, or bring one that others lack, leave the tests of that signal as they are.
func TestSamplesOfUnitsWithDifferentSignals(t *testing.T) {
	s := newSimulation(laws()[0], 717, 0)
	g := s.frozen(100, 1000).groups[0]
	units := s.units(3)
	units[0].Numeric, units[2].HasReturn = nil, false
	pool := g.sample(units, 1)
	outcome := slices.Index(pool.columns, column{"outcome.success", "mean"})
	returned := slices.Index(pool.columns, column{"return", "return"})
	for i, row := range pool.units {
		if len(row) != len(pool.columns) || math.IsNaN(row[outcome].x) != (i == 0) || math.IsNaN(row[returned].x) != (i == 2) {
			t.Errorf("unit %d: %+v", i, row)
		}
	}
	other := g.sample(units[2:], 1).in(pool.columns)
	if !math.IsNaN(other.units[0][returned].x) || other.units[0][outcome].x != pool.units[2][outcome].x {
		t.Errorf("in the order of another sample: %+v", other.units[0])
	}
	j := newJudge(g, pool.columns)
	next := pool.draws(rand.New(rand.NewPCG(1, 1)))
	for range 100 {
		j.observe(next())
	}
}

// A mean that is given alone leads to an alarm of the judge where it does to one of the bank, and sooner with a larger
// budget.
func TestJudgeOfAGivenMean(t *testing.T) {
	s := newSimulation(laws()[0], 718, 0)
	cfg := episodes(20_000)
	cfg.Baseline.Units, cfg.Signals = 100, []string{"outcome.success"}
	cfg.Guaranteed = []GivenMean{{Signal: "outcome.success", Mean: .3, Side: "above"}}
	p := newBank(cfg)
	for range 100 {
		p.Learn(s.unit())
	}
	p.Accept(time.Time{})
	g := p.groups[0]
	q := g.Streams[0].find("mean")
	q.Frequency, q.Shape = nil, nil // of whose tests there is no doubt
	g.Newcomers.Patience = 0        // the judge takes every unit
	pool := g.sample([]*ingest.Unit{s.unit()}, 1)
	j := newJudge(g, pool.columns)
	easier := j.again()
	easier.lower(2)
	s.outcome = .6
	sooner, units := 0, 0
	for alarm := false; !alarm && units < 500; units++ {
		u := s.unit()
		row := g.sample([]*ingest.Unit{u}, 1).in(pool.columns).units[0]
		if easier.observe(row) && sooner == 0 {
			sooner = units + 1
		}
		alarm = len(alarmsIn(p.Observe(u, time.Time{}))) > 0
		if got := j.observe(row); got != alarm {
			t.Fatalf("unit %d: alarm %v, of the bank %v", units, got, alarm)
		}
	}
	if sooner == 0 || sooner >= units || units == 500 {
		t.Errorf("alarm after %d units, %d with a larger budget", units, sooner)
	}
}
