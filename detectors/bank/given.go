package bank

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// GivenMean is the mean that a signal has to keep, known from elsewhere and not from a baseline: with it the number of
// false alarms is guaranteed, whatever the law of the signal and the dependence of its units.
type GivenMean struct {
	Signal string  `yaml:"signal"` // of which the mean of each unit lies between 0 and 1, such as an outcome
	Mean   float64 `yaml:"mean"`   // the mean of a unit, given those before it; between 0 and 1
	Side   string  `yaml:"side"`   // below or above: what is an alarm; both, where it is left out
}

// sideOf gives the side of that name.
func sideOf(name string) (side detectors.Side, ok bool) {
	switch name {
	case "below":
		return detectors.Below, true
	case "above":
		return detectors.Above, true
	case "", "both":
		return detectors.Both, true
	}
	return 0, false
}

func checkGiven(given []GivenMean, report func(path, msg string)) {
	for i, g := range given {
		at := fmt.Sprintf("guaranteed[%d].", i)
		if g.Signal == "" || !mayBeSignal(g.Signal) || mainQuantity(g.Signal) != "mean" {
			report(at+"signal", fmt.Sprintf("%q is not the name of a signal with a mean over the steps of a unit", g.Signal))
		}
		if !(g.Mean > 0 && g.Mean < 1) {
			report(at+"mean", "must lie between 0 and 1, both excluded")
		}
		if _, ok := sideOf(g.Side); !ok {
			report(at+"side", fmt.Sprintf(`must be "below", "above" or "both", not %q`, g.Side))
		}
	}
}

// givenTest is the guaranteed test of a stream's main quantity. Exported fields are its snapshot.
type givenTest struct {
	Given     GivenMean
	Test      *detectors.Guaranteed // nil until it is armed
	Zeroed    bool                  // whether the score has been below resolveScore since it was last held
	StartedAt int64                 // ordinal of the unit at which the score last left 0
}

// newGivenTest gives the test of a signal, not armed yet; nil where no mean is given.
func newGivenTest(given []GivenMean, signal string) *givenTest {
	i := slices.IndexFunc(given, func(g GivenMean) bool { return g.Signal == signal })
	if i < 0 {
		return nil
	}
	return &givenTest{Given: given[i], Zeroed: true}
}

// arm arms the test for a rate of false alarms a unit.
func (t *givenTest) arm(rate float64) {
	side, _ := sideOf(t.Given.Side)
	test, err := detectors.NewGuaranteed(t.Given.Mean, 1/rate, side)
	if err == nil { // the configuration was checked: only a rate of 1 or more is refused, which means nothing
		t.Test = test
	}
}

func (t *givenTest) observe(x float64, ordinal int64, held bool) {
	before := t.Test.Score()
	if t.Test.Observe(x) != nil {
		return // a value that is not between 0 and 1 says nothing here; the other tests of the signal see it
	}
	score := t.Test.Score()
	if score > 0 && before == 0 {
		t.StartedAt = ordinal
	}
	if score < resolveScore {
		t.Zeroed = true
	}
	if held && score > 1 {
		t.Test.Cap()
	}
}

func (t *givenTest) hold() {
	t.Zeroed = t.Test.Score() < resolveScore
	t.Test.Cap()
}

func (t *givenTest) reset() {
	t.Test.Reset()
	t.Zeroed = true
}

// branch shows the test among the others; the statistic is the logarithm of its evidence.
func (t *givenTest) branch(q *quantity) branch {
	score := t.Test.Score()
	return branch{
		detector: DetectorGuaranteed, quantity: q, score: score, statistic: score * math.Log(t.Test.N),
		threshold: math.Log(t.Test.N), zeroed: t.Zeroed, moving: score > 0, started: t.StartedAt,
	}
}
