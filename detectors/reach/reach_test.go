package reach_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/detectors/reach"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

const (
	baselineUnits = 500 // if the test does not specify the number
	runs          = 400
	budget        = 20_000 // units between false alarms, shared by sharing branches
	sharing       = 60
)

// law draws the values of units of one quantity; the second result is a share of steps.
type law struct {
	name  string
	steps float64 // 0 for ranked values
	draw  func(*rand.Rand) float64
	step  float64 // between two values of a distribution of whole numbers: shifts between the same two steps change ranks alike
	share float64 // share of units that have a value; 0 means all
	// In smaller baselines with a usual value, walks often restart at 0 before they find the change, so that
	// changes are found that are not claimed.
	least int
}

// units returns the share of units that have a value.
func (l law) units() float64 {
	if l.share == 0 {
		return 1
	}
	return l.share
}

// purchase returns the amount of a purchase.
func purchase(rng *rand.Rand) float64 { return 20 * math.Exp(.6*rng.NormFloat64()) }

// sometimes returns the amount of a purchase, or 0 without one.
func sometimes(share float64) func(*rand.Rand) float64 {
	return func(rng *rand.Rand) float64 {
		if rng.Float64() > share {
			return 0
		}
		return purchase(rng)
	}
}

// hits returns how often an event of probability p happens in steps steps.
func hits(rng *rand.Rand, steps, p float64) (n float64) {
	for range int(steps) {
		if rng.Float64() < p {
			n++
		}
	}
	return n
}

var laws = []law{
	{name: "normal", draw: (*rand.Rand).NormFloat64},
	{name: "exponential", draw: (*rand.Rand).ExpFloat64},
	{name: "whole numbers", draw: func(rng *rand.Rand) float64 { return math.Round(3 * rng.NormFloat64()) }, step: 1},
	{name: "a tenth of single steps", steps: 1, draw: func(rng *rand.Rand) float64 { return hits(rng, 1, .1) }},
	{name: "a tenth of twenty steps", steps: 20, draw: func(rng *rand.Rand) float64 { return hits(rng, 20, .1) / 20 }},
	{name: "purchases in most units", draw: sometimes(.6), least: 500},
	{name: "purchases in a fifth", draw: sometimes(.2), least: 500},
	{name: "amounts of purchases in a half", draw: purchase, share: .5},
	{name: "amounts of purchases in a tenth", draw: purchase, share: .1, least: 500},
}

// allowances are typical values of C, by the size of the baseline.
var allowances = map[int]float64{100: 2.1, 250: 2.1, 500: 1.3, 1000: 1, 2000: .75, 5000: .75}

// frozen returns an armed quantity on a baseline of the given number of units of a law, and its readings.
func (l law) frozen(rng *rand.Rand, units int) (*stream.Quantity, []stream.Reading) {
	n := int(math.Round(l.units() * float64(units)))
	values, events, steps := make([]float64, n), make([]float64, n), make([]float64, n)
	readings := make([]stream.Reading, n)
	for i := range values {
		values[i] = l.draw(rng)
		events[i], steps[i] = math.Round(values[i]*l.steps), l.steps
		readings[i] = stream.Reading{X: values[i], Steps: l.steps}
	}
	moments := stream.MomentsOf(values)
	q := &stream.Quantity{Ranks: detectors.NewRanks(values), SD: moments.SD()}
	if l.steps == 0 {
		q.Tests = []stream.TestOfKind{{Test: stream.NewRankTest(detectors.NewRankTest(values, q.Ranks, 1))}}
	} else {
		q.Tests = []stream.TestOfKind{{Test: stream.NewFrequencyTest(detectors.NewFrequencyTest(events, steps, 1))}}
	}
	q.Walks().Allow(allowances[units])
	q.Walks().Arm(1. / budget / sharing)
	return q, readings
}

// found returns the share of the runs that find a change within the given number of units, each after unchanged
// units.
func (l law) found(rng *rand.Rand, q *stream.Quantity, baseline []stream.Reading, change func(stream.Reading) stream.Reading, within int) float64 {
	finds := func() bool {
		test := q.Again()
		for range 200 {
			test.Test(baseline[rng.IntN(len(baseline))], 0, false)
		}
		for range within {
			if l.share > 0 && rng.Float64() > l.share {
				continue
			}
			if test.Test(change(baseline[rng.IntN(len(baseline))]), 0, false); test.Reached() {
				return true
			}
		}
		return false
	}
	n := 0
	for range runs {
		if finds() {
			n++
		}
	}
	return float64(n) / runs
}

// A change of the claimed size is found as often as claimed, in both directions, and much smaller ones are not: the
// claim is not too modest.
func TestSimChangesWithinReachAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, units := range []int{100, 500, 2000} {
		rng := rand.New(rand.NewPCG(7, 11))
		for _, l := range laws {
			if units < l.least {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d units", l.name, units), func(t *testing.T) { l.testReach(t, rng, units) })
		}
	}
}

func (l law) testReach(t *testing.T, rng *rand.Rand, units int) {
	least := finding.ReachProbability - 3*math.Sqrt(finding.ReachProbability*(1-finding.ReachProbability)/runs)
	q, baseline := l.frozen(rng, units)
	all := reach.Of(q, baseline, l.units())
	if len(all) != 7 {
		t.Fatalf("%v, want seven numbers of units", all)
	}
	smallest := math.Inf(1)
	for _, r := range all {
		worst := func(size float64) float64 {
			if r.OfRate {
				return l.found(rng, q, baseline, func(x stream.Reading) stream.Reading {
					x.X = hits(rng, math.Round(x.X*x.Steps), 1-size) / x.Steps
					return x
				}, r.Units)
			}
			shifted := func(by float64) float64 {
				return l.found(rng, q, baseline, func(x stream.Reading) stream.Reading {
					if !r.Others || x.X != 0 {
						x.X += by * q.SD
					}
					return x
				}, r.Units)
			}
			return min(shifted(size), shifted(-size))
		}
		if math.IsNaN(r.Size) {
			most := 4.0
			if r.OfRate {
				most = 1
			}
			share := worst(most)
			t.Logf("nothing within %d units: the largest change is found %.3f", r.Units, share)
			if share >= finding.ReachProbability {
				t.Errorf("a change of %.0f is found within %d units in %.3f of the runs: the claim is too modest", most, r.Units, share)
			}
			continue
		}
		if r.Size > smallest {
			t.Errorf("%.3f is found within %d units, but %.3f within fewer", r.Size, r.Units, smallest)
		}
		smallest = r.Size
		smaller := min(.7*r.Size, r.Size-1.5*l.step/q.SD)
		whole, less := worst(r.Size), worst(smaller)
		t.Logf("%.2f within %d units: found %.3f, at %.2f of it %.3f", r.Size, r.Units, whole, smaller/r.Size, less)
		if whole < least {
			t.Errorf("a change of %.2f is found within %d units in %.3f of the runs, want %.3f", r.Size, r.Units, whole, least)
		}
		if less >= finding.ReachProbability {
			t.Errorf("%.2f of %.2f is found within %d units in %.3f of the runs: the claim is too modest", smaller/r.Size, r.Size, r.Units, less)
		}
	}
}

// Rare values: what the baseline finds, and from how many units a fall to half the rate is found. After that number
// of units, the limits of the walks are as tight as the units permit.
func TestSimChangesOfRareValuesWithinReachAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	rng := rand.New(rand.NewPCG(7, 13))
	least := finding.ReachProbability - 3*math.Sqrt(finding.ReachProbability*(1-finding.ReachProbability)/runs)
	for _, novel := range []int{8, 19, 24} {
		for _, n := range []float64{budget, 1_000_000} {
			values := make([]float64, baselineUnits)
			for i := range novel {
				values[i] = 1
			}
			rare := rarity.New(detectors.NewRanks(values), 1)
			rare.Arm(1 / n / sharing)
			q := &stream.Quantity{Tests: []stream.TestOfKind{{Test: &stream.RarityTest{Test: rare}}}}
			rate := float64(novel) / baselineUnits
			for _, r := range reach.Of(q, nil, 1) {
				if math.IsNaN(r.Size) {
					t.Logf("%d rare values, N = %.0f: nothing within %d units", novel, n, r.Units)
					continue
				}
				before := max(0, int(r.Known)-baselineUnits)
				found := func(left float64) (n int) {
					for range runs {
						if _, at := fall(*rare, rng, rate, left*rate, before, r.Units); at {
							n++
						}
					}
					return n
				}
				whole, less := float64(found(1-r.Size))/runs, float64(found(1-.7*r.Size))/runs
				t.Logf("%d rare values, N = %.0f: %.2f within %d units, known from %d: found %.3f, at .7 of it %.3f",
					novel, n, r.Size, r.Units, r.Known, whole, less)
				if whole < least {
					t.Errorf("found in %.3f of the runs, want %.3f", whole, least)
				}
				if less >= finding.ReachProbability {
					t.Errorf(".7 of %.2f is found in %.3f of the runs: the claim is too modest", r.Size, less)
				}
			}
		}
	}
}

// fall returns the unit at which a test finds that a rate has changed, after before units at the first rate.
func fall(test rarity.Test, rng *rand.Rand, rate, after float64, before, within int) (at int, found bool) {
	for i := range before {
		test.Observe(hits(rng, 1, rate), int64(i), false)
	}
	for i := range within {
		if test.Observe(hits(rng, 1, after), int64(before+i), false); test.Reached() {
			return i, true
		}
	}
	return 0, false
}

// Zeros stay where they are, because a decision without a purchase has no amount. A return at its highest value falls
// like the others.
func TestOnlyZerosStay(t *testing.T) {
	capped := law{name: "most returns at their highest", draw: func(rng *rand.Rand) float64 {
		return min(500, math.Floor(450+100*rng.Float64()))
	}}
	for _, l := range []law{capped, {name: "purchases", draw: sometimes(.5)}} {
		q, baseline := l.frozen(rand.New(rand.NewPCG(31, 1)), 500)
		reached := reachOf(q, baseline)
		if zeros := l.name == "purchases"; reached[2].Others != zeros {
			t.Errorf("%s: %+v", l.name, reached[2])
		}
		if l.name == capped.name && !(reached[2].Size < 1) {
			t.Errorf("%s: a fall of %g standard deviations within %d", l.name, reached[2].Size, reached[2].Units)
		}
	}
}

// normal returns an armed rank test on the quantiles of the normal distribution, and its readings.
func normal(units int, allowance, rate float64) (*stream.Quantity, []stream.Reading) {
	values, readings := make([]float64, units), make([]stream.Reading, units)
	for i := range values {
		values[i] = distuv.UnitNormal.Quantile((float64(i) + .5) / float64(units))
		readings[i].X = values[i]
	}
	q := &stream.Quantity{Ranks: detectors.NewRanks(values), SD: 1}
	q.Tests = []stream.TestOfKind{{Test: stream.NewRankTest(detectors.NewRankTest(values, q.Ranks, 1))}}
	q.Walks().Allow(allowance)
	q.Walks().Arm(rate)
	return q, readings
}

// reachOf returns the reach of a quantity that every unit has.
func reachOf(q *stream.Quantity, readings []stream.Reading) []finding.Reach {
	return reach.Of(q, readings, 1)
}

// grouped formats a whole number as in the docs.
func grouped(n float64) string {
	s := fmt.Sprintf("%.0f", n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The table of docs/detection-measured.md: the smallest shift of a normally distributed quantity that is found, by
// the size of the baseline and the budget, and what it would be without the parts that limit it. -v prints more
// rows than the page.
func TestTableOfReach(t *testing.T) {
	docs, err := os.ReadFile("../../docs/detection-measured.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string, units int, allowance, rate float64) ([]finding.Reach, string) {
		all := reachOf(normal(units, allowance, rate))
		line := "| " + name + " |"
		for _, r := range all {
			line += strings.ReplaceAll(fmt.Sprintf(" %.2f |", r.Size), "NaN", "-")
		}
		t.Log(line)
		return all, line
	}
	for _, units := range []int{100, 500, 2000} {
		for _, n := range []float64{20_000, 1_000_000} {
			_, line := row(grouped(float64(units))+" | "+grouped(n), units, allowances[units], 1/n/sharing)
			if !bytes.Contains(docs, []byte(line+"\n")) {
				t.Errorf("docs/detection-measured.md has no line %s", line)
			}
		}
	}
	for _, amounts := range []struct {
		units int
		share float64
	}{{500, .4}, {5000, .1}, {5000, .04}} {
		q, readings := normal(int(amounts.share*float64(amounts.units)), allowances[amounts.units], 1./budget/sharing)
		line := fmt.Sprintf("| %s, amounts in %.0f%% | %s |", grouped(float64(amounts.units)), 100*amounts.share, grouped(budget))
		for _, r := range reach.Of(q, readings, amounts.share) {
			line += strings.ReplaceAll(fmt.Sprintf(" %.2f |", r.Size), "NaN", "-")
		}
		t.Log(line)
		if !bytes.Contains(docs, []byte(line+"\n")) {
			t.Errorf("docs/detection-measured.md has no line %s", line)
		}
	}
	now, _ := row("as it is", 500, 1.3, 1./budget/sharing)
	known, _ := row("without the allowance for the baseline", 500, 0, 1./budget/sharing)
	larger, _ := row("with ten times the budget", 500, 1.3, 10./budget/sharing)
	spent, _ := row("with all of the overlap, 0.64", 500, 1.3, 1./.64/budget/sharing)
	alone, _ := row("with the whole budget for one branch", 500, 1.3, 1./budget)
	both, _ := row("without the allowance, with the whole budget for one branch", 500, 0, 1./budget)
	for i := range now {
		if spent[i].Size > now[i].Size || spent[i].Size < larger[i].Size || both[i].Size >= min(known[i].Size, alone[i].Size) {
			t.Errorf("%v: with the overlap spent %v, ten times the budget %v; without both %v", now[i], spent[i], larger[i], both[i])
		}
		if known[i].Size >= now[i].Size || larger[i].Size > now[i].Size || alone[i].Size >= now[i].Size {
			t.Errorf("%v is not the largest: %v %v %v", now[i], known[i], larger[i], alone[i])
		}
	}
}

// The reach is computed once, when the baseline is frozen.
func BenchmarkReach(b *testing.B) {
	for _, units := range []int{100, 500, 2000} {
		for _, l := range laws {
			if units < l.least {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", l.name, units), func(b *testing.B) {
				q, baseline := l.frozen(rand.New(rand.NewPCG(7, 17)), units)
				for b.Loop() {
					reach.Of(q, baseline, l.units())
				}
			})
		}
	}
}

// Quantities with the same values and branches are measured once and have the reach that each has separately.
// Another threshold has another reach.
func TestMeasureOfEqualQuantities(t *testing.T) {
	var streams []*stream.Stream
	for _, of := range []struct {
		signal, quantity string
		seed             uint64
		lower            float64
	}{{"return", "return", 1, 0}, {"reward", "mean", 1, 0}, {"outcome.margin", "mean", 1, 1}, {"outcome.sales", "mean", 2, 0}} {
		q, readings := laws[0].frozen(rand.New(rand.NewPCG(7, of.seed)), 500)
		q.Walks().Lower(of.lower)
		q.Name = of.quantity
		for i, r := range readings {
			q.Warm = append(q.Warm, stream.Observed{Unit: int32(i), X: r.X})
		}
		streams = append(streams, &stream.Stream{Signal: of.signal, Quantities: []*stream.Quantity{q}})
	}
	reach.Measure(streams, 500, stream.Ends{})
	for i, s := range streams {
		q := s.Quantities[0]
		if want := reach.Of(q, q.WarmReadings(stream.Ends{}), 1); len(want) == 0 || fmt.Sprint(q.Reach) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", s.Signal, q.Reach, want)
		}
		if same := fmt.Sprint(q.Reach) == fmt.Sprint(streams[0].Quantities[0].Reach); same != (i < 2) {
			t.Errorf("%s: as that of the return: %t", s.Signal, same)
		}
	}
}
