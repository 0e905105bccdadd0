package stream

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/certificate"
	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// CurrentUnits is the number of recent units that the current distribution of a quantity covers.
const CurrentUnits = 200

// Quantity is one number of a signal that each unit has, such as the mean of its rewards or the share of its steps in
// which an event occurred. Tests judge quantities.
//
// The type is large because a number is judged, frozen, shown and saved in one place. The tests themselves are separate
// types that implement Test.
type Quantity struct {
	Name   string
	Warm   observations // collected for the next baseline, in order of time
	Recent recent       // only for a stream's main quantity, which is displayed

	// The other fields are set when a baseline is frozen.
	Ranks    *detectors.Ranks
	Tests    []TestOfKind        `cbor:"-"` // each test saves itself
	Season   *season.Season      // divides values into those of similar hours, for its tests
	Hours    *season.HourFactors // reduces the evidence of its walks at some hours; nil if there are none
	Mean, SD float64             // with the season removed

	Reach []finding.Reach // for a main quantity and for amounts; nil if unknown

	Trace       Trace              // since the freeze or the end of the last incident, with the season removed
	judged      *Trace             // the values as judged; nil without a season
	tolerated   float64            // how far the mean may move without an alarm
	slow        detectors.Slow     // the part of it that is currently tolerated
	Certificate *certificate.Bound // for a stream's main quantity without a season, since the same unit as Trace

	Gauges *gauges    // only for a stream's main quantity
	Mix    *ActionMix // only for a quantity that is computed from all actions
	Learnt *Learnt    // only for a quantity that is learned from the baseline

	described *described // the baseline; nil until requested
}

// Observed is the value of a quantity in one unit of a warm-up.
type Observed struct {
	Unit  int32 // its place in the warm-up
	X     float64
	Steps float64 // see Reading
}

// observations holds the values of the units of a warm-up. A snapshot packs them, since there are many.
type observations []Observed

const observedBytes = 4 + 8 + 8

// MarshalBinary returns the observations in packed form.
func (all observations) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, observedBytes*len(all))
	for _, o := range all {
		b = binary.LittleEndian.AppendUint32(b, uint32(o.Unit))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.X))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.Steps))
	}
	return b, nil
}

// UnmarshalBinary reads the form written by MarshalBinary; the result is nil if there are no observations.
func (all *observations) UnmarshalBinary(b []byte) error {
	if len(b)%observedBytes != 0 {
		return errors.New("it is truncated")
	}
	*all = nil
	for ; len(b) > 0; b = b[observedBytes:] {
		*all = append(*all, Observed{
			Unit:  int32(binary.LittleEndian.Uint32(b)),
			X:     math.Float64frombits(binary.LittleEndian.Uint64(b[4:])),
			Steps: math.Float64frombits(binary.LittleEndian.Uint64(b[12:])),
		})
	}
	return nil
}

// DropOldest removes the values of the oldest n units and renumbers the others. It overwrites all.
func DropOldest(all []Observed, n int) []Observed {
	kept := all[:0]
	for _, o := range all {
		if o.Unit >= int32(n) {
			o.Unit -= int32(n)
			kept = append(kept, o)
		}
	}
	return kept
}

// LeaveOut renumbers the warm-up units, and removes the values of those whose new place is -1.
func (q *Quantity) LeaveOut(places []int32) {
	kept := q.Warm[:0]
	for _, o := range q.Warm {
		if o.Unit = places[o.Unit]; o.Unit >= 0 {
			kept = append(kept, o)
		}
	}
	q.Warm = kept
}

// hits returns the number of steps in which the event occurred or, for scored steps, the sum of the scores.
func (q *Quantity) hits(o Observed) float64 {
	if q.Mix != nil {
		return o.X * o.Steps
	}
	return math.Round(o.X * o.Steps)
}

func (q *Quantity) thaw() {
	q.Ranks, q.Tests, q.Season, q.Hours, q.Reach, q.tolerated = nil, nil, nil, nil, nil, 0
}

// freeze makes the collected values the baseline and prepares the suitable tests, but does not arm them. Fewer than
// MinBaselineUnits values are not a baseline. The end times of the units are used to measure how much days differ.
func (q *Quantity) freeze(signal string, cfg *watch.Config, e Ends) {
	q.thaw()
	if len(q.Warm) < watch.MinBaselineUnits {
		return
	}
	values := q.WarmValues()
	q.Ranks = detectors.NewRanks(values)
	m := MomentsOf(values)
	q.Mean, q.SD = m.Mean, m.SD()
	q.begin(&basis{
		cfg: cfg, signal: signal, ends: e, values: values, constant: detectors.NearlyConstant(q.Ranks), counts: q.Counts(),
	})
	q.leaveFallsToRarity()
	q.judgeOnly(cfg.Sides(signal, q.Name))
	q.tolerate(cfg.Tolerated(signal))
}

// AgentFactor returns the dependence factor, without the season, of an agent's successive blocks; 1 without blocks.
func (q *Quantity) AgentFactor(e Ends) float64 {
	if e.Agents == nil {
		return 1
	}
	of := make([]int32, len(q.Warm))
	for i, o := range q.Warm {
		of[i] = e.Agents[o.Unit]
	}
	values := q.withoutSeason(e)
	return detectors.DependenceWithin(values, detectors.NewRanks(values), of)
}

// Trends reports whether the collected values, with the season removed, have a trend at the given significance level.
func (q *Quantity) Trends(level float64, e Ends) bool {
	values := q.WarmValues()
	if len(values) < watch.MinBaselineUnits {
		return false
	}
	ranks := detectors.NewRanks(values)
	if detectors.NearlyConstant(ranks) {
		return false
	}
	if !e.Season {
		return detectors.Trend(values, ranks) < level
	}
	times := q.TimesOf(e)
	if s := q.seasonOf(ranks, e, times); s != nil {
		values, ranks = s.Own(values, times), s.Ranks
	}
	return detectors.Trend(values, ranks) < level
}

// Counts reports whether the values are shares of steps.
func (q *Quantity) Counts() bool {
	return !slices.ContainsFunc(q.Warm, func(o Observed) bool { return o.Steps == 0 })
}

// WarmValues returns the values collected for the next baseline, in order of time.
func (q *Quantity) WarmValues() []float64 {
	values := make([]float64, len(q.Warm))
	for i, o := range q.Warm {
		values[i] = o.X
	}
	return values
}

// WarmOf returns the value collected from a unit of the warm-up; NaN if there is none. q may be nil.
func (q *Quantity) WarmOf(unit int32) float64 {
	if q == nil {
		return math.NaN()
	}
	i, has := slices.BinarySearchFunc(q.Warm, unit, func(o Observed, unit int32) int { return cmp.Compare(o.Unit, unit) })
	if !has {
		return math.NaN()
	}
	return q.Warm[i].X
}

// warmHits returns the numbers of steps with the event, and of all steps, for each unit of the baseline.
func (q *Quantity) warmHits() (hits, steps []float64) {
	for _, o := range q.Warm {
		hits = append(hits, q.hits(o))
		steps = append(steps, o.Steps)
	}
	return hits, steps
}

// Walks returns the branches of the quantity that are calibrated on its baseline; nil if it has none.
func (q *Quantity) Walks() *detectors.Walks {
	for i := range q.Tests {
		if w := q.Tests[i].Walks(); w != nil {
			return w
		}
	}
	return nil
}

// Candidates returns the number of branches that request a share of a part of the budget: of the tests' own part if
// ownShare is true, otherwise of the part of their signal.
func (q *Quantity) Candidates(ownShare bool) int {
	n := 0
	for i := range q.Tests {
		if t := &q.Tests[i]; t.Kind.ownShare == ownShare {
			n += t.Candidates(q)
		}
	}
	return n
}

// Arm sets the false alarm rate per unit of each of these candidates, and removes the tests that it cannot arm.
func (q *Quantity) Arm(ownShare bool, rate float64) {
	q.Tests = slices.DeleteFunc(q.Tests, func(t TestOfKind) bool { return t.Kind.ownShare == ownShare && !t.Arm(rate) })
}

// Attach restores the fields that a snapshot of a quantity omits. actions are those of the baseline.
func (q *Quantity) Attach(actions map[string]int64) error {
	if q.Mix != nil && !q.Mix.Attach(q, actions) {
		return ErrPartsDoNotMatch
	}
	if q.Ranks == nil && len(q.Tests) > 0 {
		return ErrPartsDoNotMatch
	}
	if q.Ranks != nil {
		q.Ranks.Prepare()
	}
	if q.Ranks != nil && q.Season != nil {
		q.Season.Attach(q.Ranks)
	}
	if q.Season != nil && q.judged == nil {
		q.judged = &Trace{}
	}
	trace, err := q.Trace.following(q.tracedRanks())
	if err != nil {
		return err
	}
	q.Trace = trace
	for i := range q.Tests {
		if err := q.Tests[i].Attach(q); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the reading with its value, which is computed here for a mix of actions.
func (q *Quantity) Read(r Reading) Reading {
	if q.Mix != nil {
		r.X = q.Mix.Observe(r.actions)
	}
	return r
}

// Observe adds the reading of a unit. held is true while an incident is open: a branch that has reached its threshold
// then stays there.
func (q *Quantity) Observe(r *Reading, ordinal int64, held bool) {
	if q.Mix != nil {
		mixed := q.Read(*r)
		r = &mixed
	}
	var v value
	q.setValue(&v, r, q.toleratedAt(ordinal))
	q.keep(r, &v, ordinal)
	if q.Proving() {
		q.prove(&v, held)
	} else {
		q.test(&v, ordinal, held)
	}
	if q.Gauges != nil {
		q.Gauges.Observe(q.StandardShift(r.X))
	}
}

// Test passes a reading to the tests of the quantity only. It keeps the reading if the tolerated shift of later ones depends
// on it.
func (q *Quantity) Test(r Reading, ordinal int64, held bool) {
	var v value
	if q.setValue(&v, &r, q.toleratedAt(ordinal)); q.tolerated > 0 {
		q.keep(&r, &v, ordinal)
	}
	q.test(&v, ordinal, held)
}

// setValue sets v to what the tests see of a reading, with the given tolerance. It also sets the weight of the evidence
// of walks at the hour of the reading.
func (q *Quantity) setValue(v *value, r *Reading, tolerated detectors.Slow) {
	v.x, v.judged, v.seasonal, v.stratum = r.X, q.AsJudged(r.X, r.Ts), q.Season != nil, -1
	if v.lowered, v.raised = v.judged, v.judged; q.tolerated > 0 {
		v.lowered, v.raised = q.AsJudged(r.X-tolerated.Higher, r.Ts), q.AsJudged(r.X+tolerated.Lower, r.Ts)
	}
	if q.Season != nil {
		v.stratum = q.Season.Stratum(r.Ts)
	}
	if q.Ranks != nil {
		v.slot = q.Ranks.Slot(r.X)
	}
	v.hits, v.steps = r.Counts()
	if q.Hours != nil {
		q.Walks().Weigh(1 / q.Hours.At(r.Ts))
	}
}

func (q *Quantity) test(v *value, ordinal int64, held bool) {
	for i := range q.Tests {
		q.Tests[i].Observe(*v, ordinal, held)
	}
}

// Reset sets the tests back to zero and removes the recorded units.
func (q *Quantity) Reset() {
	q.forget()
	for i := range q.Tests {
		q.Tests[i].Reset()
	}
}

// hold records which walks are at 0 when an alarm is raised.
func (q *Quantity) hold() {
	for i := range q.Tests {
		q.Tests[i].hold()
	}
}

// Show adds x to the current distribution. It is only used for the main quantity of a stream.
func (q *Quantity) Show(x float64) { q.Recent.add(x) }

// Unshow empties the current distribution.
func (q *Quantity) Unshow() { q.Recent = recent{} }

// recent is a ring of the most recent values of a quantity.
type recent struct {
	Values detectors.Floats
	Next   int
}

func (r *recent) add(x float64) {
	if len(r.Values) < CurrentUnits {
		r.Values = detectors.AppendUpTo(r.Values, x, CurrentUnits)
		return
	}
	r.Values[r.Next] = x
	r.Next = (r.Next + 1) % CurrentUnits
}

// Last returns a copy of the most recent n values, or of all if there are fewer, oldest first.
func (r *recent) Last(n int) []float64 {
	n = min(n, len(r.Values))
	out := make([]float64, 0, n)
	for i := len(r.Values) - n; i < len(r.Values); i++ {
		out = append(out, r.Values[(r.Next+i)%len(r.Values)])
	}
	return out
}

// Reading is the value of one quantity in one unit.
type Reading struct {
	Signal, Quantity string
	X                float64
	Ts               int64          // end of its unit; 0 without a time
	Steps            float64        // number of steps, if the value is a share of steps such as that of an action; otherwise 0
	values           float64        // number of values, if the value is the mean of an outcome
	actions          []ingest.Count // for a mix of actions, whose value is computed by Read
}

// Counts returns the number of steps in which the event occurred, and the number of steps. For an outcome that was 0 or
// 1 in the baseline and now has other values, the first is the sum of the values.
func (r *Reading) Counts() (hits, steps float64) {
	steps = max(r.Steps, r.values)
	return r.X * steps, steps
}

// Readings appends the readings of a unit that do not depend on the baseline to out. It omits values that are not
// finite, which fault rules report.
func Readings(u *ingest.Unit, out []Reading) []Reading {
	add := func(signal, quantity string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			out = append(out, Reading{Signal: signal, Quantity: quantity, X: x, Ts: u.EndTS})
		}
	}
	if u.HasReturn && u.End != ingest.EndBlock {
		add("return", "return", u.Return)
	}
	if u.Length > 0 && u.End != ingest.EndBlock {
		add("episode_length", "length", float64(u.Length)/float64(u.Episodes()))
	}
	if u.Reward.N > 0 {
		add("reward", "mean", u.Reward.Mean)
		add("reward", signals.StepSD, u.Reward.SD())
		add("reward", signals.LowDecile, u.RewardQ10)
		add("reward", signals.HighDecile, u.RewardQ90)
	}
	for i := range u.Numeric {
		n := &u.Numeric[i]
		if n.N == 0 {
			continue
		}
		if signals.IsOutcome(n.Signal) {
			if r := OutcomeReading(n); !math.IsNaN(r.X) && !math.IsInf(r.X, 0) {
				r.Ts = u.EndTS
				out = append(out, r)
			}
			continue
		}
		add(n.Signal, "mean", n.Mean)
		add(n.Signal, signals.StepSD, n.SD())
		add(n.Signal, signals.LowDecile, n.Q10)
		add(n.Signal, signals.HighDecile, n.Q90)
	}
	return out
}

// OutcomeReading returns the mean of an outcome, without its time: a share of steps if all values are 0 or 1.
func OutcomeReading(n *ingest.NamedMoments) Reading {
	r := Reading{Signal: n.Signal, Quantity: "mean", X: n.Mean, values: float64(n.N)}
	sum := n.Mean * float64(n.N)
	squares := n.M2 + sum*n.Mean
	if n.Min >= 0 && n.Max <= 1 && math.Abs(squares-sum) < 1e-6 {
		r.Steps = float64(n.N)
	}
	return r
}

// Scratch is reusable memory for the readings of one unit. Each goroutine needs its own.
type Scratch struct {
	Values []Reading
	Laws   factor.Memory
	hits   []int64 // per judged action
}

// MeanOf returns the mean of x; 0 if it is empty.
func MeanOf(x []float64) float64 { return MomentsOf(x).Mean }

// MomentsOf returns the moments of x.
func MomentsOf(x []float64) (m ingest.Moments) {
	for _, v := range x {
		m.Add(v)
	}
	return m
}

// IsOfAction reports whether the quantity is the share of an action, or of several actions together.
func (q *Quantity) IsOfAction() bool { return isShare(q.Name) || q.Name == RareQuantity }

// Spend returns spent plus the false alarm rate of those tests of the quantity that need no allowance.
func (q *Quantity) Spend(spent float64) float64 {
	for _, ownShare := range []bool{false, true} {
		for i := range q.Tests {
			if t := &q.Tests[i]; t.Kind.ownShare == ownShare {
				spent += t.spent()
			}
		}
	}
	return spent
}

// Sample returns the baseline of the quantity by unit, in the form in which it is judged.
func (q *Quantity) Sample(units int, e Ends) detectors.BaselineSample {
	out := detectors.BaselineSample{
		Values: make([]float64, units), Steps: make([]float64, units), Rank: q.Rank(), Frequency: q.Frequency(),
	}
	for i := range out.Values {
		out.Values[i] = math.NaN()
	}
	values := q.WarmValues()
	if q.Season != nil {
		values = q.Season.Own(values, q.TimesOf(e))
	}
	var strata []int
	if q.Season != nil && out.Frequency != nil {
		strata, out.Strata = q.Season.StrataOf(q.TimesOf(e)), slices.Repeat([]int{-1}, units)
	}
	for i, o := range q.Warm {
		out.Values[o.Unit], out.Steps[o.Unit] = values[i], o.Steps
		if strata != nil {
			out.Strata[o.Unit] = strata[i]
		}
		if out.Frequency != nil {
			out.Values[o.Unit] = q.hits(o)
		}
	}
	return out
}

// Adjusted returns the value of a reading with the season removed.
func (q *Quantity) Adjusted(r Reading) float64 {
	if q.Season == nil {
		return r.X
	}
	return q.Season.Adjusted(r.X, r.Ts)
}

// IsArmed reports whether any branch of the quantity is armed.
func (q *Quantity) IsArmed() bool {
	if len(q.Tests) == 0 {
		return false // avoids allocating the variable below, as IsArmed is called for each unit
	}
	armed := false
	q.Branches(func(Branch) { armed = true })
	return armed
}

// Again returns a copy of the quantity's tests, at zero, that runs beside the original.
func (q *Quantity) Again() *Quantity { return q.again(func(Test) bool { return true }) }

// AgainWalks is like Again, but only copies the test with walks.
func (q *Quantity) AgainWalks() *Quantity {
	return q.again(func(t Test) bool { return t.Walks() != nil })
}

func (q *Quantity) again(with func(Test) bool) *Quantity {
	c := &Quantity{Name: q.Name, Ranks: q.Ranks, Season: q.Season, Hours: q.Hours}
	if q.tolerated > 0 {
		c.Mean, c.SD, c.tolerated = q.Mean, q.SD, q.tolerated
		c.newTraces()
	}
	for i := range q.Tests {
		if !with(q.Tests[i].Test) {
			continue
		}
		if t := q.Tests[i].Again(); t != nil {
			c.Tests = append(c.Tests, TestOfKind{t, q.Tests[i].Kind})
		}
	}
	if q.Mix != nil {
		c.Mix = q.Mix.Again()
	}
	return c
}

// ErrPartsDoNotMatch means that the parts of a checkpoint belong to different groups or times.
var ErrPartsDoNotMatch = errors.New("its parts do not match")
