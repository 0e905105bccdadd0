package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// The overlap of branches is measured at a rate of one false alarm in overlapUnits units, over overlapAlarms of them.
// Its excess over 1 falls by overlapDecay for each factor of ten by which the wanted rate is lower; this decay was
// measured.
const (
	overlapUnits  = 500
	overlapAlarms = 120
	overlapDecay  = .25
)

// Overlap returns the factor by which the false alarms of all armed branches together are rarer than the sum of their
// rates says, because branches see the same units and alarm together; at least 1. It runs the walks on whole units
// drawn from the baseline, with thresholds lowered so that alarms are frequent enough to be counted, and subtracts one
// standard error. The result depends only on the seed.
func Overlap(samples []BaselineSample, units int, seed uint64) float64 {
	walked := make([]walked, len(samples))
	rate := 0.0
	for i := range samples {
		walked[i] = newWalked(&samples[i])
		rate += armedRate(walked[i].walks().Branches)
	}
	if rate == 0 {
		return 1
	}
	at := max(rate, 1./overlapUnits)
	time := meanTimeToAlarm(walked, units, math.Log(at/rate), at, seed)
	ratio := time * at / (1 + 1/math.Sqrt(overlapAlarms))
	kept := max(0, 1-overlapDecay*math.Log10(at/rate))
	return max(1, 1+(ratio-1)*kept)
}

// walked is a sample whose test runs on its own units.
type walked struct {
	BaselineSample
	own []rank // by unit, of a ranked sample
}

func newWalked(s *BaselineSample) walked {
	w := walked{BaselineSample: *s}
	if s.Rank == nil {
		return w
	}
	w.own = make([]rank, len(s.Values))
	for i, x := range s.Values {
		if !math.IsNaN(x) {
			w.own[i] = s.Rank.ranks.own(x)
		}
	}
	return w
}

func (w *walked) walks() *Walks {
	if w.Rank != nil {
		return &w.Rank.Walks
	}
	return &w.Frequency.Walks
}

// lowered returns the sample with a new test, at zero, without allowance and dependence factor, with thresholds
// lowered by so many nats.
func (w walked) lowered(by float64) walked {
	if w.Rank != nil {
		w.Rank = &RankTest{Walks: w.Rank.Walks, ranks: w.Rank.ranks}
	} else {
		test := *w.Frequency
		w.Frequency = &test
	}
	walks := w.walks()
	walks.Branches = slices.Clone(walks.Branches)
	walks.Factor = 1
	for i := range walks.Branches {
		b := &walks.Branches[i]
		b.Kappa, b.Walk = 0, 0
		if b.Height > 0 {
			b.Height = max(.5, b.Height-by)
		}
	}
	walks.prepare()
	return w
}

// observe runs the test on a unit of the baseline, and reports whether a walk has reached its threshold.
func (w *walked) observe(unit int) (alarm bool) {
	switch x := w.Values[unit]; {
	case math.IsNaN(x):
		return false
	case w.Rank != nil:
		return w.Rank.observe(w.own[unit], 0, false)
	default:
		return w.Frequency.Observe(x, w.Steps[unit], 0, false)
	}
}

// overlapParts is the number of generators that share the work, so that the result does not depend on the number of
// cores.
const overlapParts = 4

// meanTimeToAlarm returns the mean number of units between alarms with thresholds lowered by so many nats. The time is
// bounded: it does not wait for alarms that are much rarer than the given rate.
func meanTimeToAlarm(samples []walked, units int, lowered, rate float64, seed uint64) float64 {
	var total, alarms [overlapParts]int
	var wg sync.WaitGroup
	for part := range overlapParts {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(part)))
			own := make([]walked, len(samples))
			for i := range own {
				own[i] = samples[i].lowered(lowered)
			}
			most := int(5 * overlapAlarms / overlapParts / rate)
			for alarms[part] < overlapAlarms/overlapParts && total[part] < most {
				unit := rng.IntN(units)
				total[part]++
				if observeAll(own, unit) {
					alarms[part]++
					for i := range own {
						own[i].walks().Reset()
					}
				}
			}
		})
	}
	wg.Wait()
	time, count := 0, 0
	for part := range total {
		time += total[part]
		count += alarms[part]
	}
	return float64(time) / float64(max(1, count))
}

func observeAll(samples []walked, unit int) (alarm bool) {
	for i := range samples {
		alarm = samples[i].observe(unit) || alarm
	}
	return alarm
}
