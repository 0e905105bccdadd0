package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// RarityTest judges how often a nearly constant quantity differs from its commonest value.
type RarityTest struct {
	*detectors.RarityTest
	first *detectors.RarityTest // in a copy made by Again: the original at that time
}

// beginRarity returns nil if rare values are too few. Actions have no such test: the judged ones are the commonest of
// the baseline itself, so the limits of the test do not hold for them.
func beginRarity(q *Quantity, of *basis) Test {
	if !of.constant || q.Mix != nil || isShare(q.Name) {
		return nil
	}
	mode, _ := q.Ranks.Mode()
	rare := make([]float64, len(of.values))
	for i, x := range of.values {
		if x != mode {
			rare[i] = 1
		}
	}
	factor := max(DayFactor(rare, q.TimesOf(of.ends)), q.AgentFactor(of.ends.Agents), detectors.AllowedFactor(rare))
	if t := detectors.NewRarityTest(q.Ranks, factor); t != nil {
		return &RarityTest{RarityTest: t}
	}
	return nil
}

// Observe implements Test.
func (t *RarityTest) Observe(v value, ordinal int64, held bool) {
	t.RarityTest.Observe(v.x, ordinal, held)
}

// Reached implements Test.
func (t *RarityTest) Reached() bool { return t.RarityTest.Reached() }

// Branches implements Test.
func (t *RarityTest) Branches(q *Quantity, yield func(Branch)) {
	for i := range t.RarityTest.Walks {
		if w := &t.RarityTest.Walks[i]; w.Height > 0 {
			yield(Branch{
				finding.DetectorRarity, w.Branch, q, w.Score(), float64(w.Walk), float64(w.Height), w.Zeroed, w.Walk > 0, w.StartedAt,
			})
		}
	}
}

func (t *RarityTest) hold() { t.Hold() }

// Reset implements Test.
func (t *RarityTest) Reset() { t.RarityTest.Reset() }

// Candidates implements Test.
func (t *RarityTest) Candidates(*Quantity) (n int) {
	for i := range t.RarityTest.Walks {
		if t.Judges(t.RarityTest.Walks[i].Param) {
			n++
		}
	}
	return n
}

// Arm implements Test.
func (t *RarityTest) Arm(rate float64) bool {
	t.RarityTest.Arm(rate)
	return true
}

func (t *RarityTest) spent() float64 { return t.Spent() }

// Walks implements Test.
func (t *RarityTest) Walks() *detectors.Walks { return nil }

// Factor implements Test.
func (t *RarityTest) Factor() float64 { return t.RarityTest.Factor }

// Again implements Test.
func (t *RarityTest) Again() Test {
	again := *t.RarityTest
	again.Reset()
	first := again
	return &RarityTest{RarityTest: &again, first: &first}
}

// Unlearn discards what the limits have learned.
func (t *RarityTest) Unlearn() { *t.RarityTest = *t.first }

// Lower implements Test.
func (t *RarityTest) Lower(by float64) {
	t.RarityTest.Arm(t.Spend * math.Exp(by))
	*t.first = *t.RarityTest
}

// Attach implements Test.
func (t *RarityTest) Attach(*Quantity) error { return nil }

func (t *RarityTest) save(w *quantityWire) {
	w.Rare = saved.Pointer(t.RarityTest, rarityTestWireOf)
}

func restoreRarity(w *quantityWire) Test {
	if w.Rare == nil {
		return nil
	}
	t := w.Rare.live()
	return &RarityTest{RarityTest: &t}
}
