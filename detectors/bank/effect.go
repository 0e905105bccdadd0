package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// effect compares the values that the tests of a quantity have seen since an onset with its baseline, and says what is
// certain of the stream's main quantity.
func (s *stream) effect(q *quantity, onset int64) (Effect, *Histogram) {
	current := q.since(onset)
	var now ingest.Moments
	for _, x := range current {
		now.Add(x)
	}
	baseline := q.adjustedSample()
	d := detectors.NewDisplacement(baseline, current)
	return Effect{
		Quantity: q.Name, BaselineMean: q.Mean, BaselineSD: q.SD,
		CurrentMean: now.Mean, CurrentSD: now.SD(), CurrentUnits: int(now.N),
		MeanShift: now.Mean - q.Mean, StandardShift: q.standardShift(now.Mean),
		MedianShift: d.Median, Q10Shift: d.Q10, Q90Shift: d.Q90, SpreadRatio: d.SpreadRatio, Wasserstein: d.Wasserstein,
		AtLeast: s.certain(),
	}, newHistogram(baseline, current)
}

// standardShift is how far a mean lies from that of the baseline, in standard deviations of it; 0 where that is 0.
func (q *quantity) standardShift(mean float64) float64 {
	if q.SD == 0 {
		return 0
	}
	return (mean - q.Mean) / q.SD
}

// certain gives the certificate of the stream's main quantity, 0 where there is none.
func (s *stream) certain() float64 {
	if q := s.find(mainQuantity(s.Signal)); q != nil && q.Certificate != nil {
		return q.Certificate.AtLeast()
	}
	return 0
}

// certify begins what a new baseline begins: the traces, and the certificate of the main quantity.
func (s *stream) certify() {
	for _, q := range s.Quantities {
		q.Trace, q.Judged, q.Certificate = trace{}, trace{}, nil
	}
	q := s.find(mainQuantity(s.Signal))
	if q == nil || q.Ranks == nil || q.Season != nil { // with a season values do not follow one law
		return
	}
	c, err := detectors.NewCertificate(q.Ranks.Sample(), q.factor())
	if err != nil {
		return // no finite baseline: there is nothing to compare with
	}
	q.Certificate = c
}

// keep remembers a value that the tests see, for the onset and the effect of an alarm.
func (q *quantity) keep(r reading, ordinal int64) {
	if q.Season != nil {
		q.Trace.add(q.Season.Adjusted(r.x, r.ts), ordinal)
		q.Judged.add(q.judged(r), ordinal)
		return
	}
	q.Trace.add(r.x, ordinal)
	if q.Certificate != nil {
		q.Certificate.Add(r.x)
	}
}

// forget restarts what keep has remembered.
func (q *quantity) forget() {
	q.Trace, q.Judged = trace{}, trace{}
	if q.Certificate != nil {
		q.Certificate.Reset()
	}
}

// factor is the dependence factor of the quantity, 1 where it is not measured.
func (q *quantity) factor() float64 {
	if w := q.walks(); w != nil {
		return w.Factor
	}
	return 1
}
