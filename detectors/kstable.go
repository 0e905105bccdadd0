package detectors

import (
	"math"
	"slices"
)

//go:generate go run ./kstable -o kstabledata.go

// ksThresholds is a table of thresholds: d[i][j][k] belongs to windows[i], sizes[j] and levels[k]. Sizes and levels
// ascend; d falls with the size and rises with the level.
type ksThresholds struct {
	windows []int     // values in the window
	sizes   []int     // baseline points
	levels  []float64 // ARL0 in units
	d       [][][]float64
}

// KSThreshold returns the threshold d of SlidingKS for a baseline of m points and a window. It is the smallest for
// which, with 99 % of baselines, the mean number of units from a full window to the first D >= d is at least
// exp(logARL0), if units are independent and follow the baseline's distribution. It is the same for every continuous
// distribution. On data with ties D is never larger than on the data with its ties broken, so there d is conservative.
//
// The program in the directory kstable computes the table from exact probabilities of D >= d for each baseline, and
// from simulated streams, which show how often such units cluster. The streams reach an ARL0 of a million; up to a
// thousand million the table extrapolates them. Between two levels d^2 is linear in logARL0; beyond the highest the
// line of the last tenfold continues. The distribution function of a baseline is off by about 1/sqrt(m), so d is nearly
// a line in 1/sqrt(m) and convex in log(m). Between two sizes it is read off the chord over log(m), which lies above.
// Beyond the largest size d stays constant, and below the lowest level too: all three err on the safe side.
//
// ok is false, and d is NaN, if there is no threshold: m below the smallest size, a window that is not in the
// table, a level that needs a threshold of 1 or more, or NaN.
func KSThreshold(m, window int, logARL0 float64) (d float64, ok bool) {
	d = ksTable.threshold(m, window, logARL0)
	if !(d < 1) { // including NaN
		return math.NaN(), false
	}
	return d, true
}

// threshold returns NaN outside the table, and may exceed 1.
func (t *ksThresholds) threshold(m, window int, logARL0 float64) float64 {
	w := slices.Index(t.windows, window)
	if w < 0 || m < t.sizes[0] {
		return math.NaN()
	}
	rows, last := t.d[w], len(t.sizes)-1
	if m >= t.sizes[last] {
		return t.at(rows[last], logARL0)
	}
	j, exact := slices.BinarySearch(t.sizes, m)
	if exact {
		return t.at(rows[j], logARL0)
	}
	return chord(math.Log(float64(m)),
		math.Log(float64(t.sizes[j-1])), t.at(rows[j-1], logARL0),
		math.Log(float64(t.sizes[j])), t.at(rows[j], logARL0))
}

// at returns the value of a row at a level.
func (t *ksThresholds) at(row []float64, logARL0 float64) float64 {
	last := len(t.levels) - 1
	if logARL0 <= math.Log(t.levels[0]) {
		return row[0]
	}
	from, to := t.tenfoldBelow(last), last
	if logARL0 < math.Log(t.levels[last]) {
		to = 1
		for math.Log(t.levels[to]) < logARL0 {
			to++
		}
		from = to - 1
	}
	return math.Sqrt(chord(logARL0,
		math.Log(t.levels[from]), row[from]*row[from],
		math.Log(t.levels[to]), row[to]*row[to]))
}

// tenfoldBelow returns the highest level that is at most a tenth of level i.
func (t *ksThresholds) tenfoldBelow(i int) int {
	j := i
	for t.levels[j] > t.levels[i]/10 {
		j--
	}
	return j
}

// chord returns the value at x of the line through (x0, y0) and (x1, y1).
func chord(x, x0, y0, x1, y1 float64) float64 {
	return y0 + (y1-y0)*(x-x0)/(x1-x0)
}
