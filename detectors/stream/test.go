package stream

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// Test judges the values of one quantity. A quantity has one test of each kind that suits its baseline. Observe must
// not allocate.
//
// To add a kind, write an adapter like the one in test_novelty.go, and add it to TestKinds. A CUSUM with Walks also
// needs a Family (branch.go) and a field in BaselineSample (allowance.go). Add its wire form to wire_detectors.go, to
// quantityWire (wire.go), and to wire_test.go.
type Test interface {
	// Observe adds the value of a unit. held is true while an incident is open: a branch that has reached its threshold
	// then stays there.
	Observe(v value, ordinal int64, held bool)
	// Reached reports whether a branch has reached its threshold.
	Reached() bool
	// Branches yields the armed branches.
	Branches(q *Quantity, yield func(Branch))
	// hold records that an alarm has been raised. Before the alarm is over, each branch must pass through zero.
	hold()
	// Reset sets the test back to zero, for example after an incident.
	Reset()

	// Candidates returns the number of branches that request a share of the budget.
	Candidates(q *Quantity) int
	// Arm sets the false alarm rate per unit of each of these branches. If it returns false, the test is removed.
	Arm(rate float64) bool
	// spent returns the false alarm rate of an armed test that needs no allowance for the baseline's own error.
	spent() float64
	// Walks returns the branches that need that allowance; nil for most kinds. A quantity has at most one test with
	// walks. Its false alarms are only included in the promise if detectors.BaselineSample has a field for its type.
	Walks() *detectors.Walks
	// Factor returns the dependence factor of the baseline that the test uses; 0 if it needs none.
	Factor() float64

	// Again returns a copy of the armed test, at zero, that runs beside it; nil if it is not armed.
	Again() Test
	// Lower multiplies the false alarm rate by exp(by).
	Lower(by float64)

	// save writes the test to a snapshot.
	save(w *quantityWire)
	// Attach restores the fields that a snapshot omits.
	Attach(q *Quantity) error
}

// value is what a test sees of a reading.
type value struct {
	x           float64
	judged      float64 // the number that rank tests judge: the value itself or, with a season, its rank among similar hours
	slot        int     // of x among the points of the baseline, if there is one, see detectors.Ranks
	lowered     float64 // judged, for a value that is smaller by the tolerance
	raised      float64 // judged, for a value that is larger by the tolerance
	seasonal    bool    // whether there is a season
	stratum     int     // of a frequency; -1 for none
	hits, steps float64 // number of steps in which the event occurred, and number of steps
}

// Learner is a test that also learns from units.
type Learner interface {
	// Unlearn reverts what a copy made by Again has learned since then.
	Unlearn()
}

// testKind is a kind of test.
type testKind struct {
	// begin returns the test for a baseline, not yet armed; nil if it does not suit the quantity.
	begin func(q *Quantity, of *basis) Test
	// restore returns the test that save has written; nil if there is none.
	restore func(w *quantityWire) Test
	// ownShare means that its branches use the part false_alarms.shares.ks of the budget instead of the part of their
	// signal.
	ownShare bool
}

// TestKinds holds all kinds of test. The tests of a quantity are created, observed and shown in this order, so the
// first of several branches with equal scores leads.
var TestKinds = []testKind{
	{begin: beginRank, restore: restoreRank},
	{begin: beginFrequency, restore: restoreFrequency},
	{begin: beginNovelty, restore: restoreNovelty},
	{begin: beginRarity, restore: restoreRarity},
	{begin: beginSlidingKS, restore: restoreSlidingKS, ownShare: true},
	{begin: beginGuaranteed, restore: restoreGuaranteed},
}

// TestOfKind is a test together with its kind.
type TestOfKind struct {
	Test
	Kind *testKind
}

// basis holds the collected values that the tests of a quantity are created for.
type basis struct {
	cfg      *watch.Config
	signal   string
	ends     Ends
	values   []float64
	constant bool // whether the values are nearly constant
	counts   bool // whether the values are shares of steps
}

// main reports whether the quantity is the main quantity of its stream.
func (b *basis) main(q *Quantity) bool { return q.Name == signals.MainQuantity(b.signal) }

// improved is the p-value of the trend below which a level has improved over its baseline while the policy learns.
const improved = .001

// worse returns the side on which a level is worse that learning must not make worse; 0 for other quantities.
func (b *basis) worse(q *Quantity) float64 {
	if !b.cfg.Learning.Learns() {
		return 0
	}
	return float64(b.cfg.Sides(b.signal, q.Name).Direction())
}

// improves reports whether learning must not make the level worse, and has improved it over the baseline.
func (b *basis) improves(q *Quantity) bool {
	worse := b.worse(q)
	if worse == 0 {
		return false
	}
	half := len(b.values) / 2
	return worse*(MomentsOf(b.values[half:]).Mean-MomentsOf(b.values[:half]).Mean) < 0 && detectors.Trend(b.values, q.Ranks) < improved
}

// begin creates the tests that suit a baseline.
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

// TestOf returns the quantity's test of type T, and whether it has one.
func TestOf[T Test](q *Quantity) (t T, has bool) {
	for i := range q.Tests {
		if t, has = q.Tests[i].Test.(T); has {
			return t, true
		}
	}
	return t, false
}
