package season

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat"
)

// HourFactors holds, for each hour of the day, how far its dependence factor exceeds the factor of all hours. Exported
// fields are saved.
type HourFactors struct {
	Above [hoursOfDay]uint8 `cbor:"1,keyasint"`          // in steps of 1/factorSteps above a ratio of 1
	Zone  string            `cbor:"2,keyasint,omitzero"` // time zone of the hours; UTC if empty
}

const (
	factorSteps = 32
	factorLags  = 20
	// leastOfHours is the minimum share of all values from which the factor of an hour is estimated; leastStratum is
	// their minimum number.
	leastOfHours = .05
)

// The scores of successive units are summed in blocks.
const (
	leastBlock = 10  // units per block; larger if there would otherwise be more than mostBlocks blocks
	mostBlocks = 300 // approximate maximum number of blocks
	blockHours = 4   // maximum duration of a block; units spread over a longer time are not compared
)

// The variances of blocks are fitted with the first harmonics of the day, and compared with fits to random orders of
// the blocks.
const (
	harmonicsOfBlocks = 3
	ordersOfBlocks    = 999
)

// SumsDiffer reports whether the variance of sums of successive scores differs between hours of the day, at the given
// significance level. series holds the scores of several quantities of the same units, with mean 0, and NaN for a unit
// without a value. Several quantities are tested together because the dependence between values at an hour is a
// property of the traffic, which one quantity alone rarely shows.
//
// The absolute value of a sum, raised to the power 2/3, is nearly normal (Wilson & Hilferty, PNAS 1931). The statistic
// is the part of these powers that the harmonics of the day explain, summed over all series. It is compared with the
// statistic of the same blocks in random orders, so dependence between the quantities does not matter.
func SumsDiffer(series [][]float64, times []int64, zone *time.Location, level float64) bool {
	blocks, angles := blocksOf(Clocks(times, zone))
	sizes := make([][]float64, len(blocks)) // by block, of each series
	for _, z := range series {
		for k, x := range sizesOf(z, blocks) {
			sizes[k] = append(sizes[k], x)
		}
	}
	if len(blocks) < 4*harmonicsOfBlocks || len(sizes[0]) == 0 {
		return false
	}
	basis, order := harmonicsOf(angles), make([]int, len(blocks))
	for i := range order {
		order[i] = i
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(blocks))))
	observed, larger := explained(sizes, basis, order), 1
	for range ordersOfBlocks {
		rng.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		if explained(sizes, basis, order) >= observed {
			larger++
		}
		if float64(larger) > level*(ordersOfBlocks+1) {
			return false
		}
	}
	return true
}

// block is a range of successive units: from is included, to is not.
type block struct{ from, to int }

// blocksOf returns the blocks of units, and the time of day of each as an angle.
func blocksOf(clock []int64) (blocks []block, angles []float64) {
	const day = int64(24 * time.Hour)
	size := max(leastBlock, (len(clock)+mostBlocks-1)/mostBlocks)
	for from := 0; from+size <= len(clock); {
		to := from + size
		if clock[from] == 0 || clock[to-1] == 0 || clock[to-1]-clock[from] > blockHours*int64(time.Hour) {
			from++
			continue
		}
		middle := clock[from] + (clock[to-1]-clock[from])/2
		blocks = append(blocks, block{from, to})
		angles = append(angles, 2*math.Pi*float64(middle-day*floorDiv(middle, day))/float64(day))
		from = to
	}
	return blocks, angles
}

// sizesOf returns the absolute value of the sum of each block, raised to the power 2/3 and scaled to mean 0 and
// variance 1. It returns nil if they are all the same. A block without values has size 0.
func sizesOf(z []float64, blocks []block) []float64 {
	out, has := make([]float64, len(blocks)), []float64(nil)
	for k, b := range blocks {
		sum, n := 0.0, 0.0
		for _, x := range z[b.from:b.to] {
			if !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		if out[k] = math.NaN(); n > 0 {
			out[k] = math.Cbrt(sum * sum / n)
			has = append(has, out[k])
		}
	}
	mean, sd := stat.PopMeanStdDev(has, nil)
	if !(sd > 0) {
		return nil
	}
	for k := range out {
		if out[k] = (out[k] - mean) / sd; math.IsNaN(out[k]) {
			out[k] = 0
		}
	}
	return out
}

// harmonicsOf returns orthonormal columns that span the harmonics of the angles, orthogonal to the mean.
func harmonicsOf(angles []float64) (basis [][]float64) {
	for h := 1.; h <= harmonicsOfBlocks; h++ {
		for _, wave := range []func(float64) float64{math.Cos, math.Sin} {
			column := make([]float64, len(angles))
			for i, a := range angles {
				column[i] = wave(h * a)
			}
			mean := meanOf(column)
			for i := range column {
				column[i] -= mean
			}
			for _, b := range basis {
				along := dot(column, b)
				for i := range column {
					column[i] -= along * b[i]
				}
			}
			length := math.Sqrt(dot(column, column))
			if length < 1e-6*math.Sqrt(float64(len(angles))) { // blocks occur at only a few times of the day
				continue
			}
			for i := range column {
				column[i] /= length
			}
			basis = append(basis, column)
		}
	}
	return basis
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// explained returns the sum of squares that the columns of basis explain in the sizes of all series, with the blocks in
// the given order.
func explained(sizes, basis [][]float64, order []int) (sum float64) {
	along := make([]float64, len(sizes[0]))
	for _, b := range basis {
		clear(along)
		for i, k := range order {
			for s, x := range sizes[k] {
				along[s] += x * b[i]
			}
		}
		for _, x := range along {
			sum += x * x
		}
	}
	return sum
}

// NewHourFactors returns the factors of the hours for several series of scores of the same values, each with mean 0 and
// variance 1. At each hour, the series with the largest factor counts. factor is the factor of all hours, which is
// inflation times a dependence factor. NewHourFactors returns nil if no hour has a larger factor.
func NewHourFactors(series [][]float64, times []int64, factor, inflation float64, zone *time.Location) *HourFactors {
	clock, f := Clocks(times, zone), &HourFactors{Zone: zoneName(zone)}
	for _, z := range series {
		for hour, variance := range longRun(z, clock) {
			above := math.Round(factorSteps * (variance*inflation/factor - 1))
			f.Above[hour] = max(f.Above[hour], uint8(max(0, min(math.MaxUint8, above))))
		}
	}
	if f.Above == [hoursOfDay]uint8{} {
		return nil
	}
	return f
}

// At returns the factor by which evidence at a time is reduced; 1 means not at all. f may be nil.
func (f *HourFactors) At(ts int64) float64 {
	if f == nil || ts == 0 {
		return 1
	}
	return 1 + float64(f.Above[hourOfDay(Clock(ts, Zone(f.Zone)))])/factorSteps
}

// Largest returns the largest factor of any hour; 1 if f is nil.
func (f *HourFactors) Largest() float64 {
	if f == nil {
		return 1
	}
	largest := uint8(0)
	for _, above := range f.Above {
		largest = max(largest, above)
	}
	return 1 + float64(largest)/factorSteps
}

// longRun estimates sum_l E(z_t z_{t-l}) for t in each hour of the day, with Bartlett's weights, plus one standard
// error: f sqrt(4 (L+1) / (3n)) (Priestley, Spectral Analysis and Time Series, 1981, 6.2.4). If an hour has too few
// values, the hours around it are included. An estimate that is too small makes the false alarms of the hour grow
// exponentially; one that is too large only makes the delay grow.
func longRun(z []float64, clock []int64) (out [hoursOfDay]float64) {
	var sums, counts [hoursOfDay]float64
	for i, ts := range clock {
		if ts != 0 {
			hour := hourOfDay(ts)
			sums[hour] += z[i] * (z[i] + 2*before(z, clock, i))
			counts[hour]++
		}
	}
	least := max(leastStratum, leastOfHours*float64(len(z)))
	for hour := range out {
		sum, n := sums[hour], counts[hour]
		for away := 1; n < least && away < hoursOfDay/2; away++ {
			for _, at := range []int{(hour + away) % hoursOfDay, (hour + hoursOfDay - away) % hoursOfDay} {
				sum, n = sum+sums[at], n+counts[at]
			}
		}
		if n > 0 {
			out[hour] = max(0, sum/n) * (1 + math.Sqrt(4*(factorLags+1)/(3*n)))
		}
	}
	return out
}

// before returns sum_l (1 - l/(L+1)) z_{t-l} over the lags 1 to L, without values that are half a day or more before t.
func before(z []float64, clock []int64, t int) (sum float64) {
	for lag := 1; lag <= min(factorLags, t); lag++ {
		if ts := clock[t-lag]; ts != 0 && clock[t]-ts < hoursOfDay/2*int64(time.Hour) {
			sum += (1 - float64(lag)/(factorLags+1)) * z[t-lag]
		}
	}
	return sum
}

// hourOfDay returns the hour of the day of a clock time.
func hourOfDay(clock int64) int {
	hour := floorDiv(clock, int64(time.Hour))
	return int(hour - hoursOfDay*floorDiv(hour, hoursOfDay))
}
