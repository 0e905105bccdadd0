package stream

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/certificate"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Effect compares the values that the tests of a quantity have seen since an onset with its baseline. The result
// includes the certificate of the stream's main quantity.
func (s *Stream) Effect(q *Quantity, onset int64) (finding.Effect, *finding.Histogram) {
	current := q.Since(onset)
	var now ingest.Moments
	for _, x := range current {
		now.Add(x)
	}
	baseline := q.adjustedSample()
	d := detectors.NewDisplacement(baseline, current)
	return finding.Effect{
		Quantity: q.Name, BaselineMean: q.Mean, BaselineSD: q.SD,
		CurrentMean: now.Mean, CurrentSD: now.SD(), CurrentUnits: int(now.N),
		MeanShift: now.Mean - q.Mean, StandardShift: q.StandardShift(now.Mean),
		MedianShift: d.Median, Q10Shift: d.Q10, Q90Shift: d.Q90, SpreadRatio: d.SpreadRatio, Wasserstein: d.Wasserstein,
		AtLeast: s.certain(),
	}, finding.NewHistogram(baseline, current)
}

// StandardShift returns the distance between a mean and that of the baseline, in standard deviations of the baseline; 0
// if the standard deviation is 0.
func (q *Quantity) StandardShift(mean float64) float64 {
	if q.SD == 0 {
		return 0
	}
	return (mean - q.Mean) / q.SD
}

func (s *Stream) certain() float64 {
	if q := s.Find(signals.MainQuantity(s.Signal)); q != nil && q.Certificate != nil {
		return q.Certificate.AtLeast()
	}
	return 0
}

// certify starts the traces, and the certificate of the main quantity. Both start again with each new baseline.
func (s *Stream) certify() {
	for _, q := range s.Quantities {
		q.Certificate = nil
		q.newTraces()
	}
	q := s.Find(signals.MainQuantity(s.Signal))
	if q == nil || q.Ranks == nil || q.Season != nil { // with a season, values do not follow a single distribution
		return
	}
	c, err := certificate.New(q.Ranks.Sample(), q.Factor())
	if err != nil {
		return // no finite baseline to compare with
	}
	q.Certificate = c
}

// tracedRanks returns the ranks that the trace of the quantity refers to; nil if values are judged among similar hours.
func (q *Quantity) tracedRanks() *detectors.Ranks {
	if q.Season != nil {
		return nil
	}
	return q.Ranks
}

func (q *Quantity) newTraces() {
	q.Trace, q.judged, q.slow = newTrace(q.tracedRanks()), nil, detectors.Slow{}
	if q.Season != nil {
		q.judged = &Trace{}
	}
}

// keep records a value that the tests have seen, for the onset and the effect of an alarm.
func (q *Quantity) keep(r *Reading, v *value, ordinal int64) {
	if q.Season != nil {
		q.Trace.Add(q.Season.Adjusted(r.X, r.Ts), ordinal)
		q.judged.Add(v.judged, ordinal)
		return
	}
	q.Trace.add(r.X, v.slot, ordinal)
	if q.Certificate != nil {
		q.Certificate.Add(r.X)
	}
}

func (q *Quantity) forget() {
	q.newTraces()
	if q.Certificate != nil {
		q.Certificate.Reset()
	}
}

// Factor returns the dependence factor of the quantity; 1 if it is not measured.
func (q *Quantity) Factor() float64 {
	f := 1.0
	for i := range q.Tests {
		f = max(f, q.Tests[i].Factor())
	}
	return f
}

// Since returns the values, without the season, that tests have seen since a unit, at most the last CurrentUnits.
func (q *Quantity) Since(onset int64) []float64 { return q.AppendSince(nil, onset) }

// AppendSince appends the result of Since to values.
func (q *Quantity) AppendSince(values []float64, onset int64) []float64 {
	return q.Trace.appendNewest(values, onset)
}

// Turn returns the z score of the mean of the values since a unit, compared with the mean of the last CurrentUnits
// units before it; 0 if none of these is recorded. It uses the larger of the two standard deviations for both.
func (q *Quantity) Turn(onset int64, since []float64) float64 {
	before, after := ingest.Moments{}, MomentsOf(since)
	for ordinal, x := range q.Trace.since(max(q.Trace.oldest(), onset-CurrentUnits)) {
		if ordinal >= onset {
			break
		}
		before.Add(x)
	}
	change := after.Mean - before.Mean
	if before.N == 0 || after.N == 0 || change == 0 {
		return 0
	}
	return change / (max(before.SD(), after.SD()) * math.Sqrt(max(1, q.Factor())*(1/float64(before.N)+1/float64(after.N))))
}

// AppendJudged appends the values that the tests have judged since a unit, at most the most recent CurrentUnits.
func (q *Quantity) AppendJudged(values []float64, onset int64) []float64 {
	if q.Season == nil {
		return q.Trace.appendNewest(values, onset)
	}
	return q.judged.appendNewest(values, onset)
}
