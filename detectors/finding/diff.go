package finding

import (
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// QuantityDiff holds one quantity of two baselines side by side.
type QuantityDiff struct {
	Signal, Quantity string
	A, B             Distribution // without histogram; Units is 0 if the baseline lacks the quantity
	// D is the two-sample Kolmogorov-Smirnov distance. P is the probability of a distance at least as large if both are
	// samples of independent units from one distribution. They are NaN if one of the baselines lacks the quantity. P is
	// that of a single test: of twenty quantities one has P below .05 by chance.
	D, P float64
}

// DiffSamples compares two baselines, quantity by quantity, sorted by signal.
func DiffSamples(a, b []QuantitySample) []QuantityDiff {
	var out []QuantityDiff
	for _, of := range a {
		out = append(out, diffQuantity(of, find(b, of)))
	}
	for _, of := range b {
		if find(a, of).Values == nil {
			out = append(out, diffQuantity(QuantitySample{Signal: of.Signal, Quantity: of.Quantity}, of))
		}
	}
	slices.SortStableFunc(out, func(x, y QuantityDiff) int { return strings.Compare(x.Signal, y.Signal) })
	return out
}

func find(in []QuantitySample, like QuantitySample) QuantitySample {
	i := slices.IndexFunc(in, func(s QuantitySample) bool { return s.Signal == like.Signal && s.Quantity == like.Quantity })
	if i < 0 {
		return QuantitySample{}
	}
	return in[i]
}

func diffQuantity(a, b QuantitySample) QuantityDiff {
	d := QuantityDiff{
		Signal: a.Signal, Quantity: a.Quantity, A: DescribeSample(slices.Clone(a.Values), nil), B: DescribeSample(slices.Clone(b.Values), nil),
	}
	d.D, d.P = detectors.TwoSampleKS(a.Values, b.Values)
	return d
}

// DescribeSample describes a sample, which it sorts. The histogram needs ranks; nil leaves it out.
func DescribeSample(x []float64, ranks *detectors.Ranks) Distribution {
	if len(x) == 0 {
		return Distribution{}
	}
	slices.Sort(x)
	return describeSorted(x, ranks)
}

// DescribeBaseline describes the sample of the ranks, and returns its deciles.
func DescribeBaseline(ranks *detectors.Ranks) (d Distribution, deciles [9]float64) {
	sample := ranks.Sample()
	copy(deciles[:], detectors.QuantilesOf(sample, .1, .2, .3, .4, .5, .6, .7, .8, .9))
	return describeSorted(sample, ranks), deciles
}

// meanAndSD returns the same as ingest.Moments, but no value waits for the division of the one before.
func meanAndSD(x []float64) (mean, sd float64) {
	middle, n := x[len(x)/2], float64(len(x)) // equal values then have no rounding errors
	sum := 0.0
	for _, v := range x {
		sum += v - middle
	}
	mean = middle + sum/n
	squares := 0.0
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	if sd = math.Sqrt(squares / n); !math.IsNaN(sd) && !math.IsInf(sd, 0) {
		return mean, sd
	}
	var m ingest.Moments // some values are not finite
	for _, v := range x {
		m.Add(v)
	}
	return m.Mean, m.SD()
}

func describeSorted(x []float64, ranks *detectors.Ranks) Distribution {
	q := detectors.QuantilesOf(x, .1, .5, .9)
	mean, sd := meanAndSD(x)
	d := Distribution{Units: len(x), Mean: mean, SD: sd, Q10: q[0], Q50: q[1], Q90: q[2]}
	if ranks != nil {
		d.HistogramRatio = histogramOf(x, ranks)
	}
	return d
}

// histogramOf returns the share of a sorted sample in each decile of the baseline.
func histogramOf(sorted []float64, ranks *detectors.Ranks) (ratio [10]float64) {
	from, each := 0, 1/float64(len(sorted))
	for decile := range ratio {
		to := ranks.UpToDecile(sorted, decile)
		for range to - from {
			ratio[decile] += each
		}
		from = to
	}
	return ratio
}
