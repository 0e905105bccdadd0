package stream

import (
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// GivenTest is the guaranteed test of a stream's main quantity, with a configured mean. Exported fields are saved.
type GivenTest struct {
	Given     watch.GivenMean
	Test      *detectors.Guaranteed // nil until armed
	Zeroed    bool                  // whether the score has been below resolveScore since the last call of hold
	StartedAt int64                 // ordinal of the unit at which the score last left 0
}

func beginGuaranteed(q *Quantity, of *basis) Test {
	if !of.main(q) {
		return nil
	}
	given := of.cfg.Guaranteed
	i := slices.IndexFunc(given, func(g watch.GivenMean) bool { return g.Signal == of.signal })
	if i < 0 {
		return nil
	}
	return &GivenTest{Given: given[i], Zeroed: true}
}

// Arm implements Test.
func (t *GivenTest) Arm(rate float64) bool {
	side, _ := watch.SideOf(t.Given.Side)
	test, err := detectors.NewGuaranteed(t.Given.Mean, 1/rate, side)
	if err != nil { // the configuration has been checked, so this can only be a meaningless rate of 1 or more
		return false
	}
	t.Test = test
	return true
}

// Observe implements Test.
func (t *GivenTest) Observe(v value, ordinal int64, held bool) {
	if t.Test == nil {
		return
	}
	before := t.Test.Score()
	if t.Test.Observe(v.x) != nil {
		return // a value outside 0 to 1 carries no information for this test; the other tests of the signal see it
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

func (t *GivenTest) hold() {
	if t.Test == nil {
		return
	}
	t.Zeroed = t.Test.Score() < resolveScore
	t.Test.Cap()
}

// Reset implements Test.
func (t *GivenTest) Reset() {
	if t.Test == nil {
		return
	}
	t.Test.Reset()
	t.Zeroed = true
}

// Reached implements Test.
func (t *GivenTest) Reached() bool { return t.Test != nil && t.Test.Score() >= 1 }

// Branches implements Test. The statistic is the logarithm of the evidence.
func (t *GivenTest) Branches(q *Quantity, yield func(Branch)) {
	if t.Test == nil {
		return
	}
	score := t.Test.Score()
	yield(Branch{
		Detector: finding.DetectorGuaranteed, Quantity: q, Score: score, statistic: score * math.Log(t.Test.N),
		Threshold: math.Log(t.Test.N), zeroed: t.Zeroed, Moving: score > 0, Started: t.StartedAt,
	})
}

// Candidates implements Test.
func (t *GivenTest) Candidates(*Quantity) int { return 1 }

func (t *GivenTest) spent() float64 {
	if t.Test == nil {
		return 0
	}
	return 1 / t.Test.N
}

// Walks implements Test.
func (t *GivenTest) Walks() *detectors.Walks { return nil }

// Factor implements Test.
func (t *GivenTest) Factor() float64 { return 0 }

// Again implements Test.
func (t *GivenTest) Again() Test {
	if t.Test == nil {
		return nil
	}
	again, test := *t, *t.Test
	again.Test = &test
	again.Reset()
	return &again
}

// Lower implements Test.
func (t *GivenTest) Lower(by float64) { t.Arm(math.Exp(by) / t.Test.N) }

// Attach implements Test.
func (t *GivenTest) Attach(*Quantity) error { return nil }

func (t *GivenTest) save(w *quantityWire) { w.Given = saved.Pointer(t, (*GivenTest).wire) }

func restoreGuaranteed(w *quantityWire) Test {
	if w.Given == nil {
		return nil
	}
	t := w.Given.live()
	return &t
}
