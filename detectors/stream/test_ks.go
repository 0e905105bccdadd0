package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// maxShapeFactor is the maximum dependence factor at which the sliding Kolmogorov-Smirnov test pages. Its thresholds
// are those for independent units.
const maxShapeFactor = 1.3

// ShapeTest is the sliding Kolmogorov-Smirnov test of a stream's main quantity. It detects changes of shape that leave
// the mean and the spread unchanged. Its window is empty at first and after each incident.
type ShapeTest struct {
	Window    int
	Threshold float64 // of D; 0 if it does not page
	Zeroed    bool    // whether the score has been below resolveScore since the last call of hold
	StartedAt int64   // ordinal of the oldest unit in the window when the score last rose to resolveScore
	Score     float64
	Held      detectors.Floats // values in the window, oldest first; only set in a snapshot

	Rate  float64 `cbor:"-"` // of false alarms
	ranks *detectors.Ranks
	KS    *detectors.SlidingKS `cbor:"-"`
}

// beginSlidingKS returns nil if the baseline is too large for an exact comparison, has a season, or consists of
// ratings. With a season, recent units do not follow the distribution of the whole baseline. The same holds for ratings
// if the mix of raters changes: even with the raters' levels removed, the shape of the rest differs between raters.
func beginSlidingKS(q *Quantity, of *basis) Test {
	if !of.main(q) || q.Season != nil || of.cfg.Raters.Rate(of.signal) {
		return nil
	}
	t := &ShapeTest{Window: of.cfg.KS.Window, Zeroed: true}
	if !t.follow(q.Ranks, nil) {
		return nil
	}
	return t
}

// follow rebuilds the window from its values. It reports whether the baseline is suitable.
func (t *ShapeTest) follow(baseline *detectors.Ranks, values []float64) bool {
	ks, err := baseline.Resume(t.Window, values[max(0, len(values)-t.Window):])
	if err != nil {
		return false
	}
	t.ranks, t.KS = baseline, ks
	return true
}

// Candidates implements Test. The test only counts if there are thresholds for it.
func (t *ShapeTest) Candidates(q *Quantity) int {
	ranked := q.Rank()
	if ranked == nil || ranked.Factor > maxShapeFactor {
		return 0
	}
	if _, ok := detectors.KSThreshold(t.ranks.Len(), t.Window, 0); !ok {
		return 0
	}
	return 1
}

// Arm sets the threshold for a false alarm rate per unit, if any. Without a threshold, the test is only displayed.
func (t *ShapeTest) Arm(rate float64) bool {
	if d, ok := detectors.KSThreshold(t.ranks.Len(), t.Window, -math.Log(rate)); ok {
		t.Threshold, t.Rate = d, rate
	}
	return true
}

// Observe implements Test.
func (t *ShapeTest) Observe(v value, ordinal int64, _ bool) {
	if !math.IsNaN(v.x) {
		t.KS.AddSlot(v.slot)
	}
	before := t.Score
	t.Score = 0
	if d, full := t.KS.Statistic(); full && t.Threshold > 0 {
		t.Score = d / t.Threshold
	}
	switch {
	case t.Score < resolveScore:
		t.Zeroed = true
	case before < resolveScore:
		t.StartedAt = max(0, ordinal-int64(t.Window)+1)
	}
}

func (t *ShapeTest) hold() { t.Zeroed = t.Score < resolveScore }

// Reset implements Test.
func (t *ShapeTest) Reset() {
	t.Score, t.Zeroed = 0, true
	t.follow(t.ranks, nil)
}

// Reached implements Test.
func (t *ShapeTest) Reached() bool { return t.Score >= 1 }

// Branches implements Test.
func (t *ShapeTest) Branches(q *Quantity, yield func(Branch)) {
	if t.Threshold == 0 {
		return
	}
	d, _ := t.KS.Statistic()
	yield(Branch{
		Detector: finding.DetectorKS, Quantity: q, Score: t.Score, statistic: d, Threshold: t.Threshold,
		zeroed: t.Zeroed, Moving: t.Score >= resolveScore, Started: t.StartedAt,
	})
}

func (t *ShapeTest) spent() float64 { return t.Rate }

// Walks implements Test.
func (t *ShapeTest) Walks() *detectors.Walks { return nil }

// Factor implements Test.
func (t *ShapeTest) Factor() float64 { return 0 }

// Again implements Test.
func (t *ShapeTest) Again() Test {
	if t.Threshold == 0 {
		return nil
	}
	again := *t
	again.Reset()
	return &again
}

// Lower implements Test.
func (t *ShapeTest) Lower(by float64) { t.Arm(t.Rate * math.Exp(by)) }

// Attach implements Test.
func (t *ShapeTest) Attach(q *Quantity) error {
	if t.Window > watch.MaxWindow || !t.follow(q.Ranks, t.Held) {
		return ErrPartsDoNotMatch
	}
	t.Held = nil
	return nil
}

func (t *ShapeTest) save(w *quantityWire) { w.Shape = saved.Pointer(t, (*ShapeTest).wire) }

func restoreSlidingKS(w *quantityWire) Test {
	if w.Shape == nil {
		return nil
	}
	t := w.Shape.live()
	return &t
}
