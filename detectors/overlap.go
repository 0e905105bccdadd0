package detectors

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/kernel"
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
// rates, because branches see the same units and often raise alarms together; at least 1. It runs the walks on whole
// units drawn from the baseline, with thresholds lowered so that alarms are frequent enough to be counted, and
// subtracts one standard error. The result depends only on the seed, not on the number of cores.
func Overlap(samples []BaselineSample, units int, seed uint64, cores int) float64 {
	rate := 0.0
	for i := range samples {
		rate += armedRate(samples[i].walks().Branches)
	}
	if rate == 0 {
		return 1
	}
	at := max(rate, 1./overlapUnits)
	time := newCourse(samples, units, math.Log(at/rate)).meanTimeToAlarm(at, seed, cores)
	ratio := time * at / (1 + 1/math.Sqrt(overlapAlarms))
	kept := max(0, 1-overlapDecay*math.Log10(at/rate))
	return max(1, 1+(ratio-1)*kept)
}

// overlapParts is the number of generators that share the work, so that the result does not depend on the number of
// cores.
const overlapParts = 4

// course holds the moves of all walks at each unit of a baseline, without allowance and dependence factor.
type course struct {
	units int
	packs []pack
}

// newCourse prepares the armed branches of the samples with thresholds lowered by the given number of nats. Of
// branches that move in the same way, such as those of the return and of the reward of episodes of one step, it
// keeps only one.
func newCourse(samples []BaselineSample, units int, lowered float64) *course {
	var all [][]int64
	for i := range samples {
		for _, moves := range samples[i].moves(lowered) {
			if !slices.ContainsFunc(all, func(have []int64) bool { return slices.Equal(have, moves) }) {
				all = append(all, moves)
			}
		}
	}
	c := &course{units: units}
	for some := range slices.Chunk(all, len(scores{})) {
		c.packs = append(c.packs, newPack(some, units))
	}
	return c
}

// leastLowered is the least height, in nats, to which a threshold is lowered.
const leastLowered = .5

// moves returns, for each armed branch, by how much of its threshold each unit moves its walk. The thresholds are
// lowered by the given number of nats.
func (s *BaselineSample) moves(lowered float64) (all [][]int64) {
	increment := s.increments()
	for i, b := range s.walks().Branches {
		if b.Height == 0 {
			continue
		}
		threshold, moves := max(leastLowered, b.Height-lowered), make([]int64, len(s.Values))
		for unit, x := range s.Values {
			if !math.IsNaN(x) {
				moves[unit] = toScore((increment(i, unit) - b.C) / threshold)
			}
		}
		all = append(all, moves)
	}
	return all
}

// increments returns a function for the increment of a branch, before normalization, at a unit that has a value.
func (s *BaselineSample) increments() func(branch, unit int) float64 {
	if s.Rank == nil {
		return func(branch, unit int) float64 {
			stratum := -1
			if s.Strata != nil {
				stratum = s.Strata[unit]
			}
			return s.Frequency.formsIn(stratum)[branch].increment(s.Values[unit], s.Steps[unit], s.Frequency.stratum(stratum).Offsets[branch])
		}
	}
	own := s.Rank.ranks.ownAll(s.Values)
	return func(branch, unit int) float64 { return s.Rank.Branches[branch].Branch().increment(own[unit]) }
}

// The scores of walks are fixed-point numbers, with which processors are faster than with floats. alarmScore is a
// score of 1. Moves are clipped to +-mostMoved, which has the same effect as a larger move and cannot overflow.
const (
	alarmScore = 1 << 50
	mostMoved  = 1 << 10
)

func toScore(share float64) int64 {
	return int64(math.Round(max(-mostMoved, min(mostMoved, share)) * alarmScore))
}

type (
	scores = kernel.Scores
	pack   []scores // moves of eight walks by unit
)

// newPack returns the moves of up to eight walks; missing walks do not move.
func newPack(moves [][]int64, units int) pack {
	p := make(pack, units)
	for walk, by := range moves {
		for unit, move := range by {
			p[unit][walk] = move
		}
	}
	return p
}

// pass adds the moves of some units to the scores, and reports whether one has reached its threshold on the way.
func (p pack) pass(units []int32, s *scores) (reached bool) {
	return kernel.Passed(p, units, s) >= alarmScore
}

// firstAlarm returns the number of units up to the first at which a score reaches its threshold.
func (p pack) firstAlarm(units []int32, s scores) int {
	n := 0
	for reached := false; !reached && n < len(units); n++ {
		reached = p.pass(units[n:n+1], &s)
	}
	return n
}

// walkers are the scores of all walks of a course.
type walkers struct {
	course       *course
	scores, next []scores // by pack; next is scratch
}

// pass moves the walks over units until one of them reaches its threshold, and then sets all of them back to 0. It
// returns the number of units that they have passed.
func (w *walkers) pass(units []int32) (n int, alarm bool) {
	n = len(units)
	for i, p := range w.course.packs {
		if w.next[i] = w.scores[i]; p.pass(units[:n], &w.next[i]) {
			n, alarm = p.firstAlarm(units[:n], w.scores[i]), true
		}
	}
	w.scores, w.next = w.next, w.scores
	if alarm {
		clear(w.scores)
	}
	return n, alarm
}

// overlapStride is the number of units that eight walks pass before the next eight follow.
const overlapStride = 64

// alarms passes units drawn from the baseline until the walks have raised the wanted number of alarms, or until
// most units have passed. It returns both numbers.
func (c *course) alarms(wanted, most int, rng *rand.Rand) (units, alarms int) {
	w := walkers{course: c, scores: make([]scores, len(c.packs)), next: make([]scores, len(c.packs))}
	var stride [overlapStride]int32
	for alarms < wanted && units < most {
		drawn := stride[:min(overlapStride, most-units)]
		for i := range drawn {
			drawn[i] = int32(rng.IntN(c.units))
		}
		for len(drawn) > 0 && alarms < wanted {
			n, alarm := w.pass(drawn)
			if alarm {
				alarms++
				runtime.Gosched() // give way to goroutines that read telemetry
			}
			units += n
			drawn = drawn[n:]
		}
	}
	return units, alarms
}

// meanTimeToAlarm returns the mean number of units between alarms. The time is bounded: it does not wait for alarms
// that are much rarer than the given rate.
func (c *course) meanTimeToAlarm(rate float64, seed uint64, cores int) float64 {
	var total, alarms [overlapParts]int
	most := int(5 * overlapAlarms / overlapParts / rate)
	onCores(cores, func(first int) {
		for part := first; part < overlapParts; part += cores {
			total[part], alarms[part] = c.alarms(overlapAlarms/overlapParts, most, rand.New(rand.NewPCG(seed, uint64(part))))
		}
	})
	time, count := 0, 0
	for part := range total {
		time += total[part]
		count += alarms[part]
	}
	return float64(time) / float64(max(1, count))
}
