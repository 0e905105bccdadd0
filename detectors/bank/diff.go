package bank

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// QuantityDiff holds one quantity of two baselines side by side.
type QuantityDiff struct {
	Signal, Quantity string
	A, B             Distribution // without histogram; Units is 0 where the baseline has not got the quantity
	// D is the two-sample Kolmogorov-Smirnov distance, and P the probability of one at least as large where both are
	// samples of one law of independent units. NaN where one of the baselines has not got the quantity. It is one test: of
	// twenty quantities one has P below .05 by chance.
	D, P float64
}

// DiffSamples holds two baselines side by side, quantity by quantity, sorted by signal.
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
		Signal: a.Signal, Quantity: a.Quantity, A: describeSample(slices.Clone(a.Values), nil), B: describeSample(slices.Clone(b.Values), nil),
	}
	d.D, d.P = detectors.TwoSampleKS(a.Values, b.Values)
	return d
}
