package stream

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// judgeOnly removes branches for changes to other sides than the given one, before they take a share of the budget. It
// keeps the test with a configured mean.
func (q *Quantity) judgeOnly(sides watch.Sides) {
	if sides == watch.SidesBoth {
		return
	}
	q.Tests = slices.DeleteFunc(q.Tests, func(t TestOfKind) bool { return !q.keepSide(t.Test, sides.Direction()) })
}

// tolerate allows the mean of the quantity to move by the given amount, in its own unit, without an alarm. It removes
// tests other than the rank test, which cannot tolerate a shift.
func (q *Quantity) tolerate(by float64) {
	if by == 0 || q.Ranks == nil {
		return
	}
	q.tolerated = by
	q.Tests = slices.DeleteFunc(q.Tests, func(t TestOfKind) bool {
		ranked, is := t.Test.(*rankTest)
		if is {
			ranked.test.Tolerate(by / q.SD)
		}
		return !is || q.constant(by)
	})
}

// toleratedAt returns the tolerance in a unit. It only depends on the trace, so a restored bank has the same one.
func (q *Quantity) toleratedAt(ordinal int64) detectors.Slow {
	if q.tolerated == 0 {
		return detectors.Slow{}
	}
	q.slow = q.slow.At(ordinal, q.Trace.coarse, q.Mean, q.Factor(), q.tolerated)
	return q.slow
}

// constant reports whether a tolerance is set but the quantity never varied, so that the tolerance has no scale.
func (q *Quantity) constant(tolerated float64) bool { return tolerated > 0 && q.SD == 0 }

// toJudge reports whether any part of a frozen quantity is judged in the configured mode of learning.
func (q *Quantity) toJudge(signal string, cfg *watch.Config) bool {
	return cfg.Sides(signal, q.Name) != watch.SidesNone && (q.Ranks == nil || !q.constant(cfg.Tolerated(signal)))
}

// keepSide restricts a test to changes to one side, 0 for none, and reports whether the test is to be kept. Tests with
// walks are kept even without branches, since they hold the dependence factor of the baseline.
func (q *Quantity) keepSide(t Test, side int) bool {
	switch t := t.(type) {
	case *GivenTest:
		return true
	case NoveltyTest:
		if t.Known != nil {
			return side == 0 // a new value between others is on neither side
		}
		t.Side = side
	case *RarityTest:
		t.Side = side * q.sideOfRare()
		return t.Side != 0
	case *ShapeTest:
		return side == 0 && t.Candidates(q) == 0 // it displays the distance
	case *rankTest:
		t.test.Keep(shiftsTo(side))
		return true
	case *FrequencyTest:
		t.test.Keep(shiftsTo(side))
		return true
	}
	return side != 0
}

// shiftsTo returns a function that reports whether a branch is for shifts to the given side; with side 0, for none.
func shiftsTo(side int) func(detectors.Branch) bool {
	return func(b detectors.Branch) bool { return b.Family != detectors.Spread && float64(side)*b.Param > 0 }
}

// sideOfRare returns the side of the most common value on which all other values lie; 0 if they lie on both.
func (q *Quantity) sideOfRare() int {
	mode, _ := q.Ranks.Mode()
	below, above := false, false
	for _, o := range q.Warm {
		below, above = below || o.X < mode, above || o.X > mode
	}
	switch {
	case below && !above:
		return -1
	case above && !below:
		return 1
	}
	return 0
}
