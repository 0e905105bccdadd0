// Package budget divides the false alarm budget of a policy among its tests, and calibrates them on a baseline.
package budget

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// class is a set of tests that share a part of the budget evenly.
type class struct {
	share    float64
	branches int
	arm      func(rate float64)
}

// Portion is a set of streams that are frozen together with a share of the policy's budget.
type Portion struct {
	Streams []*stream.Stream
	Units   int
	Share   float64
	Seed    uint64
	Ends    stream.Ends
	Chosen  bool // whether actions were chosen on some of the units, see stream.ActionChoice
}

// Room limits how many branches a portion may arm.
type Room struct {
	Branches int
	Later    int // groups of the policy without an accepted baseline: each may need as many for its primary signals
}

// Arm divides the portion's share of a budget of one false alarm in n units among the classes of tests. A class without
// tests passes its part on to the others. Primary signals are armed first. Other signals leave as many branches to each
// later group, but never more than half of the rest. Streams that exceed room are not armed.
func (of Portion) Arm(shares watch.Shares, n float64, room Room) {
	left := room.Branches
	primary := of.signalClass(true, shares.Primary, &left)
	shapes := of.shapes(true, &left)
	left = max(left/2, left-room.Later*(primary.branches+len(shapes)))
	classes := []class{
		primary, of.signalClass(false, shares.Other, &left), shapeClass(shares.KS, shapes, of.shapes(false, &left)),
	}
	used := 0.0
	for _, c := range classes {
		if c.branches > 0 {
			used += c.share
		}
	}
	all := shares.Primary + shares.Other + shares.KS
	for _, c := range classes {
		if c.branches > 0 {
			c.arm(of.Share * all * c.share / used / float64(c.branches) / n)
		}
	}
}

// signalClass returns the class of the primary signals or of the other signals.
func (of Portion) signalClass(primary bool, share float64, room *int) class {
	chosen, branches := of.Candidates(primary, room)
	return class{share, branches, func(rate float64) { armAll(chosen, rate) }}
}

// armAll arms each branch with a rate of false alarms. Branches of actions divide their total evenly between the mixes,
// which judge all actions at once, and the many shares.
func armAll(chosen []*stream.Quantity, rate float64) {
	mixes, shares := 0, 0
	for _, q := range chosen {
		if q.Mix != nil {
			mixes += q.Candidates(false)
		} else if q.IsOfAction() {
			shares += q.Candidates(false)
		}
	}
	half := rate * float64(mixes+shares) / 2
	for _, q := range chosen {
		switch {
		case mixes == 0 || shares == 0:
			q.Arm(false, rate)
		case q.Mix != nil:
			q.Arm(false, half/float64(mixes))
		case q.IsOfAction():
			q.Arm(false, half/float64(shares))
		default:
			q.Arm(false, rate)
		}
	}
}

// shapes returns the quantities of the primary signals, or of the other signals, that have a sliding Kolmogorov-Smirnov
// test and fit into room.
func (of Portion) shapes(primary bool, room *int) (candidates []*stream.Quantity) {
	for _, s := range of.byWorth() {
		q := s.Find(signals.MainQuantity(s.Signal))
		if q != nil && signals.Primary(s.Signal) == primary && q.Candidates(true) > 0 && *room > 0 {
			*room--
			candidates = append(candidates, q)
		}
	}
	return candidates
}

// shapeClass returns the class of the sliding Kolmogorov-Smirnov tests. They share the class's part evenly, but if
// there are more tests of other signals than of primary ones, the primary ones have half.
func shapeClass(share float64, primary, other []*stream.Quantity) class {
	branches := len(primary) + len(other)
	return class{share, branches, func(rate float64) {
		first, rest := rate, rate
		if n := float64(branches) / 2; len(primary) > 0 && len(primary) < len(other) {
			first, rest = rate*n/float64(len(primary)), rate*n/float64(len(other))
		}
		for _, q := range primary {
			q.Arm(true, first)
		}
		for _, q := range other {
			q.Arm(true, rest)
		}
	}}
}

// Allow spends the part of the budget that the overlap of the armed branches leaves, bootstraps the allowance for the
// baseline's own error, and returns the result. This is the expensive part of a freeze. Without walks to calibrate, the
// result is that of exact tests; it is the zero value if nothing is armed.
func (of Portion) Allow(known *Calibrations) (found Found) {
	samples, names, spent := of.samples()
	if len(samples) == 0 {
		return exactly(spent)
	}
	found = known.of(of.key(spent), func() (c Found) {
		cores := known.share()
		c.Overlap = of.overlap(samples, cores)
		c.Bootstrapped = detectors.Bootstrap(samples, of.Units, spent, c.Overlap, of.Seed, cores)
		if weakest := c.Weakest; weakest.Part > 0 {
			c.WeakestTest = names[weakest.Sample] + " " + weakest.Branch.String()
		}
		return c
	})
	of.Walks(func(w *detectors.Walks) {
		w.Lower(math.Log(found.Overlap))
		w.Allow(found.Allowance)
	})
	return found
}

// overlap returns the overlap of the tests on the units that all samples have values for. On the units used to choose
// actions, the branches of some samples would not move.
func (of Portion) overlap(samples []detectors.BaselineSample, cores int) float64 {
	if !of.Chosen {
		return detectors.Overlap(samples, of.Units, of.Seed, cores)
	}
	units, whole := 0, make([]detectors.BaselineSample, len(samples))
	for i, s := range samples {
		whole[i] = detectors.BaselineSample{Rank: s.Rank, Frequency: s.Frequency}
	}
	for unit := range of.Units {
		if stream.Chooses(unit) {
			continue
		}
		units++
		for i, s := range samples {
			whole[i].Values = append(whole[i].Values, s.Values[unit])
			whole[i].Steps = append(whole[i].Steps, s.Steps[unit])
			if s.Strata != nil {
				whole[i].Strata = append(whole[i].Strata, s.Strata[unit])
			}
		}
	}
	return detectors.Overlap(whole, units, of.Seed, cores)
}

// exactly returns the result for exact tests that spend the given rate, such as those of nearly constant streams. The
// sampling error of the baseline does not affect them.
func exactly(spent float64) (found Found) {
	if spent > 0 {
		found.Confirmed, found.ARL0, found.Low, found.High = true, 1/spent, 1/spent, 1/spent
	}
	return found
}

// Walks calls visit for the walks of each quantity that has any.
func (of Portion) Walks(visit func(*detectors.Walks)) {
	for _, s := range of.Streams {
		for _, q := range s.Quantities {
			if w := q.Walks(); w != nil {
				visit(w)
			}
		}
	}
}

// samples returns the baselines, by unit, and the names of all quantities with armed branches, and the false alarm rate
// of the tests that need no allowance.
func (of Portion) samples() (samples []detectors.BaselineSample, names []string, spent float64) {
	for _, s := range of.Streams {
		for _, q := range s.Quantities {
			spent = q.Spend(spent)
			if w := q.Walks(); w != nil && w.Armed() > 0 {
				samples = append(samples, q.Sample(of.Units, of.Ends))
				names = append(names, s.Signal+" "+q.Name)
			}
		}
	}
	return samples, names, spent
}

// byWorth returns the streams in order of importance, which matters if not all of them can be armed.
func (of Portion) byWorth() []*stream.Stream {
	streams := slices.Clone(of.Streams)
	slices.SortStableFunc(streams, func(a, b *stream.Stream) int { return worth(a.Signal) - worth(b.Signal) })
	return streams
}

// worth returns the rank of a signal; the most important one has 0.
func worth(signal string) int {
	for rank, prefix := range []string{"return", "reward", "episode_length", signals.Action, "outcome."} {
		if signal == prefix || prefix == "outcome." && signals.IsOutcome(signal) {
			return rank
		}
	}
	return 5
}

// Candidates returns the quantities of the primary signals, or of the others, that fit into room, and the number of
// their branches. The outer deciles of signals other than the reward come last, so that they never displace the mean of
// another signal.
func (of Portion) Candidates(primary bool, room *int) (chosen []*stream.Quantity, branches int) {
	fit := func(quantities []*stream.Quantity) bool {
		n := 0
		for _, q := range quantities {
			n += q.Candidates(false)
		}
		if n > *room {
			return false
		}
		*room -= n
		branches += n
		chosen = append(chosen, quantities...)
		return true
	}
	streams := slices.DeleteFunc(of.byWorth(), func(s *stream.Stream) bool { return signals.Primary(s.Signal) != primary })
	for _, s := range streams {
		first, _ := s.ByNeed()
		s.OverLimit = !fit(first)
	}
	for _, s := range streams {
		_, last := s.ByNeed()
		s.NoDeciles = !s.OverLimit && !fit(last)
	}
	return chosen, branches
}

// key identifies a calibration by the seed of the baseline, the rate that exact tests spend, and the height of each
// branch.
func (of Portion) key(spent float64) string {
	key := binary.LittleEndian.AppendUint64(nil, of.Seed)
	key = binary.LittleEndian.AppendUint64(key, math.Float64bits(spent))
	of.Walks(func(w *detectors.Walks) {
		for i := range w.Branches {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(w.Branches[i].Height))
		}
	})
	sum := sha256.Sum256(key)
	return string(sum[:])
}
