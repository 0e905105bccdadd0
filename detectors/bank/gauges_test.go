package bank

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/divergence"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func gaugesOf(t *testing.T, p *Policy, signal string) map[string]finding.DetectorSummary {
	t.Helper()
	out := map[string]finding.DetectorSummary{}
	for _, d := range stateOf(t, p, signal).Detectors {
		if d.Gauge != nil {
			out[d.Detector] = d
		}
	}
	return out
}

// The gauges of a bank equal plain detectors on the standardized returns since the freeze.
func TestSimGaugesAgreeWithPlainDetectors(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(700)
	var returns []float64
	a.edit = func(u *ingest.Unit) { returns = append(returns, u.Return) }
	a.feed(p, 500)
	var m ingest.Moments
	for _, x := range returns {
		m.Add(x)
	}
	before := gaugesOf(t, p, "return")
	a.feed(p, 200)
	a.mean += 3
	a.feed(p, 400)
	adwin, pageHinkley := detectors.NewADWIN(detectors.ADWINDelta), detectors.NewPageHinkley()
	found := map[string]int64{}
	for _, x := range returns[500:] {
		z := (x - m.Mean) / m.SD()
		if adwin.Add(z) {
			found[finding.DetectorADWIN]++
		}
		if pageHinkley.Add(z) {
			found[finding.DetectorPageHinkley]++
		}
	}
	got := gaugesOf(t, p, "return")
	for name, want := range map[string]float64{finding.DetectorADWIN: adwin.Mean(), finding.DetectorPageHinkley: pageHinkley.Score()} {
		d := got[name]
		if d.Statistic != want || d.Threshold != 0 || d.Score != 0 {
			t.Errorf("%s: statistic %v, score %v of %v, want %v and neither score nor threshold", name, d.Statistic, d.Score, d.Threshold, want)
		}
		if drifts := d.Gauge.Drifts - before[name].Gauge.Drifts; drifts != found[name] || drifts == 0 {
			t.Errorf("%s: %d drifts, want %d and at least one", name, drifts, found[name])
		}
	}
}

// A new baseline restarts and measures the gauges; their earlier findings still count.
func TestSimGaugesStartAnewWithABaseline(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(701)
	a.feed(p, 110)
	q := p.groups[0].stream("return").Find("return")
	q.Gauges.Drifts[stream.AtPageHinkley] = 7
	a.feed(p, 140)
	if n := q.Gauges.ADWIN.Width(); n != 0 {
		t.Errorf("ADWIN has %d values at the freeze, want none", n)
	}
	d := gaugesOf(t, p, "return")[finding.DetectorPageHinkley]
	if d.Gauge.Drifts < 7 {
		t.Errorf("%d drifts, want those of the first baseline too", d.Gauge.Drifts)
	}
	want := detectors.NewPageHinkley()
	arl0 := detectors.EmpiricalARL0(q.Standardized(), 0, stream.GaugeValues, want.Add, want.Reset)
	if arl0.Alarms == 0 || d.Gauge.ARL0 != arl0.Mean || d.Gauge.MoreThan {
		t.Errorf("ARL0 %+v, want %+v", d.Gauge, arl0)
	}
	if d := gaugesOf(t, p, "return")[finding.DetectorADWIN]; !d.Gauge.MoreThan || d.Gauge.ARL0 != stream.GaugeValues/3 {
		t.Errorf("ARL0 of ADWIN %+v, want more than %d", d.Gauge, stream.GaugeValues/3)
	}
}

// A fault suspends the gauges, and a baseline without spread has none.
func TestSimGaugesLeaveOutWhatCannotBeJudged(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(702)
	a.feed(p, 510)
	q := p.groups[0].stream("reward").Find("mean")
	a.edit = func(u *ingest.Unit) { u.Reward.NonFinite = u.Reward.N }
	for stateOf(t, p, "reward").State != finding.TelemetryFault {
		a.feed(p, 1)
	}
	seen := q.Gauges.ADWIN.Width()
	a.feed(p, 5)
	if got := q.Gauges.ADWIN.Width(); got != seen {
		t.Errorf("%d values during a fault", got-seen)
	}

	constant, a := newBank(watch.DefaultConfig()), newAgent(703)
	a.edit = func(u *ingest.Unit) { u.Return = 500 }
	a.feed(constant, 520)
	if g := gaugesOf(t, constant, "return"); len(g) != 0 {
		t.Errorf("gauges %v of a return that never changes", g)
	}
}

// The gauges of a restored bank are identical bit for bit.
func TestSimGaugesAreRestored(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(704)
	a.feed(p, 650)
	back := restored(t, p)
	for range 100 {
		u := a.unit()
		p.Observe(u, time.Time{})
		back.Observe(u, time.Time{})
	}
	want, got := p.groups[0].stream("return").Find("return").Gauges, back.groups[0].stream("return").Find("return").Gauges
	for _, a := range []*detectors.ADWIN{got.ADWIN, want.ADWIN} {
		a.Rows = a.Rows[:a.Top+1] // without the empty rows
	}
	if !reflect.DeepEqual(got.ADWIN, want.ADWIN) || *got.PageHinkley != *want.PageHinkley || got.Drifts != want.Drifts || got.ARL0 != want.ARL0 {
		t.Errorf("restored %+v, want %+v", got, want)
	}
}

// The divergences are those between the counts of the baseline and of the last 200 units. Actions that are absent from
// the baseline are pooled with its rarer ones.
func TestSimActionMixIsOfTheLastUnits(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(705)
	a.feed(p, 500)
	base := p.groups[0].BaseActions
	baseline := []int64{base["a"], base["b"], base["c"], 0}
	a.shares = []float64{.4, .3, .1, .1, .1}
	current := make([]int64, 4)
	a.edit = func(u *ingest.Unit) {
		for _, c := range u.Actions {
			current[min(3, int(c.Name[0]-'a'))] += c.N
		}
	}
	a.feed(p, stream.CurrentUnits)
	p.Publish()
	mix := p.Summary().Groups[0].ActionMix
	want := []finding.ActionDivergence{}
	for _, m := range []struct {
		name string
		of   func(baseline, current []int64) divergence.Distance
	}{{finding.MeasurePSI, divergence.PSI}, {finding.MeasureJS, divergence.JensenShannon}, {finding.MeasureG, divergence.GStatistic}} {
		d := m.of(baseline, current)
		want = append(want, finding.ActionDivergence{Measure: m.name, Value: d.Value, Chance95: d.Chance95})
		if d.Value < d.Chance95 {
			t.Errorf("%s: %v is not above its chance level of %v", m.name, d.Value, d.Chance95)
		}
	}
	if !slices.Equal(mix.Divergences, want) {
		t.Errorf("divergences %v, want %v", mix.Divergences, want)
	}
	if before, now := divergence.Entropy(baseline), divergence.Entropy(current); mix.BaselineEntropy != before || mix.CurrentEntropy != now {
		t.Errorf("entropies %v and %v, want %v and %v", mix.BaselineEntropy, mix.CurrentEntropy, before, now)
	}
}

func TestActionMixWithoutActions(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(706)
	a.edit = func(u *ingest.Unit) { u.Actions, u.ActionKind = nil, ingest.ActionNone }
	a.feed(p, 120)
	p.Publish()
	if mix := p.Summary().Groups[0].ActionMix; mix.BaselineActions != 0 || mix.CurrentActions != 0 || mix.Divergences != nil {
		t.Errorf("%+v, want nothing", mix)
	}
}

// Steps of 0/1 are independent here, so PSI exceeds its chance level one time in twenty. The bound is three standard
// errors.
func TestSimActionDivergenceChanceLevel(t *testing.T) {
	const times = 60
	above := 0
	p, a := newBank(watch.DefaultConfig()), newAgent(707)
	a.feed(p, 2000)
	for range times {
		a.feed(p, stream.CurrentUnits)
		p.Publish()
		if d := p.Summary().Groups[0].ActionMix.Divergences[0]; d.Value > d.Chance95 {
			above++
		}
	}
	if got, most := float64(above)/times, .05+3*math.Sqrt(.05*.95/times); got > most {
		t.Errorf("above the chance level in %.2f, want at most %.2f", got, most)
	}
}
