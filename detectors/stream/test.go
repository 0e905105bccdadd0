package stream

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Test judges the values of one quantity. A quantity has one of each kind that suits its baseline. Observe allocates
// nothing.
//
// A new one is an adapter as in test_novelty.go, and a line of TestKinds. A CUSUM with Walks also needs a Family
// (branch.go) and a place in BaselineSample (allowance.go). Its wire form goes to wire_detectors.go, quantityWire (wire.go)
// and wire_test.go.
type Test interface {
	// Observe folds in unit number ordinal. While held, a branch that has reached its threshold stays there.
	Observe(v value, ordinal int64, held bool)
	// Reached reports whether a branch has reached its threshold.
	Reached() bool
	// Branches lists the armed branches.
	Branches(q *Quantity, yield func(Branch))
	// hold records that an alarm has been raised: before it is over, each branch has to pass through zero.
	hold()
	// Reset sets the test back to zero, as after an incident.
	Reset()

	// Candidates returns the number of branches that request a share of the budget.
	Candidates(q *Quantity) int
	// Arm sets the false alarm rate per unit that each of these branches may spend. A test that returns false is
	// dropped.
	Arm(rate float64) bool
	// spent returns the false alarm rate of the armed test that needs no allowance for the baseline's own error.
	spent() float64
	// Walks returns the branches that need that allowance, nil for most kinds. A quantity has at most one test with
	// walks. Its false alarms count in the promise only if detectors.BaselineSample has a field for its type.
	Walks() *detectors.Walks
	// Factor returns the dependence factor of the baseline that the test uses, 0 if it needs none.
	Factor() float64

	// Again returns a copy of the armed test, at zero, to run beside it; nil if it is not armed.
	Again() Test
	// Lower multiplies the rate of false alarms by exp(by).
	Lower(by float64)

	// save writes the test into a snapshot.
	save(w *quantityWire)
	// Attach restores the fields that a snapshot leaves out.
	Attach(q *Quantity) error
}

// value is the part of a reading that a test sees.
type value struct {
	x           float64
	judged      float64 // the value as ranks judge it: among similar hours if there is a season
	slot        int     // of x among the points of the baseline, if there is one: see detectors.Ranks
	lowered     float64 // judged, if the value were smaller by what is tolerated
	raised      float64 // judged, if it were larger by that
	seasonal    bool    // whether there is a season
	stratum     int     // of a frequency, -1 for none
	hits, steps float64 // the number of steps at which the event happened
}

// Learner is a test that also learns from units.
type Learner interface {
	// Unlearn discards what a copy made by Again has learned since.
	Unlearn()
}

// testKind is a kind of test.
type testKind struct {
	// begin makes the test for a baseline, not armed yet; nil if it does not suit the quantity.
	begin func(q *Quantity, of *basis) Test
	// restore makes the test from what save has written; nil if save has written none.
	restore func(w *quantityWire) Test
	// ownShare means that its branches draw on the part false_alarms.shares.ks of the budget instead of that of their
	// signal.
	ownShare bool
}

// TestKinds are all kinds of test. A quantity begins, observes and shows its tests in this order, so that the first of
// several branches with equal scores leads.
var TestKinds = []testKind{
	{begin: beginRank, restore: restoreRank},
	{begin: beginFrequency, restore: restoreFrequency},
	{begin: beginNovelty, restore: restoreNovelty},
	{begin: beginRarity, restore: restoreRarity},
	{begin: beginSlidingKS, restore: restoreSlidingKS, ownShare: true},
	{begin: beginGuaranteed, restore: restoreGuaranteed},
}

// TestOfKind is a test of a quantity.
type TestOfKind struct {
	Test
	Kind *testKind
}

// basis holds the collected values for which the tests of a quantity are made.
type basis struct {
	cfg      *watch.Config
	signal   string
	ends     Ends
	values   []float64
	constant bool // nearly
	counts   bool // whether they are shares of steps
}

// main reports whether the quantity is the main quantity of its stream.
func (b *basis) main(q *Quantity) bool { return q.Name == signals.MainQuantity(b.signal) }

// improved is the level of the trend from which on the level of a policy that learns has improved over its baseline.
const improved = .001

// worse returns the side to which a level that learning must not make worse gets worse, 0 for others.
func (b *basis) worse(q *Quantity) float64 {
	if !b.cfg.Learning.Learns() {
		return 0
	}
	return float64(b.cfg.Sides(b.signal, q.Name).Direction())
}

// improves reports whether a level that learning must not make worse gets better over the baseline.
func (b *basis) improves(q *Quantity) bool {
	worse := b.worse(q)
	if worse == 0 {
		return false
	}
	half := len(b.values) / 2
	return worse*(MomentsOf(b.values[half:]).Mean-MomentsOf(b.values[:half]).Mean) < 0 && detectors.Trend(b.values, q.Ranks) < improved
}

// begin makes the tests that suit a baseline.
func (q *Quantity) begin(of *basis) {
	for i := range TestKinds {
		if t := TestKinds[i].begin(q, of); t != nil {
			if t.Walks() != nil && q.Walks() != nil {
				panic("stream: a quantity with two tests that have walks: the promise would leave out one of them")
			}
			q.Tests = append(q.Tests, TestOfKind{t, &TestKinds[i]})
		}
	}
}

// TestOf returns the test of a type among those of a quantity.
func TestOf[T Test](q *Quantity) (t T, has bool) {
	for i := range q.Tests {
		if t, has = q.Tests[i].Test.(T); has {
			return t, true
		}
	}
	return t, false
}
