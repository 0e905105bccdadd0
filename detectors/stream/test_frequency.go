package stream

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// FrequencyTest judges how often an event occurs in a unit's steps, or how well the unit's actions are predicted.
type FrequencyTest struct {
	walkTest
	test *detectors.FrequencyTest
}

// NewFrequencyTest returns a Test that judges counts or predictions with t.
func NewFrequencyTest(t *detectors.FrequencyTest) *FrequencyTest {
	return &FrequencyTest{walkTest{&t.Walks}, t}
}

func beginFrequency(q *Quantity, of *basis) Test {
	if of.constant || !of.counts {
		return nil
	}
	if of.ends.Season {
		q.Season = q.seasonOf(nil, of.ends, q.TimesOf(of.ends))
	}
	least := max(dayFactor(of.values, q.daysOf(of.ends)), q.AgentFactor(of.ends))
	hits, steps := q.warmHits()
	if q.Mix != nil {
		return NewFrequencyTest(detectors.NewPredictionTest(hits, steps, least))
	}
	if times := q.TimesOf(of.ends); q.Season != nil {
		strata := q.Season.StrataOf(times)
		left := q.Season.FactorOfCounts(detectors.CountScores(hits, steps, strata), times)
		factor := max(q.AgentFactor(of.ends), left)
		return NewFrequencyTest(detectors.NewFrequencyTestWithin(hits, steps, strata, factor))
	}
	return NewFrequencyTest(detectors.NewFrequencyTest(hits, steps, least))
}

// Frequency returns the frequency test of the quantity; nil if it has none.
func (q *Quantity) Frequency() *detectors.FrequencyTest {
	if t, has := TestOf[*FrequencyTest](q); has {
		return t.test
	}
	return nil
}

// Observe implements Test.
func (t *FrequencyTest) Observe(v value, ordinal int64, held bool) {
	t.test.Observe(v.hits, v.steps, v.stratum, ordinal, held)
}

// Again implements Test.
func (t *FrequencyTest) Again() Test {
	again := *t.test
	again.Branches = slices.Clone(again.Branches)
	again.Reset()
	return NewFrequencyTest(&again)
}

// Attach implements Test.
func (t *FrequencyTest) Attach(*Quantity) error {
	t.test.Prepare()
	return nil
}

func (t *FrequencyTest) save(w *quantityWire) {
	w.Frequency = saved.Pointer(t.test, frequencyTestWireOf)
}

func restoreFrequency(w *quantityWire) Test {
	if w.Frequency == nil {
		return nil
	}
	t := w.Frequency.live()
	return NewFrequencyTest(&t)
}
