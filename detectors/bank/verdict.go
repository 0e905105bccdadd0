package bank

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Verdict is what a gate finds of a version, or of one of its signals.
type Verdict string

// The verdicts. Better and Worse are of the mean, and are certain with gateError; Same says that the means differ by no
// more than detectors.EquivalenceMargin. Everything else is NotEnoughData.
const (
	Better        Verdict = "better"
	Same          Verdict = "same"
	Worse         Verdict = "worse"
	NotEnoughData Verdict = "not enough data"
)

// gateError is the chance that the means of a gate ever tell a version that is as production from it, at whatever units one
// looks; it is shared evenly by the signals that have a better side.
const gateError = .05

const (
	// leastTried is how many units a verdict rests on at least: a standard deviation of fewer is no estimate.
	leastTried = 30
	// leastWitnesses is how many units of production tell whether production has moved itself.
	leastWitnesses = 20
)

// Gate is what comparing a version with production's baseline has found so far.
type Gate struct {
	Version    string
	Shadow     bool
	Verdict    Verdict
	Why        string
	Units      int64  // of the version
	Wanted     int64  // at which half of the versions that are as production have been found so; -1 where no number is enough
	Production string // policy_version that the baseline is of
	Baseline   string // id
	Ended      string // why nothing is compared any more, "" while it is
	Signals    []GateSignal
}

// GateSignal is what it has found of one signal. What cannot be told is NaN.
type GateSignal struct {
	Signal, Quantity string
	Side             int     // 1 where higher is better, -1 where lower is, 0 where neither is
	Verdict          Verdict // "" where neither is, or where another signal is judged in its place
	Why              string  // of the verdict, or whether a test has found it moved
	Before, After    GateMean
	Meanwhile        GateMean // of production since the first unit of the version
	Effect, Low      float64  // After less Before, in standard deviations of Before, and the interval that holds it at all times together
	High             float64
	Score            float64 // of the test that has gone furthest; 1 = threshold
	Test             string  // which, "" where none is armed
	AlarmAt          int64   // unit at which a test first reached its threshold, counted from 1; 0 for none
	Alarm            string  // which test
	Fault            string  // rule of the telemetry fault that the signal is in
}

// GateMean is a mean, its standard deviation, and of how many units; of none where Units is 0.
type GateMean struct {
	Units    int64
	Mean, SD float64
}

// side says which side of a signal is better: 1 the higher, -1 the lower, 0 where nobody knows.
func (c *Config) side(signal string) int {
	if signal == "return" || signal == "reward" {
		return 1
	}
	i := slices.IndexFunc(c.Guaranteed, func(g GivenMean) bool { return isOutcome(signal) && g.Signal == signal })
	if i < 0 {
		return 0
	}
	switch side, _ := sideOf(c.Guaranteed[i].Side); side {
	case detectors.Below:
		return 1
	case detectors.Above:
		return -1
	}
	return 0
}

// judged gives the places of the streams whose means decide: the return, or the reward where there is none, and outcomes
// with a better side.
func (t *trial) judged(cfg *Config) (places []int) {
	_, hasReturn := t.Tests.find("return")
	for i, s := range t.Tests.Streams {
		if s.Signal == "reward" && hasReturn {
			continue
		}
		if cfg.side(s.Signal) != 0 && s.find(mainQuantity(s.Signal)) != nil {
			places = append(places, i)
		}
	}
	return places
}

// conclude notes what the last unit has led to: tests that have reached their thresholds, and a version that is worse. What
// it gets worse by later does not become better, as a unit more tells less than all there were.
func (t *trial) conclude(cfg *Config) {
	for i, s := range t.Tests.Streams {
		if c := &t.Compared[i]; c.AlarmAt == 0 && s.reached() {
			top, _ := s.leading()
			c.AlarmAt, c.Alarm = t.Units, top.name()
		}
	}
	if t.Worse != "" {
		return
	}
	judged := t.judged(cfg)
	for _, i := range judged {
		if v, why := t.verdict(i, cfg, len(judged)); v == Worse {
			t.Worse = fmt.Sprintf("after %d units: %s", t.Units, why)
			return
		}
	}
}

// measured is the difference of a quantity's means in standard deviations of the baseline, which is not 0, and the
// half-width of the interval around it; judged is how many share gateError.
func (q *quantity) measured(c *compared, judged int) (effect, width float64) {
	m, r, f := q.precision(c)
	return q.standardShift(c.New.Mean), detectors.DifferenceWidth(m, c.New.N, r, f, gateError/float64(judged))
}

// precision is how many values the baseline has, the standard deviation of the version's in those of the baseline, at least
// 1, and the dependence factor.
func (q *quantity) precision(c *compared) (m int64, r, f float64) {
	r = 1
	if c.New.N >= leastTried {
		r = max(1, c.New.SD()/q.SD)
	}
	return int64(q.Ranks.Len()), r, q.factor()
}

// constantUnits is how many units of a baseline's only value it takes to be as certain as gateError that no more of them
// will be other ones than a nearly constant quantity may have.
var constantUnits = int64(math.Ceil(math.Log(gateError) / math.Log(.95)))

// verdict judges a stream that has a better side. What production does itself at the same time is not put down to the version.
func (t *trial) verdict(i int, cfg *Config, judged int) (Verdict, string) {
	v, why := t.compare(i, cfg, judged)
	s := t.Tests.Streams[i]
	k := slices.IndexFunc(s.Quantities, func(q *quantity) bool { return q.Name == mainQuantity(s.Signal) })
	if q, c := s.Quantities[k], &t.Compared[i].Each[k]; q.confounds(v, c) {
		return NotEnoughData, fmt.Sprintf("production has moved itself, to %s of %d units since the first one of the version; %s",
			figure(c.Now.Mean), c.Now.N, why)
	}
	return v, why
}

// compare judges a stream that has a better side by the units of the version alone.
func (t *trial) compare(i int, cfg *Config, judged int) (Verdict, string) {
	s := t.Tests.Streams[i]
	k := slices.IndexFunc(s.Quantities, func(q *quantity) bool { return q.Name == mainQuantity(s.Signal) })
	q, c, side := s.Quantities[k], &t.Compared[i].Each[k], float64(cfg.side(s.Signal))
	if fault := t.fault(s); fault != "" {
		return NotEnoughData, fmt.Sprintf("%s is in a telemetry fault (%s)", s.Signal, fault)
	}
	if w := q.walks(); w != nil && w.TooDependent() {
		return NotEnoughData, fmt.Sprintf("units of %s are too dependent for an interval: factor %.1f is above 4", s.Signal, w.Factor)
	}
	if c.New.N < leastTried {
		return NotEnoughData, fmt.Sprintf("%s: %d of at least %d units", s.Signal, c.New.N, leastTried)
	}
	words := fmt.Sprintf("%s was %s and is %s", s.Signal, figure(q.Mean), figure(c.New.Mean))
	if moved, test := q.alarmed(c); moved*side < 0 || moved*side > 0 && q.SD == 0 {
		return verdictOf(moved*side < 0), fmt.Sprintf("%s; the test %s has reached its threshold", words, test)
	}
	if q.SD == 0 {
		return verdictOfConstant(q, c), words
	}
	effect, width := q.measured(c, judged)
	low, high := side*effect-width, side*effect+width
	words += fmt.Sprintf(", by %+.2f baseline sd (%+.2f to %+.2f)", effect, effect-width, effect+width)
	switch {
	case low >= -detectors.EquivalenceMargin && high <= detectors.EquivalenceMargin:
		return Same, words
	case low > 0 || high < 0:
		return verdictOf(high < 0), words
	}
	return NotEnoughData, words
}

func verdictOf(worse bool) Verdict {
	if worse {
		return Worse
	}
	return Better
}

// verdictOfConstant judges a quantity that had one value in the whole baseline, where its test has found nothing.
func verdictOfConstant(q *quantity, c *compared) Verdict {
	if c.New.N >= constantUnits && c.New.Min == q.Mean && c.New.Max == q.Mean {
		return Same
	}
	return NotEnoughData
}

// alarmed is the side to which a test of the quantity that has reached its threshold finds it moved, above 0 for up, and
// which test; 0 where none has, or where it tells no side, as spreads and shapes do not.
func (q *quantity) alarmed(c *compared) (side float64, test string) {
	if !q.reached() {
		return 0, ""
	}
	best := 0.0
	q.branches(func(b branch) {
		if b.score < 1 || b.score <= best || b.detector == DetectorKS || b.detector == DetectorSpread {
			return
		}
		best, side, test = b.score, c.New.Mean-q.Mean, b.name()
		if b.alternative != nil {
			side = b.alternative.Param
		}
	})
	return side, test
}

// confounds reports whether production has moved so far since the first unit of the version that a verdict does not stand:
// by more than counts as the same, or, where the version is better or worse, at least half as far and to the same side.
func (q *quantity) confounds(v Verdict, c *compared) bool {
	if c.Now.N < leastWitnesses {
		return false
	}
	version, production := c.New.Mean-q.Mean, c.Now.Mean-q.Mean
	if v == Same {
		return math.Abs(production) > detectors.EquivalenceMargin*q.SD
	}
	return v != NotEnoughData && production*version > 0 && math.Abs(production) >= math.Abs(version)/2
}

// fault gives the rule of a telemetry fault of a stream, "" for none.
func (t *trial) fault(s *stream) string {
	switch {
	case t.Other != "":
		return t.Other
	case s.Fault.Rule != "":
		return s.Fault.Rule
	}
	return s.Fault.Shared
}

// shownGates gives what is shown of all that are, or were, compared.
func (g *group) shownGates() []Gate {
	out := slices.Clone(g.gates.Ended)
	for _, t := range g.gates.Trials {
		out = append(out, g.gate(t))
	}
	return out
}

// gate gives what is shown of a trial.
func (g *group) gate(t *trial) Gate {
	out := Gate{
		Version: t.Version, Shadow: t.Shadow, Units: t.Units, Production: g.gates.Production, Baseline: g.gates.Baseline,
	}
	judged := t.judged(&g.cfg)
	verdicts := []Verdict{}
	for i := range t.Tests.Streams {
		s := t.signal(i, &g.cfg, max(1, len(judged)))
		if slices.Contains(judged, i) {
			s.Verdict, s.Why = t.verdict(i, &g.cfg, len(judged))
			verdicts = append(verdicts, s.Verdict)
			out.Wanted = t.wanted(out.Wanted, i, len(judged))
		}
		out.Signals = append(out.Signals, s)
	}
	out.Verdict = Overall(verdicts)
	switch {
	case t.Worse != "":
		out.Verdict, out.Why = Worse, t.Worse
	case len(judged) == 0:
		out.Wanted, out.Why = -1, "no signal of the baseline has a better side: it has neither return nor reward"
	default:
		out.Why = t.why(out.Verdict, out.Signals)
	}
	return out
}

// why gives the reason of the first signal that has the verdict.
func (t *trial) why(v Verdict, signals []GateSignal) string {
	i := slices.IndexFunc(signals, func(s GateSignal) bool { return s.Verdict == v })
	return signals[i].Why
}

// wanted gives the larger of so and the number of units that a stream takes to be found the same, as Gate.Wanted is.
func (t *trial) wanted(so int64, i, judged int) int64 {
	s := t.Tests.Streams[i]
	k := slices.IndexFunc(s.Quantities, func(q *quantity) bool { return q.Name == mainQuantity(s.Signal) })
	q, n := s.Quantities[k], constantUnits
	if q.SD > 0 {
		m, r, f := q.precision(&t.Compared[i].Each[k])
		n = detectors.UnitsToEquivalence(m, r, f, gateError/float64(judged))
	}
	if n == 0 || so < 0 {
		return -1
	}
	return max(so, n, leastTried)
}

// Overall is the verdict of several: worse where one is, else not enough data where one has that or where there are none, else
// better where one is.
func Overall(verdicts []Verdict) Verdict {
	for _, v := range []Verdict{Worse, NotEnoughData, Better} {
		if slices.Contains(verdicts, v) {
			return v
		}
	}
	if len(verdicts) == 0 {
		return NotEnoughData
	}
	return Same
}

// signal shows a stream of a trial: its main quantity, or, of actions that are categories, the one that has gone furthest.
func (t *trial) signal(i int, cfg *Config, judged int) GateSignal {
	s, c := t.Tests.Streams[i], &t.Compared[i]
	top, _ := s.leading()
	name := mainQuantity(s.Signal)
	if s.find(name) == nil && top.quantity != nil {
		name = top.quantity.Name
	}
	k := max(0, slices.IndexFunc(s.Quantities, func(q *quantity) bool { return q.Name == name }))
	q, values := s.Quantities[k], &c.Each[k]
	out := GateSignal{
		Signal: s.Signal, Quantity: q.Name, Side: cfg.side(s.Signal), Fault: t.fault(s), AlarmAt: c.AlarmAt, Alarm: c.Alarm,
		Before: GateMean{int64(q.Ranks.Len()), q.Mean, q.SD}, After: meanOfMoments(values.New), Meanwhile: meanOfMoments(values.Now),
		Effect: math.NaN(), Low: math.NaN(), High: math.NaN(),
	}
	if top.quantity != nil {
		out.Test, out.Score = top.name(), top.score
	}
	switch {
	case out.Fault != "":
		out.Why = fmt.Sprintf("it is in a telemetry fault (%s)", out.Fault)
	case out.AlarmAt > 0:
		out.Why = fmt.Sprintf("moved: the test %s reached its threshold at unit %d of the version", out.Alarm, out.AlarmAt)
	default:
		out.Why = "no test has reached its threshold"
	}
	if values.New.N > 0 && q.SD > 0 {
		effect, width := q.measured(values, judged)
		if out.Effect = effect; values.New.N >= leastTried && q.factor() <= 4 {
			out.Low, out.High = effect-width, effect+width
		}
	}
	return out
}

func meanOfMoments(m ingest.Moments) GateMean { return GateMean{m.N, m.Mean, m.SD()} }
