package bank

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/measure"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// units returns the given number of units.
func (s *simulation) units(n int) []*ingest.Unit {
	out := make([]*ingest.Unit, n)
	for i := range out {
		out[i] = s.unit()
	}
	return out
}

func measured(p *Policy, units []*ingest.Unit, seconds float64) measure.Measurement {
	return measure.Measure(p.Armed(p.groups[0].Key), measure.Measuring{Units: units, HeldOut: true, Seed: 1, Seconds: seconds})
}

// The true mean time between alarms is within its 90% interval for at least three of five laws; fewer occur by chance
// once in a hundred times.
func TestSimMeasuredIntervalHoldsTheTruth(t *testing.T) {
	within := 0
	for i, l := range laws() {
		s := newSimulation(l, 710, uint64(i))
		p := s.frozen(250, 200)
		f := measured(p, s.units(2000), .8).FalseAlarms
		pool := s.sample(10_000)
		truth := battery.NewJudge(&p.groups[0].Battery, pool.Columns).Count(pool, s.rng, 100, math.MaxInt).ARL0()
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

func TestSimChangedUnitsLackTheBudget(t *testing.T) {
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

func TestSimMeasuringTwiceGivesTheSameFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	s := newSimulation(laws()[0], 712, 0)
	p := s.frozen(250, 2000)
	for range 30 {
		p.Observe(s.unit(), time.Time{})
	}
	before := walksOf(p.groups[0])
	with := measure.Measuring{Units: s.units(300), Seed: 5, Seconds: .3}
	first := measure.Measure(p.Armed(p.groups[0].Key), with)
	if again := measure.Measure(p.Armed(p.groups[0].Key), with); !reflect.DeepEqual(withoutNaN(first), withoutNaN(again)) {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
	if after := walksOf(p.groups[0]); !slices.Equal(before, after) {
		t.Errorf("measuring has changed the walks from %v to %v", before, after)
	}
	with.Seed = 6
	if other := measure.Measure(p.Armed(p.groups[0].Key), with); reflect.DeepEqual(first.FalseAlarms, other.FalseAlarms) {
		t.Error("another seed gives the same figures")
	}
}

// walksOf returns the walks of the armed tests of a group.
func walksOf(g *group) (out []float64) {
	for _, s := range g.Streams {
		s.Branches(func(b stream.Branch) { out = append(out, b.Score, b.Threshold) })
	}
	return out
}

// withoutNaN makes delays comparable.
func withoutNaN(m measure.Measurement) measure.Measurement {
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

func TestSimRareAlarmsAreMeasuredAtASmallerBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	s := newSimulation(laws()[0], 713, 0)
	p := s.frozen(500, 1_000_000)
	f := measured(p, s.units(1000), 1).FalseAlarms
	if f.At < watch.LeastPromised || f.At > 5000 || f.Alarms < 30 {
		t.Fatalf("%+v", f)
	}
	// Healthy units also keep the lowered budget, and not by orders of magnitude.
	if f.Lacks() || f.ARL0 > 100*f.At {
		t.Errorf("%+v", f)
	}
}

func TestSimDependentUnitsAreDrawnInRows(t *testing.T) {
	s := newSimulation(laws()[0], 714, 0)
	s.keeps, s.wander = .5, .2
	p := s.frozen(500, 1000)
	if f := measured(p, s.units(600), .3).FalseAlarms; !f.Dependent {
		t.Errorf("factor %.2f, and %+v", p.groups[0].Streams[0].Factor(), f)
	}
}

// The delay on changed units equals that of a changed simulation, within four standard errors.
func TestSimMeasuredDelayIsThatOfChangedTelemetry(t *testing.T) {
	s := newSimulation(laws()[0], 715, 0)
	p := s.frozen(500, 2000)
	units := s.units(4000)
	before := s.sample(4000)
	s.shift = -sdOf(before, "reward", "mean")
	after := s.sample(4000)
	want := battery.NewJudge(&p.groups[0].Battery, before.Columns).Delays(before, after, s.rng, 100, 20_000, math.MaxInt)
	m := measured(p, units, 1.5)
	i := slices.IndexFunc(m.Delays, func(d measure.Delay) bool { return d.Change == "mean -1 SD" })
	got := m.Delays[i]
	within := 4 * math.Hypot(got.StandardError, want.Found.SD()/10)
	if math.Abs(got.Units-want.Found.Mean) > within || got.Runs != 100 || got.Missed != 0 {
		t.Errorf("%+v, of changed telemetry %.1f within %.1f", got, want.Found.Mean, within)
	}
	for _, d := range m.Delays[:3] {
		if next := m.Delays[slices.IndexFunc(m.Delays, func(e measure.Delay) bool { return e == d })+1]; next.Units > d.Units {
			t.Errorf("%s takes %.1f units, %s %.1f", d.Change, d.Units, next.Change, next.Units)
		}
	}
}

// A limit on the delay is respected, and runs that end at the limit are counted.
func TestMissedChangesAreCounted(t *testing.T) {
	s := newSimulation(laws()[0], 716, 0)
	p := s.frozen(500, 20_000)
	same := s.sample(1000)
	d := battery.NewJudge(&p.groups[0].Battery, same.Columns).Delays(same, same, s.rng, 10, 50, math.MaxInt)
	if d.Missed < 9 || int(d.Found.N)+d.Missed != 10 || d.Units > 10*(battery.UnitsBeforeChange+50)+battery.UnitsBeforeChange*d.Discarded {
		t.Errorf("%+v", d)
	}
}

// Units that lack a signal, or have one that others lack, do not affect the tests of that signal.
func TestSamplesOfUnitsWithDifferentSignals(t *testing.T) {
	s := newSimulation(laws()[0], 717, 0)
	g := s.frozen(100, 1000).groups[0]
	units := s.units(3)
	units[0].Numeric, units[2].HasReturn = nil, false
	pool := battery.NewSample(&g.Battery, units, 1)
	outcome := slices.Index(pool.Columns, battery.Column{Signal: "outcome.success", Quantity: "mean"})
	returned := slices.Index(pool.Columns, battery.Column{Signal: "return", Quantity: "return"})
	for i, row := range pool.Units {
		if len(row) != len(pool.Columns) || math.IsNaN(row[outcome].X) != (i == 0) || math.IsNaN(row[returned].X) != (i == 2) {
			t.Errorf("unit %d: %+v", i, row)
		}
	}
	other := battery.NewSample(&g.Battery, units[2:], 1).In(pool.Columns)
	if !math.IsNaN(other.Units[0][returned].X) || other.Units[0][outcome].X != pool.Units[2][outcome].X {
		t.Errorf("in the order of another sample: %+v", other.Units[0])
	}
	j := battery.NewJudge(&g.Battery, pool.Columns)
	next := pool.Draws(rand.New(rand.NewPCG(1, 1)))
	for range 100 {
		j.Observe(next())
	}
}

// If only a mean is given, the judge alarms at the same units as the bank, and sooner with a larger budget.
func TestJudgeOfAGivenMean(t *testing.T) {
	s := newSimulation(laws()[0], 718, 0)
	cfg := episodes(20_000)
	cfg.Baseline.Units, cfg.Signals = 100, []string{"outcome.success"}
	cfg.Guaranteed = []watch.GivenMean{{Signal: "outcome.success", Mean: .3, Side: "above"}}
	p := newBank(cfg)
	for range 100 {
		p.Learn(s.unit())
	}
	p.Accept(time.Time{})
	g := p.groups[0]
	q := g.Streams[0].Find("mean")
	drop[*stream.FrequencyTest](q) // these two are not tested here
	drop[*stream.ShapeTest](q)
	g.Newcomers.Patience = 0 // the judge takes every unit
	pool := battery.NewSample(&g.Battery, []*ingest.Unit{s.unit()}, 1)
	j := battery.NewJudge(&g.Battery, pool.Columns)
	easier := j.Again()
	easier.Lower(2)
	s.outcome = .6
	sooner, units := 0, 0
	for alarm := false; !alarm && units < 500; units++ {
		u := s.unit()
		row := battery.NewSample(&g.Battery, []*ingest.Unit{u}, 1).In(pool.Columns).Units[0]
		if easier.Observe(row) && sooner == 0 {
			sooner = units + 1
		}
		alarm = len(alarmsIn(p.Observe(u, time.Time{}))) > 0
		if got := j.Observe(row); got != alarm {
			t.Fatalf("unit %d: alarm %v, of the bank %v", units, got, alarm)
		}
	}
	if sooner == 0 || sooner >= units || units == 500 {
		t.Errorf("alarm after %d units, %d with a larger budget", units, sooner)
	}
}

// For rare clicks, calibrate claimed that a lower mean is found after 4 units, because it moved them to values that
// they never had.
func TestSimMeasuredDelaysOfRareOutcomes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	stream := uint64(0)
	s, p := rarely(402, &stream, .038, 1, 500, 20_000)
	var units []*ingest.Unit
	for range 4000 {
		u := s.unit()
		p.Observe(u, time.Time{})
		units = append(units, u)
	}
	m := measure.Measure(p.Armed(s.unit().Group), measure.Measuring{Units: units, HeldOut: true, Seed: 1, Seconds: 2})
	least := map[string]float64{
		"reward values other than 0 vanish": 200, "reward values other than 0 halved": 700,
		"outcome.click rate 0": 200, "outcome.click rate halved": 700,
	}
	for _, d := range m.Delays {
		name := d.Signal + " " + d.Change
		if want := least[name]; want > 0 {
			if !(d.Units >= want && d.Units <= 10*want) || d.Runs == 0 {
				t.Errorf("%s: found after %.0f units in %d runs, want %.0f to %.0f", name, d.Units, d.Runs, want, 10*want)
			}
			delete(least, name)
		} else if d.Units < 20 && d.Signal != signals.Action {
			t.Errorf("%s: found after %.0f units", name, d.Units)
		}
	}
	if len(least) > 0 {
		t.Errorf("not measured: %v", least)
	}
}
