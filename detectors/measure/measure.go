// Package measure measures, on the user's own units, how often healthy units raise an alarm and how soon changes are
// detected.
package measure

import (
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Measuring holds the inputs for measuring the false alarms and the delays of a group.
type Measuring struct {
	Units    []*ingest.Unit // healthy units of the group, from bank.Policy.Whole, in time order; judged units are drawn from them
	HeldOut  bool           // whether they came after the baseline; else they are the baseline's own
	Seed     uint64
	Seconds  float64             // approximate run time, which is converted into a number of units to judge
	Progress func(share float64) // called with the share of work completed, by one goroutine at a time; may be nil
}

// Measurement is the measured false alarms and delays of a group.
type Measurement struct {
	N           float64 // see battery.Armed.N
	FalseAlarms FalseAlarms
	Delays      []Delay
}

// FalseAlarms describes how often unchanged units raise an alarm.
type FalseAlarms struct {
	At        float64 // the N of the thresholds during the measurement: lower than the group's if that is too large to be measured
	ARL0      float64 // mean number of units between alarms; without an alarm, a lower limit
	Low, High float64 // its 90% interval, which includes the sampling error of the units drawn from; High is infinite without an alarm
	Units     int     // judged
	Alarms    int     // among them
	Dependent bool    // whether units were drawn in a row, because they depend on each other
}

// Lacks reports whether the measured time between alarms is significantly below its target.
func (f FalseAlarms) Lacks() bool { return f.Alarms > 0 && f.High < f.At }

// exceeded is the probability that alarms at the rate of the budget are mistaken for a higher rate.
const exceeded = .05

// Exceeded reports whether the given alarms in the given units, as observed in operation, are more than the budget
// explains.
func (m Measurement) Exceeded(alarms, units int64) bool {
	return alarms > 0 && mathext.GammaIncReg(float64(alarms), float64(units)/m.N) < exceeded
}

// Delay is the time to detect a change with the thresholds of the budget.
type Delay struct {
	Signal, Change string
	Units          float64 // mean number of units from the change to the alarm, over the runs that detected it; NaN if none did
	StandardError  float64 // of Units over the runs; NaN if fewer than two detected it
	Missed         float64 // share of the runs that had not detected it after Longest units; NaN without a run
	Runs           int
	Longest        int
	Note           string // remark on the figure, or why there is none
}

// dependentRun is the number of consecutive units drawn together if they depend on each other. It equals the range
// of the dependence factor.
const dependentRun = 20

// The cost of judging a unit, in nanoseconds. It converts seconds into a number of units, so that the result does not
// depend on the machine.
const (
	unitCost   = 100
	branchCost = 10
)

// The measurement of false alarms runs on the units themselves until there are directAlarms alarms, and on
// resamples samples drawn from them until each has resampledAlarms alarms. The number of units that an alarm takes
// is expected to be N times expectedRatio, or N times the promised ratio if that is larger.
const (
	directAlarms    = 100
	resamples       = 20
	resampledAlarms = 10
	expectedRatio   = 2
	rareAlarms      = 10 // with fewer alarms, the interval is that of their number
)

// The measurement of delays makes runs of each change. Each run has at most longestDelay units, or longestDelayN times
// N.
const (
	delayRuns     = 100
	longestDelay  = 20_000
	longestDelayN = 20
)

// Measure measures how often the tests of a group raise false alarms, and how soon they detect changes. Units must not
// be empty. The result depends only on the inputs, not on the run time. Measure does not modify its inputs.
func Measure(of battery.Armed, with Measuring) Measurement {
	run := 1
	if of.Tests.Dependent() {
		run = dependentRun
	}
	m := &measuring{
		Measuring: with, of: of, healthy: battery.NewSample(of.Tests, with.Units, run),
		work: max(1, int(with.Seconds*1e9/float64(unitCost+branchCost*of.Tests.Branches()))),
	}
	m.judge = of.Judge(m.healthy.Columns)
	out := Measurement{N: of.N}
	if len(m.judge.Tests) == 0 {
		return out
	}
	out.FalseAlarms = m.falseAlarms(out.N)
	out.FalseAlarms.Dependent = run > 1
	out.Delays = m.delays(out.N)
	return out
}

// measuring is a running measurement.
type measuring struct {
	Measuring
	of      battery.Armed
	healthy *battery.Sample
	judge   *battery.Judge
	work    int // units that may be judged, half of them for false alarms

	mu   sync.Mutex
	done float64
}

// The streams of random numbers of a measurement, by purpose.
const (
	directStream uint64 = iota << 32
	resampledStream
	changeStream
	delayStream
)

func (m *measuring) rng(stream uint64, part int) *rand.Rand {
	return rand.New(rand.NewPCG(m.Seed^m.of.Seed, stream+uint64(part)))
}

// progress adds to the share of completed work.
func (m *measuring) progress(share float64) {
	if m.Progress == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += share
	m.Progress(m.done)
}

// falseAlarms measures the mean time between alarms of unchanged units: at n, or at the largest lower budget at which
// enough alarms occur within the allowed work.
func (m *measuring) falseAlarms(n float64) FalseAlarms {
	work := m.work / 2
	alarms := directAlarms + resamples*resampledAlarms
	ratio := max(expectedRatio, m.of.Promise.ARL0/m.of.Promise.N)
	out := FalseAlarms{At: max(min(n, watch.LeastPromised), min(n, float64(work)/float64(alarms)/ratio))}
	lowered := math.Log(n / out.At)
	all := m.each(resamples+1, func(i int) battery.Count {
		j := m.judge.Again()
		j.Lower(lowered)
		if i == 0 {
			defer m.progress(.5 * directAlarms / float64(alarms))
			return j.Count(m.healthy, m.rng(directStream, 0), directAlarms, work*directAlarms/alarms)
		}
		defer m.progress(.5 * resampledAlarms / float64(alarms))
		rng := m.rng(resampledStream, i)
		return j.Count(m.healthy.Resampled(rng), rng, resampledAlarms, work*resampledAlarms/alarms)
	})
	for _, c := range all {
		out.Units += c.Units
		out.Alarms += c.Alarms
	}
	out.ARL0, out.Low, out.High = m.interval(all[0], all[1:])
	return out
}

// interval returns the mean time between alarms and its 90% interval from the alarms of the units themselves and of
// samples drawn from them. Held-out units are themselves a sample of the telemetry of interest. The drawn samples
// differ from them as they differ from that telemetry, in the logarithm (the basic bootstrap interval, Davison &
// Hinkley 1997, 5.2, widened to include the estimate). The baseline's own units cannot test their baseline: then
// the drawn samples stand for later units, and interval returns their median.
//
// If alarms are too rare for that, the interval is that of their number alone.
func (m *measuring) interval(direct battery.Count, drawn []battery.Count) (arl0, low, high float64) {
	times, all := make([]float64, len(drawn)), battery.Count{}
	for i, c := range drawn {
		times[i] = c.ARL0()
		all.Units, all.Alarms = all.Units+c.Units, all.Alarms+c.Alarms
	}
	switch {
	case m.HeldOut && direct.Alarms < rareAlarms:
		return direct.Interval()
	case !m.HeldOut && all.Alarms < rareAlarms*resamples/resampledAlarms:
		return all.Interval()
	}
	q := detectors.Quantiles(times, .05, .5, .95)
	if !m.HeldOut {
		return q[1], q[0], q[2]
	}
	arl0 = direct.ARL0()
	return arl0, min(arl0, arl0*arl0/q[2]), max(arl0, arl0*arl0/q[0])
}

// each runs work for all parts in parallel. Each part has separate random numbers, so that the result does not
// depend on the number of cores.
func (m *measuring) each(parts int, work func(part int) battery.Count) []battery.Count {
	out := make([]battery.Count, parts)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() { out[i] = work(i) })
	}
	wg.Wait()
	return out
}

// delays measures how soon changes are detected with the thresholds for n.
func (m *measuring) delays(n float64) []Delay {
	changes := changesOf(m.Units)
	out := make([]Delay, len(changes))
	var wg sync.WaitGroup
	for i, c := range changes {
		wg.Go(func() {
			defer m.progress(.5 / float64(len(changes)))
			out[i] = m.delay(i, c, int(min(longestDelay, longestDelayN*n)), m.work/2/len(changes))
		})
	}
	wg.Wait()
	return out
}

func (m *measuring) delay(i int, c change, longest, most int) Delay {
	out := Delay{
		Signal: c.signal, Change: c.name, Note: c.note, Longest: longest,
		Units: math.NaN(), StandardError: math.NaN(), Missed: math.NaN(),
	}
	if c.apply == nil {
		return out
	}
	rng := m.rng(changeStream, i)
	changed := make([]*ingest.Unit, len(m.Units))
	for k, u := range m.Units {
		changed[k] = c.to(u, rng)
	}
	after := battery.NewSample(m.of.Tests, changed, m.healthy.Row).In(m.healthy.Columns)
	d := m.judge.Again().Delays(m.healthy, after, m.rng(delayStream, i), delayRuns, longest, most)
	found := float64(d.Found.N)
	out.Runs = int(d.Found.N) + d.Missed
	if out.Runs == 0 {
		out.Note = "healthy telemetry raises so many alarms that changes cannot be distinguished"
		return out
	}
	out.Missed = float64(d.Missed) / float64(out.Runs)
	if found > 0 {
		out.Units = d.Found.Mean
	}
	if found > 1 {
		out.StandardError = d.Found.SD() / math.Sqrt(found-1)
	}
	return out
}
