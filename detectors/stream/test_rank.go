package stream

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// rankTest judges the ranks of values.
type rankTest struct {
	walkTest
	test *detectors.RankTest
}

// NewRankTest returns a Test that judges ranks with t.
func NewRankTest(t *detectors.RankTest) *rankTest { return &rankTest{walkTest{&t.Walks}, t} }

func beginRank(q *Quantity, of *basis) Test {
	if of.constant || of.counts {
		return nil
	}
	return NewRankTest(q.rankTest(of))
}

// Rank returns the rank test of the quantity; nil if it has none.
func (q *Quantity) Rank() *detectors.RankTest {
	if t, has := TestOf[*rankTest](q); has {
		return t.test
	}
	return nil
}

func (t *rankTest) Observe(v value, ordinal int64, held bool) {
	if t.test.Tolerated > 0 {
		t.test.ObserveWithin(v.stratum, v.lowered, v.raised, ordinal, held)
		return
	}
	if v.seasonal {
		t.test.ObserveIn(v.stratum, v.judged, ordinal, held)
		return
	}
	t.test.ObserveSlot(v.slot, ordinal, held)
}

func (t *rankTest) Again() Test {
	again := *t.test
	again.Branches = slices.Clone(again.Branches)
	again.Reset()
	return NewRankTest(&again)
}

func (t *rankTest) Attach(q *Quantity) error {
	t.test.Attach(q.JudgedRanks(), q.strata(), q.Ranks)
	q.tolerated = t.test.Tolerated * q.SD
	return nil
}

func (t *rankTest) save(w *quantityWire) { w.Rank = saved.Pointer(t.test, rankTestWireOf) }

func restoreRank(w *quantityWire) Test {
	if w.Rank == nil {
		return nil
	}
	t := w.Rank.live()
	return NewRankTest(&t)
}
