package detectors

import (
	"math"
	"slices"
)

// The settings of ADWIN besides its delta, as in river and MOA. Their grace period of 10 values ends before the first
// search and therefore has no effect.
const (
	adwinBuckets  = 5  // buckets of one size; one more merges the two oldest into one of twice the size
	adwinClock    = 32 // values between two searches for a cut
	adwinShortest = 5  // least number of values on either side of a cut
	adwinRows     = 32 // number of bucket sizes, which limits a window to 5 * 2^32 values
)

// ADWINDelta is the default delta of ADWIN.
const ADWINDelta = .002

// ADWIN compares the older with the newer part of a window that grows until the two differ (Bifet & Gavalda 2007, in
// the exponential-histogram form of river and MOA). It is a gauge for comparison and never pages. Its delta bounds the
// probability of a false cut in a single search, so the mean time between its false alarms depends on the data;
// EmpiricalARL0 measures it.
//
// Every 32 values all cuts of the window of n values into n0 older and n1 newer ones (at least 5 each, at the ends of
// buckets) are compared:
//
//	|mean0 - mean1| > sqrt(2 m v L) + 2/3 m L,   L = log(2 log(n) / delta),   m = 1/(n0-4) + 1/(n1-4)
//
// v is the variance of the window. On a drift the oldest buckets are dropped until no cut is left; the next value
// starts an empty window, as in river. The second term of the threshold is in the unit of the values, so that values of
// a small scale are never distinguished: pass values in baseline standard deviations.
//
// Its memory grows with the logarithm of its window. Its fields are its complete state, and a snapshot restores it bit
// for bit.
type ADWIN struct {
	Delta    float64
	Count    int        // values in the window
	Total    float64    // their sum
	Variance float64    // their summed squared distances from their mean
	Top      int        // the row of the largest buckets in use
	Rows     []ADWINRow // by size, up to the largest that was in use
	Drifted  bool       // the last value caused a drift: the next one starts an empty window
}

// ADWINRow holds the buckets of one size, 2^i values in row i, oldest first.
type ADWINRow struct {
	Buckets  int
	Total    ADWINSums
	Variance ADWINSums
}

// ADWINSums are sums over each bucket. A snapshot stores their exact bits, and nothing for an empty row.
type ADWINSums [adwinBuckets + 1]float64

// MarshalBinary returns the exact bits of the sums, or nil if they are all 0.
func (a ADWINSums) MarshalBinary() ([]byte, error) {
	for _, x := range a {
		if math.Float64bits(x) != 0 {
			return floatBits(a[:]), nil
		}
	}
	return nil, nil
}

// UnmarshalBinary reads what MarshalBinary returned.
func (a *ADWINSums) UnmarshalBinary(b []byte) error {
	if *a = (ADWINSums{}); len(b) == 0 {
		return nil
	}
	return readFloats(b, a[:])
}

// NewADWIN returns an ADWIN with an empty window. A smaller delta, between 0 and 1, makes alarms rarer.
func NewADWIN(delta float64) *ADWIN { return &ADWIN{Delta: delta} }

// Reset empties the window.
func (a *ADWIN) Reset() {
	clear(a.Rows)
	*a = ADWIN{Delta: a.Delta, Rows: a.Rows}
}

// Width returns the number of values in the window; after a drift, the number of those that remain.
func (a *ADWIN) Width() int { return a.Count }

// Mean returns the mean of the values in the window, or NaN if there are none.
func (a *ADWIN) Mean() float64 { return a.Total / float64(a.Count) }

// Add adds a value and reports whether it revealed a drift. NaN and infinite values are ignored, because a mean cannot
// include them.
func (a *ADWIN) Add(x float64) (drift bool) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	if a.Drifted {
		a.Reset()
	}
	a.insert(x)
	if a.Count%adwinClock != 0 {
		return false
	}
	for a.differs() {
		a.dropOldest()
		a.Drifted = true
	}
	return a.Drifted
}

// firstWindow is an ADWIN that must be reset at its first drift. Until then no bucket is dropped, so the buckets of
// each size lie at fixed places, and only the buckets that a search needs are put into rows. It leaves out the
// variances of buckets, which only dropOldest needs.
type firstWindow struct {
	ADWIN
	sums [adwinRows][adwinClock]float64 // sums of the newest buckets, by row and by bucket number modulo adwinClock
}

// Add adds a value, as for ADWIN.
func (w *firstWindow) Add(x float64) (drift bool) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	w.sums[0][uint(w.Count)%adwinClock] = x
	if w.count(x); w.Count%adwinClock != 0 {
		return false
	}
	for i := 1; w.Count>>i > 0; i++ {
		below, sums := &w.sums[i-1], &w.sums[i]
		for k := uint(w.Count-adwinClock) >> i; k < uint(w.Count)>>i; k++ {
			sums[k%adwinClock] = below[2*k%adwinClock] + below[(2*k+1)%adwinClock]
		}
	}
	w.fillRows()
	return w.differs()
}

// fillRows puts the buckets of the window into its rows. As in insert, a sixth bucket in a row merges the two
// oldest.
func (w *firstWindow) fillRows() {
	for i, had := 0, w.Count; had > 0; i++ {
		if i == len(w.Rows) {
			w.Rows = append(w.Rows, ADWINRow{})
		}
		merged := max(0, (had-adwinBuckets+1)/2)
		row := &w.Rows[i]
		row.Buckets = 0
		for k := 2 * merged; k < had; k++ {
			row.Total[row.Buckets] = w.sums[i][uint(k)%adwinClock]
			row.Buckets++
		}
		w.Top, had = i, merged
	}
}

// count adds a value to the sums of the window.
func (a *ADWIN) count(x float64) {
	if a.Count > 0 {
		n := float64(a.Count)
		d := x - a.Total/n
		a.Variance += n * d * d / (n + 1)
	}
	a.Count++
	a.Total += x
}

// insert adds a value to the window. A row with too many buckets merges its two oldest into the next row.
func (a *ADWIN) insert(x float64) {
	a.count(x)
	a.push(0, x, 0)
	for i := 0; i < adwinRows-1 && a.Rows[i].Buckets > adwinBuckets; i++ {
		a.mergeOldest(i)
	}
	if len(a.Rows) == adwinRows && a.Rows[adwinRows-1].Buckets > adwinBuckets {
		a.dropOldest()
	}
}

// mergeOldest merges the two oldest buckets of row i into one bucket of the next row.
func (a *ADWIN) mergeOldest(i int) {
	row, size := &a.Rows[i], bucketSize(i)
	d := row.Total[0]/size - row.Total[1]/size
	a.push(i+1, row.Total[0]+row.Total[1], row.Variance[0]+row.Variance[1]+d*d*size/2)
	a.Rows[i].drop(2)
	a.Top = max(a.Top, i+1)
}

// dropOldest removes the oldest bucket from the window.
func (a *ADWIN) dropOldest() {
	row, size := &a.Rows[a.Top], bucketSize(a.Top)
	total, variance := row.Total[0], row.Variance[0]
	row.drop(1)
	a.Count -= int(size)
	a.Total -= total
	n := float64(a.Count)
	d := total/size - a.Total/n
	a.Variance -= variance + size*n*d*d/(size+n)
	if row.Buckets == 0 {
		*row = ADWINRow{} // clear what drop left behind, because a snapshot does not store empty rows
		a.Top--
	}
}

// differs reports whether there is a cut of the window whose sides differ.
//
// Most cuts are skipped without a division or a root: with m > 1/n0 + 1/n1 = n/(n0 n1) a cut cannot count unless
// (total0 n1 - total1 n0)^2 > 2 v L n n0 n1. The factor .99 keeps the bound on the safe side of rounding.
func (a *ADWIN) differs() bool {
	n := float64(a.Count)
	confidence := math.Log(2 * math.Log(n) / a.Delta)
	variance := a.Variance / n
	bound := .99 * 2 * variance * confidence * n
	n0, n1 := 0.0, n
	total0, total1 := 0.0, a.Total
	for i := a.Top; i >= 0; i-- {
		row, size := &a.Rows[i], bucketSize(i)
		for _, total := range row.Total[:row.Buckets] {
			n0, n1 = n0+size, n1-size
			total0, total1 = total0+total, total1-total
			if n1 < adwinShortest {
				return false
			}
			apart := total0*n1 - total1*n0
			if n0 < adwinShortest || apart*apart <= bound*n0*n1 {
				continue
			}
			m := 1/(n0-adwinShortest+1) + 1/(n1-adwinShortest+1)
			if math.Abs(total0/n0-total1/n1) > math.Sqrt(2*m*variance*confidence)+2.0/3*confidence*m {
				return true
			}
		}
	}
	return false
}

// bucketSize returns the number of values in a bucket of row i.
func bucketSize(i int) float64 { return float64(uint64(1) << i) }

// push adds a bucket to a row. It appends the row if it does not exist yet.
func (a *ADWIN) push(row int, total, variance float64) {
	if row == len(a.Rows) {
		a.Rows = slices.Concat(a.Rows, make([]ADWINRow, 1)) // without spare capacity
	}
	r := &a.Rows[row]
	r.Total[r.Buckets], r.Variance[r.Buckets] = total, variance
	r.Buckets++
}

func (r *ADWINRow) drop(n int) {
	copy(r.Total[:], r.Total[n:r.Buckets])
	copy(r.Variance[:], r.Variance[n:r.Buckets])
	r.Buckets -= n
}
