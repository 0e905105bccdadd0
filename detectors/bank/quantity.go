package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// currentUnits is how many of the last units the current distribution of a quantity is over.
const currentUnits = 200

// quantity is one number that a unit gives for a signal, such as the mean of its rewards: what a test ranks. Exported
// fields are its snapshot.
type quantity struct {
	Name   string
	Warm   []float64 // values collected for the next baseline, in time order
	Recent recent

	// The rest is set when a baseline has been frozen. One of Rank and Novel is set, the other nil.
	Ranks    *detectors.Ranks
	Rank     *detectors.RankTest
	Novel    *detectors.Novelty
	Mean, SD float64

	ks *detectors.SlidingKS // of a stream's main quantity
}

// freeze makes the collected values the baseline and prepares, but does not arm, the test that suits them. Fewer than
// MinBaselineUnits of them are no baseline.
func (q *quantity) freeze() {
	q.Ranks, q.Rank, q.Novel = nil, nil, nil
	if len(q.Warm) < MinBaselineUnits {
		return
	}
	q.Ranks = detectors.NewRanks(q.Warm)
	var m ingest.Moments
	for _, x := range q.Warm {
		m.Add(x)
	}
	q.Mean, q.SD = m.Mean, m.SD()
	if detectors.NearlyConstant(q.Ranks) {
		q.Novel = detectors.NewNovelty(q.Ranks)
		return
	}
	q.Rank = detectors.NewRankTest(q.Warm, q.Ranks, detectors.Dependence(q.Warm, q.Ranks))
}

// candidates is the number of branches that ask for a share of the budget.
func (q *quantity) candidates() int {
	switch {
	case q.Novel != nil:
		return 1
	case q.Rank != nil:
		return q.Rank.Carrying()
	}
	return 0
}

// arm gives every candidate the false-alarm rate it may spend, per unit.
func (q *quantity) arm(rate float64) {
	if q.Novel != nil && !q.Novel.Arm(rate) {
		q.Novel = nil
	}
	if q.Rank != nil {
		q.Rank.Arm(rate)
	}
}

// follow starts the sliding Kolmogorov-Smirnov statistic and gives it the recent values again after a restore.
func (q *quantity) follow() {
	ks, err := detectors.NewSlidingKS(q.Ranks.Sample(), currentUnits)
	if err != nil {
		return // no finite baseline: there is nothing to compare with
	}
	q.ks = ks
	for _, x := range q.Recent.last(currentUnits) {
		ks.Add(x)
	}
}

func (q *quantity) observe(x float64, ordinal int64, held bool) {
	if q.Rank != nil {
		q.Rank.Observe(x, ordinal, held)
	}
	if q.Novel != nil {
		q.Novel.Observe(x, ordinal, held)
	}
}

func (q *quantity) reset() {
	if q.Rank != nil {
		q.Rank.Reset()
	}
	if q.Novel != nil {
		q.Novel.Reset()
	}
}

// show keeps x for the current distribution.
func (q *quantity) show(x float64) {
	q.Recent.add(x)
	if q.ks != nil {
		q.ks.Add(x)
	}
}

// recent is a ring of the last values of a quantity.
type recent struct {
	Values []float64
	Next   int
}

func (r *recent) add(x float64) {
	if len(r.Values) < currentUnits {
		r.Values = append(r.Values, x)
		return
	}
	r.Values[r.Next] = x
	r.Next = (r.Next + 1) % currentUnits
}

// last gives a copy of the newest n values, or of all there are, oldest first.
func (r *recent) last(n int) []float64 {
	n = min(n, len(r.Values))
	out := make([]float64, 0, n)
	for i := len(r.Values) - n; i < len(r.Values); i++ {
		out = append(out, r.Values[(r.Next+i)%len(r.Values)])
	}
	return out
}

// reading is one quantity of one unit.
type reading struct {
	signal, quantity string
	x                float64
}

// readings lists the quantities of a unit that do not depend on the baseline; values that are not finite are left out,
// since the fault rules are there for them.
func readings(u *ingest.Unit, out []reading) []reading {
	add := func(signal, quantity string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out = append(out, reading{signal, quantity, x})
		}
	}
	if u.HasReturn && u.End != ingest.EndBlock {
		add("return", "return", u.Return)
	}
	if u.Length > 0 && u.End != ingest.EndBlock {
		add("episode_length", "length", float64(u.Length))
	}
	if u.Reward.N > 0 {
		add("reward", "mean", u.Reward.Mean)
		add("reward", "sd", u.Reward.SD())
		add("reward", "q10", u.RewardQ10)
		add("reward", "q90", u.RewardQ90)
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.N == 0 {
			continue
		}
		add(n.Signal, "mean", n.Mean)
		if !isOutcome(n.Signal) {
			add(n.Signal, "sd", n.SD())
		}
	}
	return out
}

// share is the share of one category among the actions of a unit; of otherAction, of all that are not listed.
func share(actions []ingest.Count, category string, listed map[string]bool) (float64, bool) {
	var hits, total int64
	for _, a := range actions {
		total += a.N
		if a.Name == category || category == otherAction && !listed[a.Name] {
			hits += a.N
		}
	}
	if total == 0 {
		return 0, false
	}
	return float64(hits) / float64(total), true
}
