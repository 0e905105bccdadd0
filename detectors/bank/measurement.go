package bank

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mathext"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Measuring says what the false alarms and the delays of a group are measured with.
type Measuring struct {
	Units    []*ingest.Unit // of the group, as Whole gives them, healthy, in time order; what is judged is drawn from them
	HeldOut  bool           // whether they came after the baseline; else they are the baseline's own
	Seed     uint64
	Seconds  float64             // that it may take, roughly: it is turned into a number of units to judge
	Progress func(share float64) // told how much has been done, by one goroutine at a time; may be nil
}

// Measurement is what was measured of a group's false alarms and delays.
type Measurement struct {
	// N is the group's part of the budget: the mean number of its units between its false alarms that leaves the policy
	// within its budget.
	N           float64
	FalseAlarms FalseAlarms
	Delays      []Delay
}

// FalseAlarms is how often units that have not changed raise an alarm.
type FalseAlarms struct {
	At        float64 // the N that thresholds were set for while it was measured: lower than the group's where that is too large to be measured
	ARL0      float64 // mean number of units between alarms; without an alarm, a lower limit
	Low, High float64 // its 90 % interval, which includes the luck of the units drawn from; High is infinite without an alarm
	Units     int     // judged
	Alarms    int     // among them
	Dependent bool    // whether units were drawn in a row, for they depend on one another
}

// Lacks reports whether the measured time between alarms is for certain below what it should be.
func (f FalseAlarms) Lacks() bool { return f.Alarms > 0 && f.High < f.At }

// Delay is how long a change takes to be found with the thresholds of the budget.
type Delay struct {
	Signal, Change string
	Units          float64 // mean number of units from the change to the alarm, over the runs that found it; NaN where none did
	StandardError  float64 // of Units over the runs; NaN where fewer than two found it
	Missed         float64 // share of the runs that had not found it after Longest units; NaN without a run
	Runs           int
	Longest        int
	Note           string // what to know of the figure, or why there is none
}

// dependentRun is how many units are drawn in a row where they depend on one another: as far as the dependence factor looks.
const dependentRun = 20

// The cost of judging a unit, in nanoseconds: it turns seconds into a number of units, so that what is measured does not
// depend on the machine.
const (
	unitCost   = 100
	branchCost = 10
)

// How false alarms are measured: on the units themselves until there are directAlarms, and on resamples samples drawn
// from them until each has resampledAlarms. The number of units that takes is expected to be the larger of expectedRatio
// and the promised one times N.
const (
	directAlarms    = 100
	resamples       = 20
	resampledAlarms = 10
	expectedRatio   = 2
	rareAlarms      = 10 // fewer are too few for more than an interval of their number
)

// How delays are measured: over runs of each change, each of them for longestDelay units or longestDelayN times N at
// most.
const (
	delayRuns     = 100
	longestDelay  = 20_000
	longestDelayN = 20
)

// Accepted gives the id of a group's baseline, "" before an accepted one is frozen.
func (p *Policy) Accepted(key ingest.Group) string {
	if g := p.byKey[key]; g != nil && !g.Baseline.Provisional {
		return g.Baseline.ID
	}
	return ""
}

// Healthy reports whether a unit, the last one of its group that Observe was given, is a measure of false alarms: it was
// judged, and its group has neither an open incident nor a telemetry fault.
func (p *Policy) Healthy(u *ingest.Unit) bool {
	g := p.byKey[u.Group]
	return g != nil && !u.Shadow && !g.Incident && g.Unjudged == "" && !g.Newcomers.wasEarly(u) && !g.ofOtherVersion(u) &&
		!slices.ContainsFunc(g.Streams, func(s *stream) bool { return s.State == TelemetryFault })
}

// ofOtherVersion reports whether a unit belongs to a version that has, or will have, another baseline.
func (g *group) ofOtherVersion(u *ingest.Unit) bool {
	version := u.Versions.Policy
	return g.cfg.OnNewVersion == OnNewVersionRebaseline && version != "" && version != g.Line.Versions.Version
}

// Whole gives the units that a group counts in, of those that telemetry comes in: the same where episodes end, blocks of
// the size that its baseline was found to need where none does.
func (p *Policy) Whole(key ingest.Group, units []*ingest.Unit) []*ingest.Unit {
	g := p.byKey[key]
	joining := blocks{Size: g.Blocks.Size, Mixed: g.Blocks.Mixed}
	var out []*ingest.Unit
	for _, u := range units {
		switch {
		case (u.End == ingest.EndBlock) != (g.Blocks.Size > 0):
			continue
		case g.Blocks.Size > 0:
			u = joining.add(u)
		}
		if u != nil {
			out = append(out, u)
		}
	}
	return out
}

// Measure measures how often the armed tests of a group raise false alarms, and how soon they find changes, on units of
// the user's own. The group must have a baseline, and Units must not be empty. The result depends on what it is given
// alone, not on the time it takes. The state of the bank is not touched.
func (p *Policy) Measure(key ingest.Group, with Measuring) Measurement {
	g := p.byKey[key]
	run := 1
	if g.noticed() {
		run = dependentRun
	}
	m := &measuring{
		Measuring: with, group: g, healthy: g.sample(with.Units, run),
		work: max(1, int(with.Seconds*1e9/float64(unitCost+branchCost*g.branchCount()))),
	}
	m.judge = newJudge(g, m.healthy.columns)
	out := Measurement{N: p.part(g)}
	if len(m.judge.tests) == 0 {
		return out
	}
	out.FalseAlarms = m.falseAlarms(out.N)
	out.FalseAlarms.Dependent = run > 1
	out.Delays = m.delays(out.N)
	return out
}

// part is the number of units between false alarms of a group that leaves its policy within the budget: groups share it.
func (p *Policy) part(g *group) float64 {
	all := 0.0
	for _, other := range p.groups {
		all += other.Share
	}
	return g.Promise.N * all / g.Share
}

// noticed reports whether units were seen to depend on one another in an armed stream.
func (g *group) noticed() bool {
	return slices.ContainsFunc(g.Streams, func(s *stream) bool { return len(s.armed()) > 0 && s.factor() > 1 })
}

// measuring is a measurement that goes on.
type measuring struct {
	Measuring
	group   *group
	healthy *sample
	judge   *judge
	work    int // units that may be judged; half of them for false alarms

	mu   sync.Mutex
	done float64
}

// The streams of random numbers of a measurement, by what they are for.
const (
	directStream uint64 = iota << 32
	resampledStream
	changeStream
	delayStream
)

func (m *measuring) rng(stream uint64, part int) *rand.Rand {
	return rand.New(rand.NewPCG(m.Seed^m.group.Baseline.seed(), stream+uint64(part)))
}

// progress adds to the share that has been done.
func (m *measuring) progress(share float64) {
	if m.Progress == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += share
	m.Progress(m.done)
}

// falseAlarms measures the mean time between alarms of units that have not changed, at n or at the largest budget below
// at which enough of them come within the work allowed.
func (m *measuring) falseAlarms(n float64) FalseAlarms {
	work := m.work / 2
	alarms := directAlarms + resamples*resampledAlarms
	ratio := max(expectedRatio, m.group.Promise.ARL0/m.group.Promise.N)
	out := FalseAlarms{At: max(min(n, leastPromised), min(n, float64(work)/float64(alarms)/ratio))}
	lowered := math.Log(n / out.At)
	all := m.each(resamples+1, func(i int) count {
		j := m.judge.again()
		j.lower(lowered)
		if i == 0 {
			defer m.progress(.5 * directAlarms / float64(alarms))
			return j.count(m.healthy, m.rng(directStream, 0), directAlarms, work*directAlarms/alarms)
		}
		defer m.progress(.5 * resampledAlarms / float64(alarms))
		rng := m.rng(resampledStream, i)
		return j.count(m.healthy.resampled(rng), rng, resampledAlarms, work*resampledAlarms/alarms)
	})
	for _, c := range all {
		out.Units += c.units
		out.Alarms += c.alarms
	}
	out.ARL0, out.Low, out.High = m.interval(all[0], all[1:])
	return out
}

// interval gives the mean time between alarms and its 90 % interval from the alarms of the units themselves and of
// samples drawn from them. Held-out units are themselves drawn from what there is to know about: the drawn samples differ
// from them as they do from that, in the logarithm (the basic bootstrap interval, Davison & Hinkley 1997, 5.2, which is
// widened to hold the estimate). The
// baseline's own units are no test of a baseline: there the drawn samples stand for what comes after it, and the middle
// of them is given.
//
// Where alarms are too rare for that, the interval is that of their number alone.
func (m *measuring) interval(direct count, drawn []count) (arl0, low, high float64) {
	times, all := make([]float64, len(drawn)), count{}
	for i, c := range drawn {
		times[i] = c.arl0()
		all.units, all.alarms = all.units+c.units, all.alarms+c.alarms
	}
	switch {
	case m.HeldOut && direct.alarms < rareAlarms:
		return direct.interval()
	case !m.HeldOut && all.alarms < rareAlarms*resamples/resampledAlarms:
		return all.interval()
	}
	q := detectors.Quantiles(times, .05, .5, .95)
	if !m.HeldOut {
		return q[1], q[0], q[2]
	}
	arl0 = direct.arl0()
	return arl0, min(arl0, arl0*arl0/q[2]), max(arl0, arl0*arl0/q[0])
}

// interval gives the mean time between alarms and its 90 % interval where the times are exponential (Garwood 1936).
func (c count) interval() (arl0, low, high float64) {
	high = math.Inf(1)
	if c.alarms > 0 {
		high = float64(c.units) / mathext.GammaIncRegInv(float64(c.alarms), .05)
	}
	return c.arl0(), float64(c.units) / mathext.GammaIncRegInv(float64(c.alarms+1), .95), high
}

// each runs work on all parts side by side, each with numbers of its own, so that the result does not depend on how many
// cores there are.
func (m *measuring) each(parts int, work func(part int) count) []count {
	out := make([]count, parts)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() { out[i] = work(i) })
	}
	wg.Wait()
	return out
}

// delays measures how soon changes are found with the thresholds for n.
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
	after := m.group.sample(changed, m.healthy.run).in(m.healthy.columns)
	d := m.judge.again().delays(m.healthy, after, m.rng(delayStream, i), delayRuns, longest, most)
	found := float64(d.found.N)
	out.Runs = int(d.found.N) + d.missed
	if out.Runs == 0 {
		out.Note = "healthy units alarm so often that no change can be told from them"
		return out
	}
	out.Missed = float64(d.missed) / float64(out.Runs)
	if found > 0 {
		out.Units = d.found.Mean
	}
	if found > 1 {
		out.StandardError = d.found.SD() / math.Sqrt(found-1)
	}
	return out
}
