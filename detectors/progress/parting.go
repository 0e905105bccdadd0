package progress

import (
	"math"
	"slices"
)

const (
	partedZ    = 3.  // standard errors by which the reward must be better, and the outcome worse
	levelRated = 100 // values of the outcome in a level
	pairRated  = 25  // values of the outcome in a pair
	stepParts  = 8   // positions of a step that are tried within a pair
	// surelyBetter is the number of variances of a unit by which the residual sum of squares of one fit must be
	// below that of another: a likelihood ratio of e.
	surelyBetter = 2.
)

// Parting reports that the reward of a policy that learns is better than when an outcome was best, and the outcome
// worse.
type Parting struct {
	Earned          string // the signal of the reward
	Since           int64  // ordinal of the first unit after those in which the outcome was best
	Reward, Outcome Moved
}

// Moved is how far a level is from the one that it is compared with.
type Moved struct {
	From, To float64
	Units    int64   // of the newer one
	Z        float64 // the difference in its standard errors
}

// pair holds the means of a reward and of an outcome over the same stretches.
type pair struct {
	reward, outcome Point
	end             int64 // ordinal of the first unit after them
}

// Parted compares the newest levels of a reward and of an outcome with those at the time when the outcome was best.
// The better side of each is 1 if higher values are better, and -1 if lower ones are. Both slices have the same
// stretches. Parted returns nil unless the reward is better than then and the outcome worse, each by 3 standard
// errors.
//
// The best level is the best of many and therefore partly due to errors, so that z overstates the evidence.
// Therefore the outcome must also have followed the reward since it was best. If something else changed it at once
// while the reward went on growing, a step fits it better.
func Parted(reward, outcome []Point, rewardSide, outcomeSide float64) *Parting {
	pairs := pairsOf(reward, outcome)
	var best, now pair
	from := -1 // index of the first pair of best
	for i := range pairs {
		level, first := levelUntil(pairs, i)
		if first < 0 {
			continue
		}
		if now = level; from < 0 || outcomeSide*(level.outcome.Mean-best.outcome.Mean) > 0 {
			best, from = level, first
		}
	}
	if from < 0 {
		return nil
	}
	p := Parting{Since: best.end, Reward: moved(&best.reward, &now.reward, reward), Outcome: moved(&best.outcome, &now.outcome, outcome)}
	if math.IsInf(p.Reward.Z, 0) || math.IsInf(p.Outcome.Z, 0) { // values that hardly vary have no usable standard error
		return nil
	}
	if !(rewardSide*p.Reward.Z >= partedZ && outcomeSide*p.Outcome.Z <= -partedZ) || !follows(pairs[from:], rewardSide, outcomeSide, outcome) {
		return nil
	}
	return &p
}

// pairsOf joins stretches, from the newest back, until enough of their units have the outcome. The result is in
// time order.
func pairsOf(reward, outcome []Point) []pair {
	var pairs []pair
	var next pair
	for i := len(outcome) - 1; i >= 0; i-- {
		next.reward.join(&reward[i])
		next.outcome.join(&outcome[i])
		if next.outcome.Units >= pairRated && next.reward.Units > 0 {
			pairs = append(pairs, next)
			next = pair{end: outcome[i].First}
		}
	}
	slices.Reverse(pairs)
	return pairs
}

// levelUntil returns the level of the pairs up to the given one, and the index of its first pair; -1 if there are
// too few.
func levelUntil(pairs []pair, last int) (level pair, first int) {
	level.end = pairs[last].end
	for first = last; first >= 0; first-- {
		level.reward.join(&pairs[first].reward)
		level.outcome.join(&pairs[first].outcome)
		if level.outcome.Units >= levelRated {
			break
		}
	}
	return level, first
}

// join adds the values of other stretches, without their standard deviation.
func (p *Point) join(q *Point) {
	if q.Units > 0 {
		p.Units += q.Units
		p.Mean += (q.Mean - p.Mean) * q.Units / p.Units
	}
}

// moved compares two levels of a signal. past is that of the signal and determines the standard error.
func moved(from, to *Point, past []Point) Moved {
	points, _ := filled(past)
	se := math.Sqrt(varianceOf(points) * (1/to.Units + 1/from.Units))
	return Moved{From: from.Mean, To: to.Mean, Units: int64(to.Units), Z: (to.Mean - from.Mean) / se}
}

// follows reports whether the outcome gets worse along the trend of the reward: a line over the trend must fit it
// better, by least squares, than a step at any time. past is that of the outcome.
func follows(pairs []pair, rewardSide, outcomeSide float64, past []Point) bool {
	step := math.Inf(1)
	x := make([]float64, len(pairs))
	for at := stepParts; at <= stepParts*(len(pairs)-1); at++ {
		for i := range x {
			x[i] = min(1, max(0, float64(i+1)-float64(at)/stepParts))
		}
		_, rest := fitted(pairs, x)
		step = min(step, rest)
	}
	points, _ := filled(past)
	slope, rest := fitted(pairs, trendOf(pairs, rewardSide))
	return rewardSide*outcomeSide*slope < 0 && rest+surelyBetter*varianceOf(points) <= step
}

// trendOf returns the reward without its noise: the sequence of levels that only get better and is closest to it by
// least squares (pool adjacent violators, Barlow et al. 1972).
func trendOf(pairs []pair, side float64) []float64 {
	var pools []pair
	var sizes []int
	for i := range pairs {
		pools, sizes = append(pools, pair{reward: pairs[i].reward}), append(sizes, 1)
		for n := len(pools); n > 1 && side*(pools[n-1].reward.Mean-pools[n-2].reward.Mean) <= 0; n-- {
			pools[n-2].reward.join(&pools[n-1].reward)
			sizes[n-2] += sizes[n-1]
			pools, sizes = pools[:n-1], sizes[:n-1]
		}
	}
	var trend []float64
	for i := range pools {
		for range sizes[i] {
			trend = append(trend, pools[i].reward.Mean)
		}
	}
	return trend
}

// fitted fits a line through the outcomes over x by least squares, weighted by their units. It returns the slope and the
// residual sum of squares.
func fitted(pairs []pair, x []float64) (slope, rest float64) {
	var units, meanX, meanY float64
	for i := range pairs {
		y := &pairs[i].outcome
		units += y.Units
		meanX += (x[i] - meanX) * y.Units / units
		meanY += (y.Mean - meanY) * y.Units / units
	}
	var xx, xy, yy float64
	for i := range pairs {
		n, dx, dy := pairs[i].outcome.Units, x[i]-meanX, pairs[i].outcome.Mean-meanY
		xx, xy, yy = xx+n*dx*dx, xy+n*dx*dy, yy+n*dy*dy
	}
	if xx == 0 {
		return 0, yy
	}
	return xy / xx, yy - xy*xy/xx
}
