package offpolicy

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12*(1+math.Abs(want)) }

// example is a reference with two actions.
func example() Reference {
	return Reference{Actions: map[string]Action{"a": {.75, 2}, "b": {.25, 4}}, Mean: 2.5, Direct: 2.5}
}

func TestSamplesOfUnits(t *testing.T) {
	ref := example()
	episode := &ingest.Unit{
		HasReturn: true, Return: 6, Length: 3, ActionKind: ingest.ActionCategory, Actions: []ingest.Count{{Name: "a", N: 2}, {Name: "b", N: 1}},
		Propensity: &ingest.Propensity{
			Steps: 3, Log: math.Log(.5 * .5 * .125), Targets: 3, LogTarget: math.Log(.5 * .25 * .125), Actions: []ingest.InverseProbs{{Sum: 4}, {Sum: 8}},
		},
	}
	block := &ingest.Unit{
		End: ingest.EndBlock, Length: 4, Reward: ingest.Moments{N: 4, Mean: 3}, ActionKind: ingest.ActionCategory, Actions: []ingest.Count{{Name: "a", N: 3}, {Name: "b", N: 1}},
		Propensity: &ingest.Propensity{
			Steps: 4, Log: math.Log(.5 * .5 * .5 * .25), Targets: 4, Weight: 6, WeightedReward: 20,
			Actions: []ingest.InverseProbs{{Sum: 6, Reward: 16}, {Sum: 4, Reward: 12}},
		},
	}
	numbers := &ingest.Unit{
		HasReturn: true, Return: 4, Length: 1, ActionKind: ingest.ActionNumeric, Numeric: []ingest.NamedMoments{{Signal: "action", Moments: ingest.Moments{N: 1}}},
		Propensity: &ingest.Propensity{Steps: 1, Log: math.Log(8), Targets: 1, LogTarget: math.Log(2), Weight: .25, WeightedReward: 1},
	}
	for _, c := range []struct {
		name                string
		unit                *ingest.Unit
		target, frequencies *Sample
	}{
		{
			"a decision", unitOf("b", .5, .25, 3),
			&Sample{Weight: .5, Weighted: 1.5, Value: 2.5 + 1.5 - 1.25, Return: 3, LogProb: math.Log(.5), Direct: 4},
			&Sample{Weight: .5, Weighted: 1.5, Value: 2.5 + 1.5 - 2, Return: 3, LogProb: math.Log(.5), Direct: 4},
		},
		{
			"an action that the baseline did not take", unitOf("c", .5, 0, 3),
			&Sample{Value: 2.5, Return: 3, LogProb: math.Log(.5)},
			&Sample{Value: 2.5, Return: 3, LogProb: math.Log(.5)},
		},
		{
			"an episode", episode,
			&Sample{Weight: .5, Weighted: 3, Value: 2.5 + 3 - 1.25, Return: 6, LogProb: math.Log(.03125) / 3, Direct: 8. / 3},
			&Sample{Weight: 4.5, Weighted: 27, Value: 2.5 + 27 - 11.25, Return: 6, LogProb: math.Log(.03125) / 3, Direct: 8. / 3},
		},
		{
			"a block", block,
			&Sample{Weight: 1.5, Weighted: 5, Value: 2.5 + 5 - 3.75, Return: 3, LogProb: math.Log(.03125) / 4, Direct: 2.5},
			&Sample{Weight: 5.5 / 4, Weighted: 15. / 4, Value: 2.5 + 15./4 - 13./4, Return: 3, LogProb: math.Log(.03125) / 4, Direct: 2.5},
		},
		{"a numeric action", numbers, &Sample{Weight: .25, Weighted: 1, Value: 2.5 + 1 - .625, Return: 4, LogProb: math.Log(8)}, nil},
		{"no target_prob", unitOf("a", .5, math.NaN(), 3), nil, &Sample{Weight: 1.5, Weighted: 4.5, Value: 2.5 + 4.5 - 3, Return: 3, LogProb: math.Log(.5), Direct: 2}},
		{"nothing known", &ingest.Unit{HasReturn: true, Return: 1, Actions: []ingest.Count{{Name: "a", N: 1}}, ActionKind: ingest.ActionCategory}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Of(c.unit)
			got := ref.Samples(&o)
			for _, of := range []struct{ got, want *Sample }{{got.Target, c.target}, {got.Frequencies, c.frequencies}} {
				if (of.got == nil) != (of.want == nil) {
					t.Fatalf("got %+v, want %+v", of.got, of.want)
				}
				if of.want == nil {
					continue
				}
				g, w := *of.got, *of.want
				if !near(g.Weight, w.Weight) || !near(g.Weighted, w.Weighted) || !near(g.Value, w.Value) || !near(g.Return, w.Return) || !near(g.LogProb, w.LogProb) || !near(g.Direct, w.Direct) {
					t.Errorf("got %+v, want %+v", g, w)
				}
			}
		})
	}
}

// A unit whose probabilities do not cover all of its actions cannot be weighted, nor can a unit without a return.
func TestUnitsThatCannotBeWeighted(t *testing.T) {
	for name, change := range map[string]func(*ingest.Unit){
		"an invalid probability":       func(u *ingest.Unit) { u.Propensity.Invalid = 1 },
		"an action without":            func(u *ingest.Unit) { u.Actions[0].N = 2 },
		"no return":                    func(u *ingest.Unit) { u.HasReturn = false },
		"a return that is no number":   func(u *ingest.Unit) { u.Return = math.NaN() },
		"a block with too few rewards": func(u *ingest.Unit) { u.End, u.Length = ingest.EndBlock, 2 },
		"numbers, one without": func(u *ingest.Unit) {
			u.ActionKind, u.Numeric = ingest.ActionNumeric, []ingest.NamedMoments{{Signal: "action.0", Moments: ingest.Moments{N: 2}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := unitOf("a", .5, .5, 1)
			if Of(u).Propensity == nil {
				t.Fatal("the unit itself cannot be weighted")
			}
			change(u)
			if Of(u).Propensity != nil {
				t.Error("it is weighted")
			}
		})
	}
}

// The sums equal those of the textbook, for returns that are large compared with their differences.
func TestSumsAreTheTextbooks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s Sums
	var weights, squares, weighted, values, gaps []float64
	for range 500 {
		x := Sample{Weight: math.Exp(rng.NormFloat64()), Return: 1e6 + rng.NormFloat64(), Value: 1e6 + rng.NormFloat64()}
		x.Weighted = x.Weight * x.Return
		s.Add(x)
		weights, squares, weighted = append(weights, x.Weight), append(squares, x.Weight*x.Weight), append(weighted, x.Weighted)
		values, gaps = append(values, x.Value), append(gaps, x.Return-x.Value)
	}
	sum := func(xs []float64) (total float64) {
		for _, x := range xs {
			total += x
		}
		return total
	}
	variance := func(xs []float64) (total float64) {
		mean := sum(xs) / float64(len(xs))
		for _, x := range xs {
			total += (x - mean) * (x - mean) / float64(len(xs)-1)
		}
		return total
	}
	for name, of := range map[string][2]float64{
		"effective":         {s.Effective(), sum(weights) * sum(weights) / sum(squares)},
		"self-normalised":   {s.SelfNormalized(), sum(weighted) / sum(weights)},
		"doubly robust":     {s.DoublyRobust(), sum(values) / 500},
		"variance of value": {s.Value.variance(500), variance(values)},
		"variance of gap":   {s.Gap.variance(500), variance(gaps)},
	} {
		if math.Abs(of[0]-of[1]) > 1e-8*math.Abs(of[1]) {
			t.Errorf("%s is %v, want %v", name, of[0], of[1])
		}
	}
	if (&Sums{}).Effective() != 0 {
		t.Error("no samples have an effective size")
	}
}

// The half-width equals that of the paper: theorem 2.2 for the mean of n values of variance 4, tuned at 500.
func TestHalfWidth(t *testing.T) {
	const alpha, variance = .05, 4.
	rho2 := (-2*math.Log(alpha) + math.Log(-2*math.Log(alpha)+1)) / TunedUnits
	for _, n := range []float64{1, 50, 500, 1e5} {
		want := math.Sqrt(variance) * math.Sqrt(2*(n*rho2+1)/(n*n*rho2)*math.Log(math.Sqrt(n*rho2+1)/alpha))
		if got := halfWidth(variance/n, variance/TunedUnits, alpha); !near(got, want) {
			t.Errorf("n = %v: %v, want %v", n, got, want)
		}
	}
	narrowest, at := math.Inf(1), 0
	for n := 1; n < 5000; n++ { // relative to the width of an ordinary interval
		if w := halfWidth(1/float64(n), 1./TunedUnits, alpha) * math.Sqrt(float64(n)); w < narrowest {
			narrowest, at = w, n
		}
	}
	if at < 300 || at > 800 {
		t.Errorf("narrowest at %d units", at)
	}
}

// estimateAfter returns the estimate after the given number of decisions by another policy in another world.
func estimateAfter(seed uint64, units int, world bandit, by, accepted acting) *finding.OffPolicy {
	rng := rand.New(rand.NewPCG(seed, 7))
	f := usual().follow(rng, 1000, skilled(.7), accepted)
	for i := range units {
		f.Add(world.decision(rng, by, accepted), int64(1000+i))
	}
	return f.Estimate(1)
}

func halved() bandit {
	w := usual()
	for at := range w.rewards {
		for a := range w.rewards[at] {
			w.rewards[at][a] /= 2
		}
	}
	return w
}

func TestShownIsWhatHasChanged(t *testing.T) {
	for _, c := range []struct {
		name  string
		world bandit
		by    acting
		want  finding.Shown
	}{
		{"neither", usual(), skilled(.7), finding.Undecided},
		{"the policy", usual(), skilled(.34), finding.ShownPolicy},
		{"the world", halved(), skilled(.7), finding.ShownWorld},
		{"both", halved(), skilled(.34), finding.ShownBoth},
	} {
		for _, accepted := range []acting{nil, skilled(.7)} {
			o := estimateAfter(3, 8000, c.world, c.by, accepted)
			if o.Shown != c.want {
				t.Errorf("%s, by %s: %s (%s)\n%+v", c.name, o.Reference, o.Shown, o.Why, o)
			}
			if got, want := o.Actual-(o.World.Mean+o.Policy.Mean), usual().value(skilled(.7)); math.Abs(got-want) > .06 {
				t.Errorf("%s: the baseline earned %v, want about %v", c.name, got, want)
			}
			if o.Low > o.Value || o.Value > o.High {
				t.Errorf("%s: %v outside %v to %v", c.name, o.Value, o.Low, o.High)
			}
		}
	}
}

// Without target_prob, a change of the world that does not change the reference's value looks like a change of the
// policy, but the policy acts as before.
func TestAWorldThatSwapsSituationsIsUndecided(t *testing.T) {
	world := usual()
	world.rewards[0], world.rewards[1] = []float64{.3, .6, .2}, []float64{.5, .2, .3}
	o := estimateAfter(5, 8000, world, skilled(.7), nil)
	if o.Shown == finding.ShownPolicy || o.Shown == finding.ShownBoth {
		t.Errorf("%s: %+v", o.Shown, o)
	}
	if o := estimateAfter(5, 8000, world, skilled(.7), skilled(.7)); o.Shown != finding.ShownWorld {
		t.Errorf("with target_prob: %s: %+v", o.Shown, o)
	}
}

func TestNotEnoughSupport(t *testing.T) {
	greedy := acting{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	dropped := acting{{.5, .5, 0}, {.5, .5, 0}, {.5, .5, 0}}
	for _, c := range []struct {
		name   string
		units  int
		by     acting
		change func(i int, u *ingest.Unit)
		want   string
	}{
		{"too few", 40, skilled(.7), nil, "the effective sample size is"},
		{"no exploration", 2000, greedy, nil, "significantly below 1: it takes actions that the current policy does not take"},
		{"an action is gone", 4000, dropped, nil, "significantly below 1: it takes actions that the current policy does not take"},
		{"half of them without", 2000, skilled(.7), func(i int, u *ingest.Unit) {
			if i%2 == 0 {
				u.Propensity = nil
			}
		}, "only 1000 of 2000"},
		{"probabilities of something else", 4000, skilled(.7), func(_ int, u *ingest.Unit) {
			u.Propensity.Actions[0].Sum *= 2
		}, "significantly above 1: the logged probabilities do not match the actions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, 7))
			f := usual().follow(rng, 1000, skilled(.7), nil)
			for i := range c.units {
				u := usual().decision(rng, c.by, nil)
				if c.change != nil {
					c.change(i, u)
				}
				f.Add(u, int64(1000+i))
			}
			o := f.Estimate(1)
			if o == nil || o.Shown != finding.NoSupport || !strings.Contains(o.Why, c.want) || o.Known() {
				t.Fatalf("got %+v", o)
			}
			for name, x := range map[string]float64{"value": o.Value, "low": o.Low, "self-normalised": o.SelfNormalized, "world": o.World.Mean, "policy": o.Policy.High} {
				if !math.IsNaN(x) {
					t.Errorf("%s is %v", name, x)
				}
			}
		})
	}
}

// Dependent units contain less information.
func TestDependenceWidensTheInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := usual().follow(rng, 500, skilled(.7), nil)
	for i := range 1000 {
		f.Add(usual().decision(rng, skilled(.7), nil), int64(i))
	}
	free, dependent := f.Estimate(1), f.Estimate(4)
	if ratio := (dependent.High - dependent.Low) / (free.High - free.Low); ratio < 1.9 || ratio > 2.1 {
		t.Errorf("the interval is %v times as wide", ratio)
	}
}

func TestNoProbabilitiesNoFollower(t *testing.T) {
	if f := NewFollower([]Observed{{Return: 1}, {Return: 2}}, 2); f != nil {
		t.Errorf("got %+v", f)
	}
}

// An incident begins with the units since its onset that are still kept, in order.
func TestBeginTakesTheUnitsSinceTheOnset(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	f := usual().follow(rng, 300, skilled(.7), nil)
	for i := range int64(450) {
		u := usual().decision(rng, skilled(.7), nil)
		f.Add(u, 300+i)
	}
	f.Begin(720)
	if f.Now.Units != 30 || f.Now.Frequencies.N != 30 || f.Since != 720 {
		t.Errorf("%d units since %d", f.Now.Units, f.Since)
	}
	f.Begin(0)
	if f.Now.Units != keptUnits || f.Since != 550 {
		t.Errorf("%d units since %d", f.Now.Units, f.Since)
	}
	f.Begin(750)
	if f.Now != (Running{}) || f.Since != 750 {
		t.Errorf("%+v since %d", f.Now, f.Since)
	}
}

func BenchmarkAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := usual().follow(rng, 500, skilled(.7), skilled(.7))
	u := usual().decision(rng, skilled(.7), skilled(.7))
	b.ReportAllocs()
	for b.Loop() {
		f.Add(u, 1)
	}
}
