package stream

import (
	"cmp"
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// NoveltyTest looks for values that a nearly constant baseline, or one with few distinct values, does not include.
type NoveltyTest struct{ *detectors.Novelty }

// beginNovelty returns nil for a mix of actions. A constant mix, such as one whose window holds every action, predicts
// nothing.
func beginNovelty(q *Quantity, of *basis) Test {
	if q.Mix != nil {
		return nil
	}
	if of.constant {
		return NoveltyTest{detectors.NewNovelty(q.Ranks)}
	}
	if !of.main(q) || !detectors.FewValues(q.Ranks) {
		return nil
	}
	if t := detectors.NewNoveltyOfValues(q.Ranks, q.factorOfValues(of)); t != nil {
		return NoveltyTest{t}
	}
	return nil
}

// factorOfValues returns the largest dependence factor of the values, and of the indicators of each distinct value.
func (q *Quantity) factorOfValues(of *basis) float64 {
	factor := q.factorOf(of.values, of)
	is := make([]float64, len(of.values))
	for _, value := range q.Ranks.Points {
		for i, x := range of.values {
			is[i] = 0
			if x == value {
				is[i] = 1
			}
		}
		factor = max(factor, detectors.AllowedFactor(is))
	}
	return factor
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
	if t.Known != nil {
		w.NovelOfFew = &wire // a build that knows only one value must not mistake all others for novel ones
		return
	}
	w.Novel = &wire
}

func restoreNovelty(w *quantityWire) Test {
	wire := cmp.Or(w.Novel, w.NovelOfFew)
	if wire == nil {
		return nil
	}
	t := detectors.Novelty(*wire)
	return NoveltyTest{&t}
}
