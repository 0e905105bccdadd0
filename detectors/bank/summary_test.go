package bank

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// The summary of a bank agrees with plain statistics of its units.
func TestSummaryAgreesWithPlainStatistics(t *testing.T) {
	p, a := newBank(watch.DefaultConfig()), newAgent(200)
	var returns, baseline []float64
	a.edit = func(u *ingest.Unit) { returns = append(returns, u.Return) }
	a.feed(p, 500)
	baseline = slices.Clone(returns)
	a.feed(p, 300)
	s := stateOf(t, p, "return")
	last := returns[len(returns)-stream.CurrentUnits:]
	for name, pair := range map[string][2]float64{
		"baseline mean": {s.Baseline.Mean, stat.Mean(baseline, nil)},
		"current mean":  {s.Current.Mean, stat.Mean(last, nil)},
		"current sd":    {s.Current.SD, stat.PopStdDev(last, nil)},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	share := 0.0
	for _, x := range s.Current.HistogramRatio {
		share += x
	}
	if math.Abs(share-1) > 1e-9 {
		t.Errorf("the histogram sums to %v", share)
	}
	slices.Sort(baseline)
	last = slices.Clone(last)
	slices.Sort(last)
	want := stat.KolmogorovSmirnov(baseline, nil, last, nil)
	i := slices.IndexFunc(s.Detectors, func(d finding.DetectorSummary) bool { return d.Detector == finding.DetectorKS })
	if i < 0 || math.Abs(s.Detectors[i].Statistic-want) > 1e-12 {
		t.Errorf("detectors %+v, want a Kolmogorov-Smirnov statistic of %v", s.Detectors, want)
	}
	shares := 0.0
	for _, a := range p.Summary().Groups[0].ActionShare {
		shares += a.Current
	}
	if math.Abs(shares-1) > 1e-9 {
		t.Errorf("the shares of the actions sum to %v", shares)
	}
}
