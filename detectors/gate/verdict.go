package gate

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/offpolicy"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// MeansError is the probability that the means of a gate ever separate a version that equals production from it, at
// any unit. It is divided evenly among the signals with a better side.
const MeansError = .05

const (
	// LeastTried is the least number of units for a verdict. With fewer, the standard deviation is not known well
	// enough.
	LeastTried = 30
	// leastWitnesses is the number of units of production needed to tell whether production itself has moved.
	leastWitnesses = 20
)

// judged returns the places of the streams whose means decide: the return or, without a return, the reward, and
// outcomes with a better side.
func (t *trial) judged(cfg *watch.Config) (places []int) {
	_, hasReturn := t.Tests.Find("return")
	for i, s := range t.Tests.Streams {
		if s.Signal == "reward" && hasReturn {
			continue
		}
		if cfg.Side(s.Signal) != 0 && s.Find(signals.MainQuantity(s.Signal)) != nil {
			places = append(places, i)
		}
	}
	return places
}

// conclude records the consequences of the last unit: tests that have reached their thresholds, and a version that
// is worse. That verdict is final, because a later unit contains less information than all before it together.
func (t *trial) conclude(cfg *watch.Config) {
	for i, s := range t.Tests.Streams {
		if c := &t.Compared[i]; c.AlarmAt == 0 && s.Reached() {
			top, _ := s.Leading()
			c.AlarmAt, c.Alarm = t.Units, top.Name()
		}
	}
	if t.Worse != "" {
		return
	}
	judged := t.judged(cfg)
	for _, i := range judged {
		if v, why := t.verdict(i, cfg, len(judged)); v == finding.Worse {
			t.Worse = fmt.Sprintf("after %s: %s", t.unitName().Count(t.Units), why)
			return
		}
	}
}

// unitName returns the name of the trial's units.
func (t *trial) unitName() finding.UnitName {
	switch {
	case t.Tests.Blocks.Decisions:
		return finding.DecisionBlocks(t.Tests.Blocks.Size)
	case t.Tests.Blocks.Size > 0:
		return finding.Blocks(0)
	}
	return finding.Episodes()
}

// measured returns the difference of a quantity's means in standard deviations of the baseline, which must not be
// 0, and the half-width of its interval; judged is the number of signals that share MeansError.
func (c *compared) measured(q *stream.Quantity, judged int) (effect, width float64) {
	m, r, f := c.precision(q)
	return q.StandardShift(c.New.Mean), detectors.DifferenceWidth(m, c.New.N, r, f, MeansError/float64(judged))
}

// precision returns the number of values of the baseline, the ratio of the version's standard deviation to that of the
// baseline, at least 1, and the dependence factor.
func (c *compared) precision(q *stream.Quantity) (m int64, r, f float64) {
	r = 1
	if c.New.N >= LeastTried {
		r = max(1, c.New.SD()/q.SD)
	}
	return int64(q.Ranks.Len()), r, q.Factor()
}

// constantUnits is the number of units with a baseline's only value after which, at an error of MeansError, the share
// of other values is no larger than in a nearly constant quantity.
var constantUnits = int64(math.Ceil(math.Log(MeansError) / math.Log(.95)))

// verdict judges a stream that has a better side. It does not attribute to the version a change that production
// itself shows at the same time.
func (t *trial) verdict(i int, cfg *watch.Config, judged int) (finding.Verdict, string) {
	v, why := t.compare(i, cfg, judged)
	s := t.Tests.Streams[i]
	k := slices.IndexFunc(s.Quantities, func(q *stream.Quantity) bool { return q.Name == signals.MainQuantity(s.Signal) })
	if q, c := s.Quantities[k], &t.Compared[i].Each[k]; c.confounds(v, q) {
		return finding.NotEnoughData, fmt.Sprintf("production itself changed: its mean is %s over %s since the version started; %s",
			finding.Figure(c.Now.Mean), t.unitName().Count(c.Now.N), why)
	}
	return v, why
}

// compare judges a stream that has a better side, by the units of the version only.
func (t *trial) compare(i int, cfg *watch.Config, judged int) (finding.Verdict, string) {
	s := t.Tests.Streams[i]
	k := slices.IndexFunc(s.Quantities, func(q *stream.Quantity) bool { return q.Name == signals.MainQuantity(s.Signal) })
	q, c, side := s.Quantities[k], &t.Compared[i].Each[k], float64(cfg.Side(s.Signal))
	if fault := t.fault(s); fault != "" {
		return finding.NotEnoughData, fmt.Sprintf("%s has a telemetry fault (%s)", s.Signal, fault)
	}
	if w := q.Walks(); w != nil && w.TooDependent() {
		return finding.NotEnoughData, fmt.Sprintf("%s: no interval because %s are too dependent (factor %.1f, limit 4)", s.Signal, t.unitName().Many(), w.Factor)
	}
	if c.New.N < LeastTried {
		return finding.NotEnoughData, fmt.Sprintf("%s: %d of at least %d %s", s.Signal, c.New.N, LeastTried, t.unitName().Many())
	}
	words := fmt.Sprintf("%s was %s and is now %s", s.Signal, finding.Figure(q.Mean), finding.Figure(c.New.Mean))
	if moved, test := c.alarmed(q); moved*side < 0 || moved*side > 0 && q.SD == 0 {
		return verdictOf(moved*side < 0), fmt.Sprintf("%s; the test %s has reached its threshold", words, test)
	}
	if q.SD == 0 {
		return verdictOfConstant(q, c), words
	}
	effect, width := c.measured(q, judged)
	low, high := side*effect-width, side*effect+width
	words += fmt.Sprintf("; change: %+.2f baseline SD (%+.2f to %+.2f)", effect, effect-width, effect+width)
	switch {
	case low >= -detectors.EquivalenceMargin && high <= detectors.EquivalenceMargin:
		return finding.Same, words
	case low > 0 || high < 0:
		return verdictOf(high < 0), words
	}
	return finding.NotEnoughData, words
}

func verdictOf(worse bool) finding.Verdict {
	if worse {
		return finding.Worse
	}
	return finding.Better
}

// verdictOfConstant judges a quantity that had one value in the whole baseline, if its test has found nothing.
func verdictOfConstant(q *stream.Quantity, c *compared) finding.Verdict {
	if c.New.N >= constantUnits && c.New.Min == q.Mean && c.New.Max == q.Mean {
		return finding.Same
	}
	return finding.NotEnoughData
}

// alarmed returns the direction in which a test that has reached its threshold finds the quantity moved, above 0
// for up, and the name of the test. The direction is 0 if no test has reached its threshold, or if the test has no
// direction, as with spreads and shapes.
func (c *compared) alarmed(q *stream.Quantity) (side float64, test string) {
	if !q.Reached() {
		return 0, ""
	}
	best := 0.0
	q.Branches(func(b stream.Branch) {
		if b.Score < 1 || b.Score <= best || b.Detector == finding.DetectorKS || b.Detector == finding.DetectorSpread {
			return
		}
		best, side, test = b.Score, c.New.Mean-q.Mean, b.Name()
		if b.Alternative != (detectors.Branch{}) && b.Detector != finding.DetectorRarity { // rarity does not show on which side rare values lie
			side = b.Alternative.Param
		}
	})
	return side, test
}

// confounds reports whether production has moved so far since the version's first unit that a verdict is not valid.
// For the verdict Same, that is by more than counts as the same; for Better and Worse, it is at least half as far
// as the version, and to the same side.
func (c *compared) confounds(v finding.Verdict, q *stream.Quantity) bool {
	if c.Now.N < leastWitnesses {
		return false
	}
	version, production := c.New.Mean-q.Mean, c.Now.Mean-q.Mean
	if v == finding.Same {
		return math.Abs(production) > detectors.EquivalenceMargin*q.SD
	}
	return v != finding.NotEnoughData && production*version > 0 && math.Abs(production) >= math.Abs(version)/2
}

// fault returns the rule of a telemetry fault of a stream, "" for none.
func (t *trial) fault(s *stream.Stream) string {
	switch {
	case t.Other != "":
		return t.Other
	case s.Fault.Rule != "":
		return s.Fault.Rule
	}
	return s.Fault.Shared
}

// Shown returns the public form of the gates of all versions that are, or were, compared.
func (all *Gates) Shown(cfg *watch.Config) []finding.Gate {
	out := slices.Clone(all.Ended)
	for _, t := range all.Trials {
		out = append(out, all.gate(t, cfg))
	}
	return out
}

// gate returns the public form of a trial.
func (all *Gates) gate(t *trial, cfg *watch.Config) finding.Gate {
	out := finding.Gate{
		Version: t.Version, Shadow: t.Shadow, Units: t.Units, Production: all.Production, Baseline: all.Baseline,
	}
	if t.Earned != nil {
		out.OffPolicy = offpolicy.Estimate(&t.Earned.Before, &t.Earned.Now, t.Tests.ReturnFactor())
	}
	judged := t.judged(cfg)
	verdicts := []finding.Verdict{}
	for i := range t.Tests.Streams {
		s := t.signal(i, cfg, max(1, len(judged)))
		if slices.Contains(judged, i) {
			s.Verdict, s.Why = t.verdict(i, cfg, len(judged))
			verdicts = append(verdicts, s.Verdict)
			out.Wanted = t.wanted(out.Wanted, i, len(judged))
		}
		out.Signals = append(out.Signals, s)
	}
	out.Verdict = finding.Overall(verdicts)
	switch {
	case t.Worse != "":
		out.Verdict, out.Why = finding.Worse, t.Worse
	case len(judged) == 0:
		out.Wanted, out.Why = -1, "no signal of the baseline has a direction: it has neither return nor reward"
	default:
		out.Why = t.why(out.Verdict, out.Signals)
	}
	return out
}

// why returns the reason of the first signal that has the verdict.
func (t *trial) why(v finding.Verdict, signals []finding.GateSignal) string {
	i := slices.IndexFunc(signals, func(s finding.GateSignal) bool { return s.Verdict == v })
	return signals[i].Why
}

// wanted returns the larger of the result so far and the number of units that a stream needs to be found the same,
// as in finding.Gate.Wanted; -1 if no number is enough.
func (t *trial) wanted(so int64, i, judged int) int64 {
	s := t.Tests.Streams[i]
	k := slices.IndexFunc(s.Quantities, func(q *stream.Quantity) bool { return q.Name == signals.MainQuantity(s.Signal) })
	q, n := s.Quantities[k], constantUnits
	if q.SD > 0 {
		m, r, f := t.Compared[i].Each[k].precision(q)
		n = detectors.UnitsToEquivalence(m, r, f, MeansError/float64(judged))
	}
	if n == 0 || so < 0 {
		return -1
	}
	return max(so, n, LeastTried)
}

// signal returns the public form of a stream of a trial: its main quantity or, for categorical actions, the quantity
// that has moved furthest.
func (t *trial) signal(i int, cfg *watch.Config, judged int) finding.GateSignal {
	s, c := t.Tests.Streams[i], &t.Compared[i]
	top, _ := s.Leading()
	name := signals.MainQuantity(s.Signal)
	if s.Find(name) == nil && top.Quantity != nil {
		name = top.Quantity.Name
	}
	k := max(0, slices.IndexFunc(s.Quantities, func(q *stream.Quantity) bool { return q.Name == name }))
	q, values := s.Quantities[k], &c.Each[k]
	out := finding.GateSignal{
		Signal: s.Signal, Quantity: q.Name, Side: cfg.Side(s.Signal), Fault: t.fault(s), AlarmAt: c.AlarmAt, Alarm: c.Alarm,
		Before: finding.GateMean{Units: int64(q.Ranks.Len()), Mean: q.Mean, SD: q.SD}, After: meanOfMoments(values.New), Meanwhile: meanOfMoments(values.Now),
		Effect: math.NaN(), Low: math.NaN(), High: math.NaN(),
	}
	if top.Quantity != nil {
		out.Test, out.Score = top.Name(), top.Score
	}
	switch {
	case out.Fault != "":
		out.Why = fmt.Sprintf("it has a telemetry fault (%s)", out.Fault)
	case out.AlarmAt > 0:
		out.Why = fmt.Sprintf("changed: the test %s reached its threshold at %s %d of the version", out.Alarm, t.unitName().One(), out.AlarmAt)
	default:
		out.Why = "no test has reached its threshold"
	}
	if values.New.N > 0 && q.SD > 0 {
		effect, width := values.measured(q, judged)
		if out.Effect = effect; values.New.N >= LeastTried && q.Factor() <= 4 {
			out.Low, out.High = effect-width, effect+width
		}
	}
	return out
}

func meanOfMoments(m ingest.Moments) finding.GateMean {
	return finding.GateMean{Units: m.N, Mean: m.Mean, SD: m.SD()}
}
