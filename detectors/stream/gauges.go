package stream

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// GaugeValues is the number of values used to measure the average time between false alarms of a gauge.
const GaugeValues = 30_000

// gauges are the detectors of a stream's main quantity that only serve comparison: they never page and have no share of
// the budget. They see values in standard deviations of the baseline from its mean, except in units with a fault of the
// stream. They restart with each baseline. A baseline without spread has no gauges. Exported fields are saved.
type gauges struct {
	ADWIN       *detectors.ADWIN
	PageHinkley *detectors.PageHinkley
	Drifts      [2]int64          // number found so far, including with earlier baselines: by ADWIN, by Page-Hinkley
	ARL0        [2]detectors.ARL0 // of both, on the baseline's values
}

// Indices of the gauges in the arrays.
const (
	atADWIN = iota
	AtPageHinkley
)

// StartGauges starts the gauges of the main quantities of streams with new baselines. Gauges of equal baselines are
// measured once, such as those of the return and the reward of one-step episodes.
func StartGauges(streams []*Stream) {
	var started []*Quantity
	for _, s := range streams {
		q := s.Find(signals.MainQuantity(s.Signal))
		switch {
		case q == nil:
		case q.Ranks == nil || q.SD == 0:
			q.Gauges = nil
		default:
			q.startGauges(started)
			started = append(started, q)
		}
	}
}

// startGauges starts the gauges of the quantity, and measures them unless a started quantity has an equal baseline.
func (q *Quantity) startGauges(started []*Quantity) {
	before := q.Gauges
	q.Gauges = &gauges{ADWIN: detectors.NewADWIN(detectors.ADWINDelta), PageHinkley: detectors.NewPageHinkley()}
	if before != nil {
		q.Gauges.Drifts = before.Drifts
	}
	same := slices.IndexFunc(started, func(other *Quantity) bool {
		return other.Mean == q.Mean && other.SD == q.SD && slices.Equal(other.Ranks.Points, q.Ranks.Points) &&
			slices.Equal(other.Ranks.Below, q.Ranks.Below)
	})
	if same >= 0 {
		q.Gauges.ARL0 = started[same].Gauges.ARL0
		return
	}
	q.Gauges.ARL0[atADWIN], q.Gauges.ARL0[AtPageHinkley] = detectors.GaugeARL0(q.Standardized(), 0, GaugeValues)
}

// Standardized returns the values of the baseline, in standard deviations from their mean.
func (q *Quantity) Standardized() []float64 {
	values := q.Ranks.Sample()
	for i, x := range values {
		values[i] = q.StandardShift(x)
	}
	return values
}

func (g *gauges) Observe(x float64) {
	if g.ADWIN.Add(x) {
		g.Drifts[atADWIN]++
	}
	if g.PageHinkley.Add(x) {
		g.Drifts[AtPageHinkley]++
	}
}

// SummarizeGauges returns the state of the gauges of the quantity. The statistic of ADWIN is the mean of its window, in
// standard deviations of the baseline from its mean. The statistic of Page-Hinkley is its progress towards its own
// threshold.
func (q *Quantity) SummarizeGauges() []finding.DetectorSummary {
	g := q.Gauges
	if g == nil {
		return nil
	}
	windowMean := 0.0
	if g.ADWIN.Width() > 0 {
		windowMean = g.ADWIN.Mean()
	}
	return []finding.DetectorSummary{
		{Detector: finding.DetectorADWIN, Statistic: windowMean, Branch: q.Name, Gauge: g.summarize(atADWIN)},
		{Detector: finding.DetectorPageHinkley, Statistic: g.PageHinkley.Score(), Branch: q.Name, Gauge: g.summarize(AtPageHinkley)},
	}
}

// summarize returns the summary of one gauge. If n values raised no alarm, ARL0 is above n/3 with 95% confidence: e^-3
// is the probability of no alarm in three times the mean.
func (g *gauges) summarize(which int) *finding.GaugeSummary {
	arl0 := g.ARL0[which]
	s := &finding.GaugeSummary{Drifts: g.Drifts[which], ARL0: arl0.Mean}
	if arl0.Alarms == 0 {
		s.ARL0, s.MoreThan = float64(arl0.Values)/3, true
	}
	return s
}
