package detectors

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// DayFactor is f_day = n var(day means) / var(x), with n the mean number of values a day: by how much more the means of
// days vary than those of as many independent values. day names the day of each value. p is the p-value of so large a
// factor where days are alike: f_day (D - 1) then follows about a chi-square law with D - 1 degrees of freedom. Fewer
// than three days of at least two values each say nothing: f_day is 1 and p is 1.
func DayFactor(x []float64, day []int64) (f, p float64) {
	sums, counts := map[int64]float64{}, map[int64]float64{}
	for i, v := range x {
		sums[day[i]] += v
		counts[day[i]]++
	}
	days := float64(len(sums))
	mean, variance := meanVariance(x)
	if days < 3 || float64(len(x)) < 2*days || variance == 0 {
		return 1, 1
	}
	between := 0.0
	for _, d := range slices.Sorted(maps.Keys(sums)) { // in order, or the last bit of the sum would be luck
		off := sums[d]/counts[d] - mean
		between += counts[d] * off * off
	}
	f = between / (days - 1) / variance
	return f, distuv.ChiSquared{K: days - 1}.Survival(f * (days - 1))
}
