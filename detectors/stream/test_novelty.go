package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// NoveltyTest looks for values that a nearly constant baseline, or one of few values, has not seen.
type NoveltyTest struct{ *detectors.Novelty }

// beginNovelty returns nil for a mix of actions, as when the window holds every action: such a mix predicts nothing.
func beginNovelty(q *Quantity, of *basis) Test {
	if q.Mix != nil {
		return nil
	}
	if of.constant {
		return NoveltyTest{detectors.NewNovelty(q.Ranks)}
	}
	if t := detectors.NewNoveltyOfValues(q.Ranks); t != nil && of.main(q) {
		return NoveltyTest{t}
	}
	return nil
}

// Observe implements Test.
func (t NoveltyTest) Observe(v value, ordinal int64, held bool) {
	t.Novelty.Observe(v.x, ordinal, held)
}

// Reached implements Test.
func (t NoveltyTest) Reached() bool { return t.Score() >= 1 }

// Branches implements Test.
func (t NoveltyTest) Branches(q *Quantity, yield func(Branch)) {
	if t.Height > 0 {
		yield(Branch{
			finding.DetectorNovelty, detectors.Branch{}, q, t.Score(), float64(t.Walk), float64(t.Height), t.Zeroed, t.Walk > 0, t.StartedAt,
		})
	}
}

func (t NoveltyTest) hold() { t.Hold() }

// Reset implements Test.
func (t NoveltyTest) Reset() { t.Novelty.Reset() }

// Candidates implements Test.
func (t NoveltyTest) Candidates(*Quantity) int { return 1 }

// Arm implements Test.
func (t NoveltyTest) Arm(rate float64) bool { return t.Novelty.Arm(rate) }

func (t NoveltyTest) spent() float64 { return t.FalseAlarmRate() }

// Walks implements Test.
func (t NoveltyTest) Walks() *detectors.Walks { return nil }

// Factor implements Test.
func (t NoveltyTest) Factor() float64 { return 1 }

// Again implements Test.
func (t NoveltyTest) Again() Test {
	again := *t.Novelty
	again.Reset()
	return NoveltyTest{&again}
}

// Lower implements Test.
func (t NoveltyTest) Lower(by float64) { t.Novelty.Arm(t.FalseAlarmRate() * math.Exp(by)) }

// Attach implements Test.
func (t NoveltyTest) Attach(*Quantity) error { return nil }

func (t NoveltyTest) save(w *quantityWire) {
	wire := noveltyWire(*t.Novelty)
	w.Novel = &wire
}

func restoreNovelty(w *quantityWire) Test {
	if w.Novel == nil {
		return nil
	}
	t := detectors.Novelty(*w.Novel)
	return NoveltyTest{&t}
}
