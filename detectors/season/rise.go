package season

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// levels is a run of successive days that are fitted with the same mean.
type levels struct {
	n, mean float64
	days    int
}

// DayFactorInRise is like DayFactor, but for values that rise over the days by an unknown amount. Differences are
// measured about the non-decreasing means of days that fit best, so a rise alone does not count as a difference between
// days. A rise as steep as the differences between days hides them, but it has then also left bad days far above the
// mean of the sample.
//
// The fit adapts to the days: of D days with L different levels, D - 1.5 L count (Meyer & Woodroofe, Annals of
// Statistics 2000). The p-value is for differences larger than those within days.
func DayFactorInRise(x []float64, day []int64) (f, p float64) {
	sums, squares, counts := map[int64]float64{}, map[int64]float64{}, map[int64]float64{}
	for i, v := range x {
		sums[day[i]] += v
		squares[day[i]] += v * v
		counts[day[i]]++
	}
	days := slices.Sorted(maps.Keys(sums))
	within := 0.0
	var means []levels
	for _, d := range days {
		mean := sums[d] / counts[d]
		within += squares[d] - counts[d]*mean*mean
		means = append(means, levels{counts[d], mean, 1})
	}
	fit := isotonic(means)
	_, variance := meanVariance(x)
	freedom := float64(len(days) - len(fit))
	if freedom < 1 || len(days) < 3 || float64(len(x)) < 2*float64(len(days)) || variance == 0 || within <= 0 {
		return 1, 1
	}
	between, next := 0.0, 0
	for _, l := range fit {
		for _, d := range days[next : next+l.days] {
			off := sums[d]/counts[d] - l.mean
			between += counts[d] * off * off
		}
		next += l.days
	}
	within /= float64(len(x) - len(days))
	counted := max(1, float64(len(days))-1.5*float64(len(fit)))
	return between / counted / variance, distuv.ChiSquared{K: freedom}.Survival(between / within)
}

// isotonic returns the non-decreasing levels that fit the means of successive days best (pool adjacent violators,
// Barlow et al. 1972).
func isotonic(means []levels) (fit []levels) {
	for _, day := range means {
		fit = append(fit, day)
		for k := len(fit) - 1; k > 0 && fit[k].mean <= fit[k-1].mean; k-- {
			a, b := fit[k-1], fit[k]
			n := a.n + b.n
			fit = append(fit[:k-1], levels{n, (a.n*a.mean + b.n*b.mean) / n, a.days + b.days})
		}
	}
	return fit
}
