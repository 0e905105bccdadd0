package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/rarity"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// RarityTest judges how often a quantity differs from its most common value.
type RarityTest struct {
	*rarity.Test
	first *rarity.Test // the state of a copy at the call of Again; otherwise nil
}

// beginRarity returns nil if there are too few rare values. It also returns nil for actions: the judged actions are the
// most common ones of the baseline itself, so the limits of the test do not hold for them.
func beginRarity(q *Quantity, of *basis) Test {
	if !of.constant && !q.isRare(of) || q.Mix != nil || isShare(q.Name) {
		return nil
	}
	mode, _ := q.Ranks.Mode()
	rare := make([]float64, len(of.values))
	for i, x := range of.values {
		if x != mode {
			rare[i] = 1
		}
	}
	factor := q.factorOf(rare, of)
	if t := rarity.New(q.Ranks, factor); t != nil {
		return &RarityTest{t, nil}
	}
	return nil
}

// factorOf returns the largest dependence factor of numbers of units: by their order, by day, and by agent.
func (q *Quantity) factorOf(x []float64, of *basis) float64 {
	return max(dayFactor(x, q.daysOf(of.ends)), q.AgentFactor(of.ends), detectors.AllowedFactor(x))
}

// isRare reports whether the quantity is an outcome, a reward or a return with two values, of which the rarer one is so
// rare that a fall of its rate needs a separate test. That test supports neither a season nor a tolerated shift.
func (q *Quantity) isRare(of *basis) bool {
	outcome := signals.IsOutcome(of.signal) || of.signal == "reward" || of.signal == "return"
	_, usual := q.Ranks.Mode()
	return outcome && of.main(q) && q.Ranks.Distinct() == 2 && float64(q.Ranks.Len()-usual) <= rarity.MostShare*float64(q.Ranks.Len()) &&
		q.Season == nil && of.cfg.Tolerated(of.signal) == 0
}

// leaveFallsToRarity removes the frequency test's branches for a fall if a rarity test judges falls. The remaining
// branches judge how much more frequent the rarer value has become.
func (q *Quantity) leaveFallsToRarity() {
	if _, has := TestOf[*RarityTest](q); has && q.Frequency() != nil {
		q.Frequency().Keep(shiftsTo(q.sideOfRare()))
	}
}

// Observe implements Test.
func (t *RarityTest) Observe(v value, ordinal int64, held bool) {
	t.Test.Observe(v.x, ordinal, held)
}

// Reached implements Test.
func (t *RarityTest) Reached() bool { return t.Test.Reached() }

// Branches implements Test.
func (t *RarityTest) Branches(q *Quantity, yield func(Branch)) {
	for i := range t.Test.Walks {
		if w := &t.Test.Walks[i]; w.Height > 0 {
			yield(Branch{
				finding.DetectorRarity, w.Branch, q, w.Score(), float64(w.Walk), float64(w.Height), w.Zeroed, w.Walk > 0, w.StartedAt,
			})
		}
	}
}

func (t *RarityTest) hold() { t.Hold() }

// Reset implements Test.
func (t *RarityTest) Reset() { t.Test.Reset() }

// Candidates implements Test.
func (t *RarityTest) Candidates(*Quantity) (n int) {
	for i := range t.Test.Walks {
		if t.Judges(t.Test.Walks[i].Param) {
			n++
		}
	}
	return n
}

// Arm implements Test.
func (t *RarityTest) Arm(rate float64) bool {
	t.Test.Arm(rate)
	return true
}

func (t *RarityTest) spent() float64 { return t.Spent() }

// Walks implements Test.
func (t *RarityTest) Walks() *detectors.Walks { return nil }

// Factor implements Test.
func (t *RarityTest) Factor() float64 { return t.Test.Factor }

// Again implements Test.
func (t *RarityTest) Again() Test {
	again := *t.Test
	again.Reset()
	first := again
	return &RarityTest{&again, &first}
}

// Unlearn reverts the limits to those at the call of Again. It must only be called on a copy.
func (t *RarityTest) Unlearn() { *t.Test = *t.first }

// Lower implements Test.
func (t *RarityTest) Lower(by float64) {
	t.Test.Arm(t.Spend * math.Exp(by))
	*t.first = *t.Test
}

// Attach implements Test.
func (t *RarityTest) Attach(*Quantity) error { return nil }

// rareNote returns what is missing to find a fall in the rate of rare values; empty if nothing is.
func (q *Quantity) rareNote(signal string, unit finding.UnitName, provisional bool) string {
	if q.Ranks == nil || q.Name != signals.MainQuantity(signal) {
		return ""
	}
	if t, has := TestOf[*RarityTest](q); has {
		rare, left := t.Collected()
		if left == 0 || t.Side > 0 {
			return ""
		}
		return finding.RareNote(q.Name, rare, int(rarity.KnownRare*t.Test.Factor), left, unit)
	}
	if _, has := TestOf[NoveltyTest](q); !has || provisional || !signals.IsOutcome(signal) {
		return ""
	}
	_, usual := q.Ranks.Mode()
	all := q.Ranks.Len()
	rare := all - usual
	if rare == 0 || rare >= rarity.LeastRare {
		return ""
	}
	return finding.TooRareNote(q.Name, rare, all, 2*rarity.LeastRare*all/rare, unit)
}

func (t *RarityTest) save(w *quantityWire) {
	w.Rare = saved.Pointer(t.Test, rarityTestWireOf)
}

func restoreRarity(w *quantityWire) Test {
	if w.Rare == nil {
		return nil
	}
	t := w.Rare.live()
	return &RarityTest{&t, nil}
}
