package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// maxShapeFactor is the dependence factor up to which the sliding Kolmogorov-Smirnov test pages: its thresholds are those
// of independent units.
const maxShapeFactor = 1.3

// shapeTest is the sliding Kolmogorov-Smirnov test of a stream's main quantity: it sees changes of shape that leave mean
// and spread as they were. Its window is empty at first and after each incident. Exported fields are its snapshot; the
// values in the window are in it while it is written.
type shapeTest struct {
	_         struct{} `cbor:",toarray"`
	Window    int
	Threshold float64 // of D; 0 where it does not page
	Zeroed    bool    // whether the score has been below resolveScore since it was last held
	StartedAt int64   // ordinal of the oldest unit in the window when the score last came to resolveScore
	Score     float64
	Held      detectors.Floats // the values in the window, the oldest first, in a snapshot; else nil

	rate float64 // of false alarms, while it is being armed
	ks   *detectors.SlidingKS
}

// newShapeTest gives nil where the baseline is too large to be compared exactly.
func newShapeTest(baseline *detectors.Ranks, window int) *shapeTest {
	t := &shapeTest{Window: window, Zeroed: true}
	if !t.follow(baseline, nil) {
		return nil
	}
	return t
}

// follow makes the window anew from the values that it held.
func (t *shapeTest) follow(baseline *detectors.Ranks, values []float64) bool {
	ks, err := baseline.SlidingKS(t.Window)
	if err != nil {
		return false
	}
	t.ks = ks
	for _, x := range values[max(0, len(values)-t.Window):] {
		ks.Add(x)
	}
	return true
}

// mayPage reports whether there are thresholds for the test.
func (q *quantity) mayPage() bool {
	if q.Shape == nil || q.Rank == nil || q.Rank.Factor > maxShapeFactor {
		return false
	}
	_, ok := detectors.KSThreshold(q.Ranks.Len(), q.Shape.Window, 0)
	return ok
}

// arm sets the threshold for a rate of false alarms a unit, where there is one.
func (t *shapeTest) arm(m int, rate float64) {
	if d, ok := detectors.KSThreshold(m, t.Window, -math.Log(rate)); ok {
		t.Threshold, t.rate = d, rate
	}
}

func (t *shapeTest) observe(x float64, ordinal int64) {
	t.ks.Add(x)
	before := t.Score
	t.Score = 0
	if d, full := t.ks.Statistic(); full && t.Threshold > 0 {
		t.Score = d / t.Threshold
	}
	switch {
	case t.Score < resolveScore:
		t.Zeroed = true
	case before < resolveScore:
		t.StartedAt = max(0, ordinal-int64(t.Window)+1)
	}
}

func (t *shapeTest) hold() { t.Zeroed = t.Score < resolveScore }

// branch shows the test among the others.
func (t *shapeTest) branch(q *quantity) branch {
	d, _ := t.ks.Statistic()
	return branch{
		detector: DetectorKS, quantity: q, score: t.Score, statistic: d, threshold: t.Threshold,
		zeroed: t.Zeroed, moving: t.Score >= resolveScore, started: t.StartedAt,
	}
}
