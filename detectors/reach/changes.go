package reach

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Measure computes which changes of returns, rewards and outcomes, and of their amounts, the armed branches find.
// units is the number of units in the baseline; a quantity may have values in only some of them.
func Measure(streams []*stream.Stream, units int, ended stream.Ends) {
	var measured []*stream.Quantity
	for _, s := range streams {
		if s.Signal != "return" && s.Signal != "reward" && !signals.IsOutcome(s.Signal) {
			continue
		}
		for _, name := range []string{signals.MainQuantity(s.Signal), signals.Amount} {
			q := s.Find(name)
			if q == nil {
				continue
			}
			if i := slices.IndexFunc(measured, func(other *stream.Quantity) bool { return alike(q, other) }); i >= 0 {
				q.Reach = slices.Clone(measured[i].Reach)
				continue
			}
			q.Reach = Of(q, q.WarmReadings(ended), min(1, float64(len(q.Warm))/float64(units)))
			measured = append(measured, q)
		}
	}
}

// alike reports whether two quantities have the same ranked values and the same branches, such as the return and the reward
// of episodes of one step.
func alike(a, b *stream.Quantity) bool {
	if a.Rank() == nil || b.Rank() == nil || a.Season != nil || b.Season != nil || a.Hours != nil || b.Hours != nil || a.SD != b.SD {
		return false
	}
	return slices.Equal(a.Warm, b.Warm) && slices.Equal(a.Rank().Branches, b.Rank().Branches) && a.Rank().Factor == b.Rank().Factor
}

// Of returns the smallest change of a quantity that its armed branches find within 20, 50, 100, 200, 500, 1,000 and
// 2,000 units; nil if they are not calibrated on ranks, counts or rare values, or if none is armed. The readings
// are those of its baseline; share is the share of the baseline's units that have one. For ranks, the change is a
// shift of all values, or of all but zeros if these are common, in the direction that is found later; for counts
// and rare values, it is a fall of the rate. For rare values, Of also returns after how many units a fall to half
// the rate is found, and how many units the rate must be known from.
func Of(q *stream.Quantity, baseline []stream.Reading, share float64) []finding.Reach {
	if t, has := stream.TestOf[*stream.RarityTest](q); has {
		return ofRare(t.Test, share)
	}
	m := newMover(q)
	walks := func(changed func(size float64) []weighted) func(size float64) finder {
		return func(size float64) finder { return m.after(changed(size)) }
	}
	switch {
	case q.Rank() != nil && q.Rank().Armed() > 0:
		spread, others := spreadOf(baseline, share)
		up, down := smallest(largestShift, walks(shifted(spread, q.SD))), smallest(largestShift, walks(shifted(spread, -q.SD)))
		for i := range up {
			up[i].Size = max(up[i].Size, down[i].Size) // NaN if either is
			up[i].Shift = up[i].Size * q.SD
			up[i].Others, up[i].OfAmounts = others, q.Name == signals.Amount
		}
		return up
	case q.Mix == nil && q.Frequency() != nil && q.Frequency().Armed() > 0:
		return ofRate(smallest(1, walks(thinned(baseline, share))))
	}
	return nil
}

const (
	largestShift  = 4    // standard deviations; larger shifts are not tried
	smallestShare = .01  // of the largest size: smaller ones are not tried
	precision     = 1.04 // ratio between a size that is found and one that is not
	mostReadings  = 250  // of the baseline that a shift is tried on
)

// ofRate marks changes as changes of a rate.
func ofRate(changes []finding.Reach) []finding.Reach {
	for i := range changes {
		changes[i].OfRate = true
	}
	return changes
}

// finder is a test whose units have changed.
type finder interface {
	// finds reports whether the change is found within n units with ReachProbability, or whether a lower limit of
	// the probability is that large.
	finds(n float64) bool
}

// smallest returns, for each number of units, the smallest size up to most whose change is found; NaN if none is.
func smallest(most float64, changed func(size float64) finder) []finding.Reach {
	out := make([]finding.Reach, len(within))
	missed, tried := smallestShare*most, map[float64]finder{}
	for i, n := range within {
		found := func(size float64) bool {
			c, known := tried[size]
			if !known {
				c = changed(size)
				tried[size] = c
			}
			return c.finds(float64(n))
		}
		r := finding.Reach{Units: n, Size: math.NaN()}
		if found(most) {
			r.Size = most
			for r.Size > precision*missed {
				if middle := math.Sqrt(missed * r.Size); found(middle) {
					r.Size = middle
				} else {
					missed = middle
				}
			}
		}
		out[len(within)-1-i] = r
		for j := len(within) - i; j < len(within); j++ {
			if r.Size < out[j].Size {
				out[j].Size = r.Size // a change found within fewer units is found within more; sizes are only as exact as precision
			}
		}
	}
	return out
}

// evenly returns at most mostReadings of the readings, spread evenly over their values.
func evenly(readings []stream.Reading) []stream.Reading {
	sorted := slices.SortedFunc(slices.Values(readings), func(a, b stream.Reading) int { return cmp.Compare(a.X, b.X) })
	if len(sorted) <= mostReadings {
		return sorted
	}
	out := make([]stream.Reading, mostReadings)
	for i := range out {
		out[i] = sorted[(2*i+1)*len(sorted)/(2*mostReadings)]
	}
	return out
}

// spread holds readings of a baseline, spread evenly over their values, with the share of units that each
// represents.
type spread struct {
	readings []stream.Reading
	each     float64
	usual    []stream.Reading // readings that do not shift
	common   float64          // share of units that each of these represents
}

// spreadOf returns the readings of a share of the units, and whether 0 is so common that a shift leaves it as it
// is. A purchase, for example, may be larger or smaller, but decisions without a purchase stay at 0.
func spreadOf(baseline []stream.Reading, share float64) (out spread, others bool) {
	values := make([]float64, len(baseline))
	for i := range baseline {
		values[i] = baseline[i].X
	}
	usual, others := stream.UsualOf(values)
	others = others && usual == 0 // the highest return can fall, and ratings move
	shifting := baseline
	if others {
		isUsual := func(r stream.Reading) bool { return r.X == usual }
		shifting = slices.DeleteFunc(slices.Clone(baseline), isUsual)
		out.usual = evenly(slices.DeleteFunc(slices.Clone(baseline), func(r stream.Reading) bool { return !isUsual(r) }))
		out.common = share * float64(len(baseline)-len(shifting)) / float64(len(baseline)*len(out.usual))
	}
	if out.readings = evenly(shifting); len(out.readings) > 0 {
		out.each = share * float64(len(shifting)) / float64(len(baseline)*len(out.readings))
	}
	return out, others
}

// shifted returns a function that shifts the readings by size times unit, and appends those that do not shift. Its
// result is valid until the next call.
func shifted(s spread, unit float64) func(size float64) []weighted {
	var out []weighted
	for _, r := range s.readings {
		out = append(out, weighted{Reading: r, Weight: s.each})
	}
	for _, r := range s.usual {
		out = append(out, weighted{Reading: r, Weight: s.common})
	}
	return func(size float64) []weighted {
		for i := range s.readings {
			out[i].X = s.readings[i].X + size*unit
		}
		return out
	}
}

// counts are the numbers of events and of steps in a unit.
type counts struct{ events, steps float64 }

// thinned returns a function that leaves out each event of a baseline of counts with the given probability. share
// is the share of the units that have a reading. Its result is valid until the next call.
func thinned(readings []stream.Reading, share float64) func(lost float64) []weighted {
	units := map[counts]float64{}
	for _, r := range readings {
		events, steps := r.Counts()
		units[counts{math.Round(events), steps}] += share / float64(len(readings))
	}
	distinct := slices.SortedFunc(maps.Keys(units), func(a, b counts) int {
		return cmp.Or(cmp.Compare(a.steps, b.steps), cmp.Compare(a.events, b.events))
	})
	var out []weighted
	return func(lost float64) []weighted {
		out = out[:0]
		left, place := newBinomial(1-lost), 1 // place of no events left of that many steps
		for i, c := range distinct {
			if i > 0 && c.steps != distinct[i-1].steps {
				place += exactEvents + 1
			}
			out = left.thin(out, c, units[c], place)
		}
		return out
	}
}

// exactEvents is the largest number of events for which each number of events left has its own probability.
const exactEvents = 16

// binomial computes how many of some events are left if each is left with probability p, from the powers of p and
// 1-p.
type binomial struct {
	p            float64
	happens, not [exactEvents + 1]float64
}

func newBinomial(p float64) *binomial {
	b := &binomial{p: p}
	for k := range b.happens {
		b.happens[k], b.not[k] = math.Pow(p, float64(k)), math.Pow(1-p, float64(k))
	}
	return b
}

// thin appends what is left of the readings with the given counts and weight: each number of events that may be
// left or, for many events, two numbers with the same mean and variance. Numbers of events have places from the
// given one on.
func (b *binomial) thin(out []weighted, c counts, weight float64, place int) []weighted {
	add := func(events, probability float64, place int) {
		out = append(out, weighted{stream.Reading{X: events / c.steps, Steps: c.steps}, weight * probability, place})
	}
	if n := c.events; n > exactEvents {
		sd := math.Sqrt(n * b.p * (1 - b.p))
		add(n*b.p-sd, .5, 0)
		add(n*b.p+sd, .5, 0)
		return out
	}
	ways, n := 1.0, int(c.events)
	for k := range n + 1 {
		add(float64(k), ways*b.happens[k]*b.not[n-k], place+k)
		ways *= float64(n-k) / float64(k+1)
	}
	return out
}
