// Package rarity judges how often a quantity differs from its most common value.
package rarity

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// The limits of a Test are recomputed doublings times, each time from twice as many units, and up to extraDoublings
// times more while the rate is not known.
const (
	doublings      = 5
	extraDoublings = 3
)

// KnownRare is the number of independent rare values from which their rate counts as known: a fall to half of it is
// then found in about 99 of 100 cases, at a budget of one false alarm in 20,000 units, by the time at which 200
// rare values would be expected. This holds for every rate (docs/detection-measured.md).
const KnownRare = 300

// nearlyKnown is the share of KnownRare from which a doubling waits until the rate is known. Otherwise it would be
// spent right before that.
const nearlyKnown = .75

// riskOf returns the level of each limit after the given number of doublings; 0 is for the limits of the baseline.
// Both limits of the baseline together hold for nine baselines in ten. The error of a later limit varies with the
// units after the baseline, so the mean false alarm rate of most baselines tolerates more of it.
func riskOf(doublings int) float64 {
	risks := [...]float64{.05, .1, .05, .03}
	return risks[min(doublings, len(risks)-1)]
}

// leastApart is the largest ratio of a limit and a tested changed rate, the smaller over the larger. Distinguishing
// a closer rate from the limit would take longer than detecting any change of interest.
const leastApart = .7

// MostShare is the largest share of the rarer of two values in a baseline for which a Test, rather than a frequency
// test, judges whether it falls. Half of a rate p lies sqrt(p/(1-p))/2 standard deviations below it. The smallest
// shift that a frequency test is made for is .4. With the allowance for a baseline of 500 units, it finds a fall to
// half of p = 1/3 on average when 130 rare values would be expected. At .3 it takes 180, and below .24 its sum does
// not rise at all.
const MostShare = 1. / 3

// mostRate is the largest rate that a rise is tested for.
const mostRate = .99

// LeastRare is the least number of rare values in a baseline: fewer do not show whether they cluster.
const LeastRare = 5

// maxHeight bounds the search for a threshold, in lattice steps.
const maxHeight = 1 << 16

// Test tests whether the values of a quantity that are not its mode have become rarer or commoner:
// whether their rate has fallen to zero, has halved or has doubled. Each alternative is a Bernoulli CUSUM on a lattice
// (Reynolds & Stoumbos 1999), so that its false alarm rate at a given rate is exact.
//
// The rate is unknown. The walks for a fall are armed at its exact lower limit, the one for a rise at its exact
// upper limit (Clopper & Pearson 1934). This keeps the false alarms within the budget for every rate between the
// limits. The walks test for half, or double, the observed rate. The first limits are those of the baseline. They
// are recomputed from all units without an alarm so far, each time these have doubled and once the rate is known,
// and only become tighter. So later units cannot loosen what the baseline showed, and units whose rate lies outside
// the limits do not count. Exported fields are saved.
type Test struct {
	Mode   float64
	Factor float64 // dependence factor of the baseline
	Spend  float64 // false alarms per unit that each walk may spend

	Low, High    float64 // limits of the rate
	Units, Novel int     // that the limits are computed from
	More         int     // units since then
	MoreNovel    int
	Doublings    int // remaining doublings; below 0 if the rate took more to become known
	Side         int // -1 or 1 if only a fall or a rise of the rate is judged; 0 if both are

	Walks [3]Walk
}

// Walk is the walk of one alternative: a rare value moves it by Rare steps, another one by Usual. One of the two
// is 1 or -1. The walk does not fall below 0.
type Walk struct {
	detectors.Branch
	Rare, Usual int
	Height      int // threshold in steps, 0 if it is not armed
	Walk        int
	Zeroed      bool  // whether it has been at 0 since Hold
	StartedAt   int64 // ordinal of the unit at which it last left 0
}

// New prepares the test on a sample with a dependence factor. It returns nil if the sample contains too few rare
// values, or if they depend on each other too much.
func New(r *detectors.Ranks, factor float64) *Test {
	mode, n := r.Mode()
	rare := r.Len() - n
	if rare < LeastRare || factor > detectors.MaxFactor {
		return nil
	}
	t := &Test{Mode: mode, Factor: factor, High: 1, Units: r.Len(), Novel: rare, Doublings: doublings}
	for i, change := range [...]float64{-1, -.5, 1} {
		t.Walks[i] = Walk{Branch: detectors.Branch{Family: detectors.Rarity, Param: change}, Zeroed: true}
	}
	t.limit()
	return t
}

// limit narrows the limits to those computed from the units that count.
func (t *Test) limit() {
	low, high := t.limits()
	t.Low, t.High = max(t.Low, low), min(t.High, high)
}

// limits returns the limits computed from only the units that count. Dependent units count as fewer independent
// ones.
func (t *Test) limits() (low, high float64) {
	risk := riskOf(doublings - t.Doublings)
	rare, usual := float64(t.Novel)/t.Factor, float64(t.Units-t.Novel)/t.Factor
	return mathext.InvRegIncBeta(rare, usual+1, risk), mathext.InvRegIncBeta(rare+1, usual, 1-risk)
}

// strays reports whether the given rate lies outside the limits computed from the units that count.
func (t *Test) strays(rare, units int) bool {
	low, high := t.limits()
	share := float64(rare) / float64(units)
	return share < low || share > high
}

// Arm sets the smallest thresholds at which each walk raises false alarms at most at the given rate per unit, for
// every rate of rare values within the limits. If there is no such threshold, the walk cannot raise an alarm until
// the limits have become tighter. Each walk keeps its score.
func (t *Test) Arm(rate float64) {
	t.Spend = rate
	for i := range t.Walks {
		w := &t.Walks[i]
		if !t.Judges(w.Param) {
			continue
		}
		score := w.Score()
		p := t.Low
		if w.Param > 0 {
			p = t.High
		}
		w.tune(p, float64(t.Novel)/float64(t.Units))
		w.Height = int(math.Ceil(t.Factor * float64(w.least(p, rate))))
		w.Walk = int(score * float64(w.Height))
		w.Zeroed = w.Zeroed || w.Walk == 0
	}
}

// Judges reports whether a change of the rate by the factor 1 + param is judged.
func (t *Test) Judges(param float64) bool { return float64(t.Side)*param >= 0 }

// tune sets the steps to the log likelihood ratio of a changed rate to the limit p, in units of the smaller step. The
// changed rate is seen times 1 + Param.
func (w *Walk) tune(p, seen float64) {
	changed := seen * (1 + w.Param)
	if w.Param > 0 {
		changed = min(max(changed, p/leastApart), mostRate)
	} else {
		changed = min(changed, p*leastApart)
	}
	usual := math.Log1p(-changed) - math.Log1p(-p)
	w.Rare, w.Usual = -maxHeight, 1
	if changed > 0 {
		steps := max(1, math.Round(math.Abs(math.Log(changed/p)/usual)))
		w.Rare = int(math.Copysign(min(steps, maxHeight), w.Param))
		w.Usual = int(math.Copysign(1, -w.Param))
	}
}

// least returns the smallest height above one rare value that the walk reaches at most at the given rate per unit, if
// rare values occur at the rate p; 0 if there is none.
func (w *Walk) least(p, rate float64) int {
	if w.Param < 0 {
		return leastFall(p, -w.Rare, rate)
	}
	if p >= leastApart {
		return 0 // no such changed rate exists
	}
	return leastRise(p, w.Rare, rate)
}

// FalseAlarmRate returns the sum of the false alarm rates of the armed walks, per unit, if rare values occur at the
// rate p and are independent.
func (t *Test) FalseAlarmRate(p float64) float64 {
	sum := 0.0
	for i := range t.Walks {
		w := &t.Walks[i]
		height := int(float64(w.Height) / t.Factor)
		switch {
		case height == 0:
		case w.Param < 0:
			sum += 1 / fallTime(p, -w.Rare, height)
		default:
			sum += 1 / riseTime(p, w.Rare, height)
		}
	}
	return sum
}

// Spent returns the false alarm rate, per unit, that the armed walks may spend.
func (t *Test) Spent() float64 {
	armed := 0.0
	for i := range t.Walks {
		if t.Walks[i].Height > 0 {
			armed++
		}
	}
	return armed * t.Spend
}

// Observe adds the value of unit number ordinal. While held, walks stop at their thresholds, and the unit does not
// count for the limits.
func (t *Test) Observe(x float64, ordinal int64, held bool) {
	rare := x != t.Mode
	for i := range t.Walks {
		t.Walks[i].step(rare, ordinal, held)
	}
	if held {
		t.More, t.MoreNovel = 0, 0
	} else if t.Collects() && t.Spend > 0 {
		t.refine(rare)
	}
}

// Collects reports whether the limits may still become tighter.
func (t *Test) Collects() bool {
	return t.Doublings > 0 || t.Doublings > -extraDoublings && !t.Known()
}

// Known reports whether the limits are computed from enough rare values.
func (t *Test) Known() bool { return t.isKnown(t.Novel) }

func (t *Test) isKnown(rare int) bool { return float64(rare) >= KnownRare*t.Factor }

// Collected returns the number of rare values so far, and about how many units are left until the rate is known; 0
// if it is known, or will not become known.
func (t *Test) Collected() (rare, left int) {
	rare = t.Novel + t.MoreNovel
	if t.Known() || !t.Collects() {
		return rare, 0
	}
	missing := max(1, KnownRare*t.Factor-float64(rare))
	return rare, int(math.Ceil(missing * float64(t.Units+t.More) / float64(rare)))
}

func (w *Walk) step(rare bool, ordinal int64, held bool) {
	before := w.Walk
	if rare {
		w.Walk += w.Rare
	} else {
		w.Walk += w.Usual
	}
	w.Walk = max(0, w.Walk)
	if held || w.Height == 0 {
		w.Walk = min(w.Walk, w.Height)
	}
	if w.Walk == 0 {
		w.Zeroed = true
	} else if before == 0 {
		w.StartedAt = ordinal
	}
}

// due reports whether the limits must be recomputed. This also happens at the rare value with which the rate
// becomes known: a limit that is exact for a fixed number of units is valid there as well (Clopper & Pearson's
// limits are those of Haldane's inverse sampling).
func (t *Test) due() bool {
	rare := t.Novel + t.MoreNovel
	switch doubled := t.More >= t.Units; {
	case t.Known():
		return doubled
	case t.isKnown(rare):
		return true
	default:
		return doubled && float64(rare) < nearlyKnown*KnownRare*t.Factor
	}
}

// refine counts a unit, and recomputes the limits if that is due. It waits while a walk is more than halfway up,
// because a change may be in progress and its units must not count. Units also do not count if the rate over all
// units would lie outside the limits: it is then no longer the rate of the baseline.
func (t *Test) refine(rare bool) {
	t.More++
	if rare {
		t.MoreNovel++
	}
	if !t.due() || t.halfWay() {
		return
	}
	units, novel := t.Units+t.More, t.Novel+t.MoreNovel
	t.More, t.MoreNovel = 0, 0
	if t.strays(novel, units) {
		return
	}
	t.Units, t.Novel = units, novel
	t.Doublings--
	t.limit()
	t.Arm(t.Spend)
}

// Left returns how many times the units may still double if rare values stay as frequent as they are.
func (t *Test) Left() int {
	left := max(0, t.Doublings)
	for left < t.Doublings+extraDoublings && !t.isKnown(t.Novel<<left) {
		left++
	}
	return left
}

// Grown returns a copy of the test after its units have doubled the given number of times, at most as often as they
// may still double, with the given number of rare values among the new units.
func (t *Test) Grown(doublings, novel int) *Test {
	grown := *t
	doublings = min(doublings, t.Left())
	grown.Units, grown.Novel = t.Units<<doublings, t.Novel+novel
	grown.Doublings -= doublings
	grown.limit()
	grown.Arm(t.Spend)
	grown.Reset()
	return &grown
}

func (t *Test) halfWay() bool {
	for i := range t.Walks {
		if t.Walks[i].Score() > .5 {
			return true
		}
	}
	return false
}

// Reset sets every walk back to 0.
func (t *Test) Reset() {
	for i := range t.Walks {
		t.Walks[i].Walk, t.Walks[i].Zeroed = 0, true
	}
}

// Hold records for each walk whether it is at 0 now, and lowers walks that exceed their thresholds to them, like
// Walks.Hold.
func (t *Test) Hold() {
	for i := range t.Walks {
		w := &t.Walks[i]
		w.Zeroed = w.Walk == 0
		w.Walk = min(w.Walk, w.Height)
	}
}

// Reached reports whether a walk has reached its threshold.
func (t *Test) Reached() bool {
	for i := range t.Walks {
		if t.Walks[i].Score() >= 1 {
			return true
		}
	}
	return false
}

// Score returns the walk as a share of its threshold, 0 if it is not armed.
func (w *Walk) Score() float64 {
	if w.Height == 0 {
		return 0
	}
	return float64(w.Walk) / float64(w.Height)
}

// shortReach is the largest number of steps of a rare value for which the mean times are computed without allocation,
// as they are computed while units are judged. A rare value takes more steps if the rate is below one in 700.
const shortReach = 1024

// fall yields the mean times in which a walk climbs from 0 to 1, 2, ... The walk goes one step up in each unit, except
// that at a rare value, which occurs at the rate p, it goes down steps down, to 0 at least. It climbs one step at a
// time: with T(i) the mean time from i to i+1,
//
//	T(i) = (1 + p (T(j) + ... + T(i-1))) / (1 - p),   j = max(0, i - down)
func fall(p float64, down int, yield func(height int, time float64) bool) {
	var short [shortReach]float64
	times := short[:] // from 0 to the last down + 1 heights, by height
	if down >= shortReach && down < maxHeight {
		times = make([]float64, down+1)
	}
	time := 0.0
	for i := range maxHeight {
		back := 0.0 // mean time to the height that a rare value leads to
		if i > down {
			back = times[(i-down)%len(times)]
		}
		time += (1 + p*(time-back)) / (1 - p)
		if !yield(i+1, time) {
			return
		}
		times[(i+1)%len(times)] = time
	}
}

// leastFall returns the smallest height that such a walk reaches at most at the given rate per unit, 0 if there is
// none.
func leastFall(p float64, down int, rate float64) (least int) {
	fall(p, down, func(height int, time float64) bool {
		if time*rate >= 1 {
			least = height
		}
		return least == 0
	})
	return least
}

// fallTime returns the mean time in which such a walk climbs to a height.
func fallTime(p float64, down, to int) float64 {
	at := math.Inf(1)
	fall(p, down, func(height int, time float64) bool {
		if height == to {
			at = time
		}
		return height < to
	})
	return at
}

// maxRiseWork bounds the number of additions in the search for a threshold.
const maxRiseWork = 1 << 21

// rise yields the mean times in which a walk climbs from 0 beyond up, to up+1, up+2, ... The walk goes up steps up at a
// rare value, which occurs at the rate p, and else one step down, to 0 at least. For a height h its mean times t(i)
// from i solve
//
//	t(i) = 1 + p t(i+up) + (1-p) t(max(0, i-1)),   t = 0 from h on
//
// Downwards from h, with n = h - i, the differences t(i-1) - t(i) are D(n) t(h-1) - E(n), whatever h is:
//
//	D(n) = p (D(n-1) + ... + D(n-up)) / (1-p),         D(0) = 1,   D = 0 before
//	E(n) = (1 + p (E(n-1) + ... + E(n-up))) / (1-p),   E(0) = 0,   E = 0 before
//
// and t(0) - t(up) = 1/p gives t(h-1). Only the last step subtracts, and a small number from a large one.
func rise(p float64, up int, yield func(height int, time float64) bool) {
	var short [2 * shortReach]float64
	memory := short[:]
	if up > shortReach {
		memory = make([]float64, 2*up)
	}
	d, e := memory[:up], memory[up:2*up] // the last up of them, by n
	d[0] = 1
	sumD, sumE := 1.0, 0.0
	for height := 1; height <= maxRiseWork/up; height++ {
		lastD, lastE := 0.0, 0.0
		for k := range up {
			lastD += d[k]
			lastE += e[k]
		}
		if height > up {
			top := (1/p + lastE) / lastD
			if !yield(height, top*sumD-sumE) {
				return
			}
		}
		nextD, nextE := p*lastD/(1-p), (1+p*lastE)/(1-p)
		d[height%up], e[height%up] = nextD, nextE
		sumD, sumE = sumD+nextD, sumE+nextE
	}
}

// leastRise returns the smallest height above one rare value that such a walk reaches at most at the given rate per
// unit, 0 if there is none within bounds.
func leastRise(p float64, up int, rate float64) (least int) {
	rise(p, up, func(height int, time float64) bool {
		if time*rate >= 1 {
			least = height
		}
		return least == 0
	})
	return least
}

// riseTime returns the mean time in which such a walk climbs to a height above one rare value.
func riseTime(p float64, up, to int) float64 {
	at := math.Inf(1)
	rise(p, up, func(height int, time float64) bool {
		if height == to {
			at = time
		}
		return height < to
	})
	return at
}
