package bank

import "github.com/rewardwatch/rewardwatch/detectors"

// gaugeValues is how many values the time between the false alarms of a gauge is measured on.
const gaugeValues = 30_000

// gauges are the detectors of a stream's main quantity that are there for people who compare: they page nobody and have
// no share of the budget. They see the values in standard deviations of the baseline from its mean, a unit whose stream has
// a fault being left out, and start anew with each baseline. A baseline without spread has none. Exported fields are its
// snapshot.
type gauges struct {
	_           struct{} `cbor:",toarray"`
	ADWIN       *detectors.ADWIN
	PageHinkley *detectors.PageHinkley
	Drifts      [2]int64          // found so far, earlier baselines included: by ADWIN, by Page-Hinkley
	ARL0        [2]detectors.ARL0 // of the same, on the baseline's values
}

// The places of the gauges in the arrays.
const (
	atADWIN = iota
	atPageHinkley
)

// startGauges starts the gauges of the stream's main quantity on a new baseline.
func (s *stream) startGauges() {
	q := s.find(mainQuantity(s.Signal))
	if q == nil {
		return
	}
	if q.Ranks == nil || q.SD == 0 {
		q.Gauges = nil
		return
	}
	before := q.Gauges
	q.Gauges = newGauges(q.standardized())
	if before != nil {
		q.Gauges.Drifts = before.Drifts
	}
}

// newGauges makes gauges that have seen nothing, and measures them on a baseline.
func newGauges(baseline []float64) *gauges {
	g := &gauges{ADWIN: detectors.NewADWIN(detectors.ADWINDelta), PageHinkley: detectors.NewPageHinkley()}
	g.ARL0 = [2]detectors.ARL0{
		atADWIN:       detectors.EmpiricalARL0(baseline, 0, gaugeValues, g.ADWIN.Add, g.ADWIN.Reset),
		atPageHinkley: detectors.EmpiricalARL0(baseline, 0, gaugeValues, g.PageHinkley.Add, g.PageHinkley.Reset),
	}
	g.ADWIN.Reset()
	g.PageHinkley.Reset()
	return g
}

// standardized gives the baseline in standard deviations from its mean.
func (q *quantity) standardized() []float64 {
	values := q.Ranks.Sample()
	for i, x := range values {
		values[i] = q.standardShift(x)
	}
	return values
}

func (g *gauges) observe(x float64) {
	if g.ADWIN.Add(x) {
		g.Drifts[atADWIN]++
	}
	if g.PageHinkley.Add(x) {
		g.Drifts[atPageHinkley]++
	}
}

// summarizeGauges tells where the gauges of the quantity stand: ADWIN by the mean of its window in standard deviations of
// the baseline from its mean, Page-Hinkley by how far it has gone to its own threshold.
func (q *quantity) summarizeGauges() []DetectorSummary {
	g := q.Gauges
	if g == nil {
		return nil
	}
	windowMean := 0.0
	if g.ADWIN.Width() > 0 {
		windowMean = g.ADWIN.Mean()
	}
	return []DetectorSummary{
		{Detector: DetectorADWIN, Statistic: windowMean, Branch: q.Name, Gauge: g.summarize(atADWIN)},
		{Detector: DetectorPageHinkley, Statistic: g.PageHinkley.Score(), Branch: q.Name, Gauge: g.summarize(atPageHinkley)},
	}
}

// summarize gives what is known of one of the gauges. Where no alarm came in n values, ARL0 is above n/3 with 95 %
// confidence: e^-3 is the chance of none in three times the mean.
func (g *gauges) summarize(which int) *GaugeSummary {
	arl0 := g.ARL0[which]
	s := &GaugeSummary{Drifts: g.Drifts[which], ARL0: arl0.Mean}
	if arl0.Alarms == 0 {
		s.ARL0, s.MoreThan = float64(arl0.Values)/3, true
	}
	return s
}
