package bank

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// currentUnits is how many of the last units the current distribution of a quantity is over.
const currentUnits = 200

// quantity is one number that a unit gives for a signal, such as the mean of its rewards, or how often something
// happened at its steps: what a test judges. Exported fields are its snapshot.
type quantity struct {
	_      struct{} `cbor:",toarray"`
	Name   string
	Warm   observations // collected for the next baseline, in time order
	Recent recent       // of a stream's main quantity, the one that is shown

	// The rest is set when a baseline has been frozen. At most one of Rank, Frequency and Novel is set.
	Ranks     *detectors.Ranks
	Rank      *detectors.RankTest
	Frequency *detectors.FrequencyTest
	Novel     *detectors.Novelty
	Season    *detectors.Season // of a ranked quantity with a weekly season: what Rank judges are mid-ranks among like hours
	Mean, SD  float64           // with the season taken out

	Trace       trace                  // since the freeze, or since the last incident closed; with the season taken out
	Judged      trace                  // the same as it was judged, where that is something else
	Certificate *detectors.Certificate // of a stream's main quantity without a season, over the same time

	Shape  *shapeTest // of a stream's main quantity
	Given  *givenTest // the same, where its mean is given
	Gauges *gauges    // of a stream's main quantity
	Learnt *learnt    // of a quantity that is worked out by what was learnt from the baseline

	described *described // the baseline, nil until it is asked for
}

// observed is what a unit of a warm-up gave for a quantity.
type observed struct {
	Unit  int32 // its place in the warm-up
	X     float64
	Steps float64 // see reading
}

// observations are what the units of a warm-up gave. A snapshot has them packed, since they are many.
type observations []observed

const observedBytes = 4 + 8 + 8

// MarshalBinary packs them.
func (all observations) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, observedBytes*len(all))
	for _, o := range all {
		b = binary.LittleEndian.AppendUint32(b, uint32(o.Unit))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.X))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.Steps))
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary gave. It gives nil for none.
func (all *observations) UnmarshalBinary(b []byte) error {
	if len(b)%observedBytes != 0 {
		return errors.New("it is cut short")
	}
	*all = nil
	for ; len(b) > 0; b = b[observedBytes:] {
		*all = append(*all, observed{
			Unit:  int32(binary.LittleEndian.Uint32(b)),
			X:     math.Float64frombits(binary.LittleEndian.Uint64(b[4:])),
			Steps: math.Float64frombits(binary.LittleEndian.Uint64(b[12:])),
		})
	}
	return nil
}

// dropOldest leaves out what the oldest n units gave. all is overwritten.
func dropOldest(all []observed, n int) []observed {
	kept := all[:0]
	for _, o := range all {
		if o.Unit >= int32(n) {
			o.Unit -= int32(n)
			kept = append(kept, o)
		}
	}
	return kept
}

// leaveOut forgets what units of the warm-up gave whose new place is -1.
func (q *quantity) leaveOut(places []int32) {
	kept := q.Warm[:0]
	for _, o := range q.Warm {
		if o.Unit = places[o.Unit]; o.Unit >= 0 {
			kept = append(kept, o)
		}
	}
	q.Warm = kept
}

// hits is at how many of the steps it happened.
func (o observed) hits() float64 { return math.Round(o.X * o.Steps) }

// thaw lets go of the baseline and its tests.
func (q *quantity) thaw() {
	q.Ranks, q.Rank, q.Frequency, q.Novel, q.Shape, q.Given, q.Season = nil, nil, nil, nil, nil, nil, nil
}

// freeze makes the collected values the baseline and prepares, but does not arm, the test that suits them. Fewer than
// MinBaselineUnits of them are no baseline. When the units ended is there to see how much days differ.
func (q *quantity) freeze(e ends) {
	q.thaw()
	if len(q.Warm) < MinBaselineUnits {
		return
	}
	values := q.warmValues()
	q.Ranks = detectors.NewRanks(values)
	m := momentsOf(values)
	q.Mean, q.SD = m.Mean, m.SD()
	switch {
	case detectors.NearlyConstant(q.Ranks):
		q.Novel = detectors.NewNovelty(q.Ranks)
	case q.counts():
		q.Frequency = q.frequencyTest(max(dayFactor(values, q.timesOf(e)), q.agentFactor(e.agents)))
	default:
		q.Rank = q.rankTest(values, e)
	}
}

func (q *quantity) frequencyTest(least float64) *detectors.FrequencyTest {
	hits, steps := q.warmHits()
	return detectors.NewFrequencyTest(hits, steps, least)
}

// agentFactor is the factor by which the blocks of an agent depend on those before, 1 where units are no blocks.
func (q *quantity) agentFactor(agents []int32) float64 {
	if agents == nil {
		return 1
	}
	of := make([]int32, len(q.Warm))
	for i, o := range q.Warm {
		of[i] = agents[o.Unit]
	}
	values := q.warmValues()
	return detectors.DependenceWithin(values, detectors.NewRanks(values), of)
}

// trends reports whether the collected values move on, at the given level.
func (q *quantity) trends(level float64) bool {
	values := q.warmValues()
	if len(values) < MinBaselineUnits {
		return false
	}
	ranks := detectors.NewRanks(values)
	if detectors.NearlyConstant(ranks) {
		return false
	}
	return detectors.Trend(values, ranks) < level
}

// counts reports whether the baseline is one of shares of steps.
func (q *quantity) counts() bool {
	return !slices.ContainsFunc(q.Warm, func(o observed) bool { return o.Steps == 0 })
}

func (q *quantity) warmValues() []float64 {
	values := make([]float64, len(q.Warm))
	for i, o := range q.Warm {
		values[i] = o.X
	}
	return values
}

// warmHits gives, by unit of the baseline, at how many steps it happened, and of how many.
func (q *quantity) warmHits() (hits, steps []float64) {
	for _, o := range q.Warm {
		hits = append(hits, o.hits())
		steps = append(steps, o.Steps)
	}
	return hits, steps
}

// walks gives the branches of the quantity, nil where it has none.
func (q *quantity) walks() *detectors.Walks {
	switch {
	case q.Rank != nil:
		return &q.Rank.Walks
	case q.Frequency != nil:
		return &q.Frequency.Walks
	}
	return nil
}

// candidates is the number of branches that ask for a share of the budget.
func (q *quantity) candidates() int {
	n := 0
	if q.Novel != nil {
		n++
	}
	if q.Given != nil {
		n++
	}
	if w := q.walks(); w != nil {
		n += w.Carrying()
	}
	return n
}

// arm gives every candidate the false-alarm rate it may spend, per unit.
func (q *quantity) arm(rate float64) {
	if q.Novel != nil && !q.Novel.Arm(rate) {
		q.Novel = nil
	}
	if q.Given != nil {
		q.Given.arm(rate)
	}
	if w := q.walks(); w != nil {
		w.Arm(rate)
	}
}

// attach makes what a restored quantity leaves out.
func (q *quantity) attach() error {
	if q.Ranks == nil {
		if q.Rank != nil || q.Shape != nil {
			return errPartsDoNotMatch
		}
		return nil
	}
	if q.Season != nil {
		q.Season.Attach(q.Ranks)
	}
	switch {
	case q.Rank != nil:
		q.Rank.Attach(q.judgedRanks())
	case q.Frequency != nil:
		q.Frequency.Prepare()
	}
	if q.Shape != nil {
		if q.Shape.Window > maxWindow || !q.Shape.follow(q.Ranks, q.Shape.Held) {
			return errPartsDoNotMatch
		}
		q.Shape.Held = nil
	}
	return nil
}

func (q *quantity) observe(r reading, ordinal int64, held bool) {
	q.keep(r, ordinal)
	if q.proving() {
		q.prove(q.judged(r), held)
	} else {
		q.test(r, ordinal, held)
	}
	if q.Gauges != nil {
		q.Gauges.observe(q.standardShift(r.x))
	}
}

// test gives a reading to the tests of the quantity alone.
func (q *quantity) test(r reading, ordinal int64, held bool) {
	switch {
	case q.Rank != nil:
		q.Rank.Observe(q.judged(r), ordinal, held)
	case q.Frequency != nil:
		hits, steps := r.counts()
		q.Frequency.Observe(hits, steps, ordinal, held)
	case q.Novel != nil:
		q.Novel.Observe(r.x, ordinal, held)
	}
	if q.Shape != nil {
		q.Shape.observe(r.x, ordinal)
	}
	if q.Given != nil && q.Given.Test != nil {
		q.Given.observe(r.x, ordinal, held)
	}
}

func (q *quantity) reset() {
	q.forget()
	if w := q.walks(); w != nil {
		w.Reset()
	}
	if q.Novel != nil {
		q.Novel.Reset()
	}
	if q.Given != nil && q.Given.Test != nil {
		q.Given.reset()
	}
	if t := q.Shape; t != nil {
		t.Score, t.Zeroed = 0, true
		t.follow(q.Ranks, nil)
	}
}

// hold notes which walks are at 0 when an alarm is raised.
func (q *quantity) hold() {
	if w := q.walks(); w != nil {
		w.Hold()
	}
	if q.Novel != nil {
		q.Novel.Hold()
	}
	if q.Shape != nil {
		q.Shape.hold()
	}
	if q.Given != nil && q.Given.Test != nil {
		q.Given.hold()
	}
}

// show keeps x for the current distribution. Only the main quantity of a stream is shown.
func (q *quantity) show(x float64) { q.Recent.add(x) }

// recent is a ring of the last values of a quantity.
type recent struct {
	_      struct{} `cbor:",toarray"`
	Values detectors.Floats
	Next   int
}

func (r *recent) add(x float64) {
	if len(r.Values) < currentUnits {
		r.Values = appendUpTo(r.Values, x, currentUnits)
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
	ts               int64   // at which its unit ended, 0 where that has no time
	steps            float64 // of a share of steps, such as that of an action, of how many; else 0
	values           float64 // of an outcome, of how many values it is the mean
}

// counts gives at how many of the steps something happened. An outcome that was 0 or 1 in the baseline and is not any
// more counts by its value.
func (r reading) counts() (hits, steps float64) {
	steps = max(r.steps, r.values)
	return r.x * steps, steps
}

// readings lists the quantities of a unit that do not depend on the baseline; values that are not finite are left out,
// since the fault rules are there for them.
func readings(u *ingest.Unit, out []reading) []reading {
	add := func(signal, quantity string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out = append(out, reading{signal: signal, quantity: quantity, x: x, ts: u.EndTS})
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
		add("reward", lowDecile, u.RewardQ10)
		add("reward", highDecile, u.RewardQ90)
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.N == 0 {
			continue
		}
		if isOutcome(n.Signal) {
			if r := outcomeReading(n); !math.IsNaN(r.x) && !math.IsInf(r.x, 0) {
				r.ts = u.EndTS
				out = append(out, r)
			}
			continue
		}
		add(n.Signal, "mean", n.Mean)
		add(n.Signal, "sd", n.SD())
		add(n.Signal, lowDecile, n.Q10)
		add(n.Signal, highDecile, n.Q90)
	}
	return out
}

// outcomeReading gives the mean of an outcome, without its time. It is a share of steps where all its values are 0 or 1.
func outcomeReading(n *ingest.NamedMoments) reading {
	r := reading{signal: n.Signal, quantity: "mean", x: n.Mean, values: float64(n.N)}
	sum := n.Mean * float64(n.N)
	squares := n.M2 + sum*n.Mean
	if n.Min >= 0 && n.Max <= 1 && math.Abs(squares-sum) < 1e-6 {
		r.steps = float64(n.N)
	}
	return r
}
