//go:build benchdetection

package bank

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// poolOf returns units of a shop in the form in which its bank reads them.
func (s *shop) poolOf(p *Policy, n int) *battery.Sample {
	units := make([]*ingest.Unit, n)
	for i := range units {
		units[i] = s.unit()
	}
	return battery.NewSample(&p.groups[0].Battery, units, 1)
}

// Policies that show offers, few of which are clicked: all of their tests together, with single decisions and with
// episodes of 20 steps as units.
func TestBenchRarePromise(t *testing.T) {
	for _, n := range []float64{benchN, 10 * benchN} {
		for i, steps := range []int{1, 20} {
			t.Run(fmt.Sprintf("%.0f of %d", n, steps), func(t *testing.T) {
				promiseHead(fmt.Sprintf("Rare outcomes, N = %.0f, units of %d", n, steps), "clicks")
				for k, rate := range []float64{.005, .01, .038, .049, .055, .08, .15, .3} {
					t.Run(fmt.Sprintf("%g", 100*rate), func(*testing.T) {
						promiseRow(fmt.Sprintf("%.1f%%", 100*rate), 500, rarePromise(uint64(3600+10*i+k), rate, steps, n))
					})
				}
			})
		}
	}
}

// rarePromise returns ARL0 in multiples of the budget for many baselines of a shop, sorted.
func rarePromise(seed uint64, rate float64, steps int, n float64) []float64 {
	pool := newShop(seed, 0, rate, steps).poolOf(newShop(seed, 1, rate, steps).frozen(500, n), 2*poolUnits)
	ratios := make([]float64, *baselinesFlag)
	s := newShop(seed, 2, rate, steps)
	rng := newShop(seed, 3, rate, steps).rng
	for b := range ratios {
		ratios[b] = runLength(battery.NewJudge(&s.frozen(500, n).groups[0].Battery, pool.Columns), pool, rng, n) / n
	}
	slices.Sort(ratios)
	return ratios
}

// The delay until a change of a click rate of 3.8 % is found, depending on the number of units between the baseline and
// the change.
func TestBenchRareDelay(t *testing.T) {
	for _, n := range []float64{20_000, 1_000_000} {
		t.Run(fmt.Sprintf("%.0f", n), func(*testing.T) { rareDelays(n) })
	}
}

func rareDelays(n float64) {
	fmt.Printf("\n### Rare outcomes that change, one decision a unit, rate 3.8%%, m = 500, %d baselines\n\n"+
		"| rate becomes | N | units before the change | found within 1,000 | within 5,000 | within 20,000 | median | false alarms before |\n"+
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n", *baselinesFlag)
	const most = 20_000
	for i, rate := range []float64{0, .019, .076} {
		for k, before := range []int{500, 1500, 3500, 7500, 15_500} {
			var took []float64
			discarded := 0
			for b := uint64(0); len(took) < *baselinesFlag; b++ {
				s := newShop(uint64(3700+10*i+k), b, .038, 1)
				p := s.frozen(500, n)
				if _, alarm := s.until(p, before); alarm {
					discarded++
					continue
				}
				s.rate = rate
				units, alarm := s.until(p, most)
				if !alarm {
					units = most + 1
				}
				took = append(took, float64(units))
			}
			fmt.Printf("| %g%% | %.0f | %d | %s | %s | %s | %.0f | %d |\n", 100*rate, n, before, within(took, 1000),
				within(took, 5000), within(took, most), detectors.Quantiles(took, .5)[0], discarded)
		}
	}
}

// Changes of a rare rate right after the baseline, which are found once about 300 rare values are known. A change
// should be found within the number of decisions in which 38 and 200 rare values are expected: 1,000 and about 5,000 at
// 3.8 %. While rare values are counted, there may be as many false alarms, over all tests of the policy, as the budget
// allows in these units.
func TestBenchRareKnown(t *testing.T) {
	for _, n := range []float64{20_000, 1_000_000} {
		t.Run(fmt.Sprintf("%.0f", n), func(t *testing.T) {
			fmt.Printf("\n### Rare outcomes: right behind the baseline of their rate, one decision a unit, N = %.0f, %d baselines\n\n"+
				"| rate | m | decisions until known, median | false alarms until then | allowed | nothing: found within 38 expected | half: found within 200 expected |\n"+
				"| --- | --- | --- | --- | --- | --- | --- |\n", n, *baselinesFlag)
			for i, of := range []struct {
				rate float64
				m    int
			}{{.038, 500}, {.02, 500}, {.01, 1000}, {.003, 4000}, {.055, 500}, {.08, 500}, {.12, 500}, {.15, 500}, {.3, 500}} {
				t.Run(fmt.Sprintf("%g", 100*of.rate), func(t *testing.T) { rareKnown(t, uint64(3800+10*i), of.rate, of.m, n) })
			}
		})
	}
}

func rareKnown(t *testing.T, seed uint64, rate float64, m int, n float64) {
	var decisions, toNothing, toHalf []float64
	alarms, units := 0, 0
	for b := uint64(0); len(decisions) < *baselinesFlag; {
		s, p := rarely(seed, &b, rate, 1, m, n)
		if rarityOf(clicks(p)) == nil {
			continue
		}
		took, alarm := s.untilKnown(p)
		units += took
		if alarm {
			alarms++
			continue
		}
		decisions = append(decisions, float64(m+took))
		for _, after := range []struct {
			rate   float64
			within int
			found  *[]float64
		}{{0, int(38 / rate), &toNothing}, {rate / 2, int(200 / rate), &toHalf}} {
			s, p := s.again(), restored(t, p)
			s.rate = after.rate
			found := math.Inf(1)
			if i, alarm := s.until(p, after.within); alarm {
				found = float64(i)
			}
			*after.found = append(*after.found, found)
		}
	}
	fmt.Printf("| %.1f%% | %d | %.0f | %d | %.1f | %s | %s |\n", 100*rate, m, detectors.Quantiles(decisions, .5)[0], alarms,
		float64(units)/n, within(toNothing, math.MaxFloat64), within(toHalf, math.MaxFloat64))
}

// within returns the share of numbers that are at most most, with its standard error.
func within(all []float64, most float64) string {
	found := 0.
	for _, x := range all {
		if x <= most {
			found++
		}
	}
	share := found / float64(len(all))
	return fmt.Sprintf("%.2f ± %.2f", share, math.Sqrt(share*(1-share)/float64(len(all))))
}

// An upper bound for any test. The baseline has x clicks in 500 units, and a number of further units arrive at the rate
// p before it halves. A test that keeps its budget for nine of ten baselines keeps it for every rate that is at least
// the lower 90 % limit of x. It therefore finds no more changes than the most powerful test (Neyman & Pearson) of one
// such constant rate against p followed by p/2. That test knows p and the unit of the change, and its false alarm rate
// is that of one walk.
func TestBenchRareBound(*testing.T) {
	const p, m, within = .038, 500, 5000
	fmt.Print("\n### Half of a rare rate, 3.8%, m = 500: the most that any test could find within 5,000 decisions\n\n" +
		"| decisions before the change | one false alarm in 825,000 | in 275,000 |\n| --- | --- | --- |\n")
	for _, before := range []int{500, 1500, 3500, 7500, 15_500} {
		fmt.Printf("| %d |", before)
		for _, n := range []float64{825_000, 275_000} {
			found, all := 0.0, 0.0
			power := map[int]float64{} // by the number of steps of 2 % between a rate and p
			for x := rarity.LeastRare; float64(x) <= rarity.MostShare*m; x++ {
				low := mathext.InvRegIncBeta(float64(x), float64(m-x+1), .1)
				least := 1.0
				for step := int(math.Ceil(math.Log(low/p) / math.Log(1.02))); step <= 20; step++ {
					if _, known := power[step]; !known {
						power[step] = mostPower(p*math.Pow(1.02, float64(step)), p, before, within, within/n)
					}
					least = min(least, power[step])
				}
				weight := math.Exp(logBinomial(x, m, p))
				all += weight
				found += weight * least
			}
			fmt.Printf(" %.2f |", found/all)
		}
		fmt.Println()
	}
}

// logBinomial returns the logarithm of the probability of k events in n units at the rate p.
func logBinomial(k, n int, p float64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
}

// mostPower returns the power of the most powerful test at the given level: of a constant rate against p in the units
// before a change and p/2 in the units after it.
func mostPower(rate, p float64, before, after int, level float64) float64 {
	type outcome struct{ ratio, null, changed float64 }
	var outcomes []outcome
	span := func(n int, p float64) (from, to int) { // outside this range, the changed law has no weight
		mean := float64(n) * p
		return max(0, int(mean-8*math.Sqrt(mean))), min(n, int(mean+8*math.Sqrt(mean))+1)
	}
	from, to := span(before, p)
	low, high := span(after, p/2)
	for i := from; i <= to; i++ {
		for k := low; k <= high; k++ {
			null := logBinomial(i, before, rate) + logBinomial(k, after, rate)
			changed := logBinomial(i, before, p) + logBinomial(k, after, p/2)
			outcomes = append(outcomes, outcome{changed - null, math.Exp(null), math.Exp(changed)})
		}
	}
	slices.SortFunc(outcomes, func(a, b outcome) int { return cmp.Compare(b.ratio, a.ratio) })
	alarms, power := 0.0, 0.0
	for _, o := range outcomes {
		if alarms += o.null; alarms > level {
			break
		}
		power += o.changed
	}
	return power
}
