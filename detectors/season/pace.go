package season

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Pace says in which hours of the day evidence counts less than on average, because values depend on each other more or
// vary more in them. Exported fields are saved.
type Pace struct {
	Slower [hoursOfDay]uint8 // by how much less it counts, by hour: in steps of 1/paceSteps above 1
	Zone   string            // time zone of the hours; UTC if empty

	zone *time.Location
}

const (
	paceSteps = 32
	paceLags  = 20
	// paceShare is the least share of the values that an estimate is from, and leastStratum their least number.
	paceShare = .05
)

// NewPace returns the pace for series of scores of the same values, each with mean 0 and variance 1, whose evidence is divided
// by factor already. Where a series is dependent, the long-run variance of its scores at an hour, times inflation, divides the
// evidence if that is larger. NewPace returns nil if it is at no hour.
func NewPace(series [][]float64, times []int64, factor, inflation float64, zone *time.Location) *Pace {
	clock, p := Clocks(times, zone), &Pace{Zone: zoneName(zone), zone: zone}
	for _, z := range series {
		if !dependent(z, clock) {
			continue
		}
		for hour := range p.Slower {
			slower := paceSteps * (longRun(z, clock, hour)*inflation/factor - 1)
			p.Slower[hour] = max(p.Slower[hour], uint8(min(math.MaxUint8, max(0, math.Round(slower)))))
		}
	}
	if p.Slower == [hoursOfDay]uint8{} {
		return nil
	}
	return p
}

// LevelAndSpread returns the series that tests of the level and of the spread of a quantity follow, of its normal scores: the
// scores and their squares, scaled to mean 0 and variance 1. Series of one value are 0.
func LevelAndSpread(scores []float64) [][]float64 {
	z, square := make([]float64, len(scores)), make([]float64, len(scores))
	for i, x := range scores {
		z[i], square[i] = x, x*x
	}
	for _, series := range [][]float64{z, square} {
		mean, sd := stat.PopMeanStdDev(series, nil)
		for i := range series {
			if series[i] -= mean; sd > 0 {
				series[i] /= sd
			}
		}
	}
	return [][]float64{z, square}
}

// Attach restores the time zone.
func (p *Pace) Attach() { p.zone = Zone(p.Zone) }

// At returns by how much evidence counts less at a time: 1 if it does not.
func (p *Pace) At(ts int64) float64 {
	if ts == 0 {
		return 1
	}
	return 1 + float64(p.Slower[hourOfDay(Clock(ts, p.zone))])/paceSteps
}

// The dependence of parts of the day is tested over nearLags values, at the level dependentLevel: without it, the errors of
// estimates by the hour would delay alarms on independent values by half.
const (
	nearLags       = 5
	dependentLevel = .05
	hoursOfPart    = 4
)

// dependent reports whether values of some parts of the day depend on the few before them. The sum over parts of (sum_t p_t)^2 /
// sum_t p_t^2, with p_t = z_t sum_l (1 - l/(L+1)) z_{t-l}, follows approximately a chi-square distribution if they do not.
func dependent(z []float64, clock []int64) bool {
	var sum, squares [hoursOfDay / hoursOfPart]float64
	for i, ts := range clock {
		if ts != 0 {
			product, part := bartlettProduct(z, clock, i, nearLags), hourOfDay(ts)/hoursOfPart
			sum[part] += product
			squares[part] += product * product
		}
	}
	statistic, parts := 0.0, 0.0
	for part, s := range squares {
		if s > 0 {
			statistic, parts = statistic+sum[part]*sum[part]/s, parts+1
		}
	}
	return parts > 0 && distuv.ChiSquared{K: parts}.Survival(statistic) < dependentLevel
}

// bartlettProduct returns z_t sum_l (1 - l/(L+1)) z_{t-l} over the lags 1 to L, but for values half a day before.
func bartlettProduct(z []float64, clock []int64, t, lags int) (sum float64) {
	for lag := 1; lag <= min(lags, t); lag++ {
		if before := clock[t-lag]; before != 0 && clock[t]-before < int64(hoursOfDay/2*time.Hour) {
			sum += (1 - float64(lag)/float64(lags+1)) * z[t-lag]
		}
	}
	return z[t] * sum
}

// longRun estimates sum_l E(z_t z_{t-l}) for t in an hour of the day, with Bartlett's weights, from as many hours around it as
// hold enough values. Hours that pass only twice say little about it, and too small a factor multiplies the false alarms of these
// hours. So it returns the value of which the estimate would be one standard error too low: f sqrt(4 (L+1) / (3n))
// (Priestley, Spectral Analysis and Time Series, 1981, 6.2.4). It returns 1 for too few values.
func longRun(z []float64, clock []int64, hour int) float64 {
	least := max(leastStratum, paceShare*float64(len(z)))
	for wide := range hoursOfDay/2 + 1 {
		sum, n := 0.0, 0.0
		for i, ts := range clock {
			if ts != 0 && hoursBetween(hourOfDay(ts), hour) <= wide {
				sum += z[i]*z[i] + 2*bartlettProduct(z, clock, i, paceLags)
				n++
			}
		}
		if n >= least {
			return sum / n / (1 - math.Sqrt(4*(paceLags+1)/(3*n)))
		}
	}
	return 1
}

// hourOfDay returns the hour of the day of a time on the clock.
func hourOfDay(clock int64) int {
	hour := floorDiv(clock, int64(time.Hour))
	return int(hour - hoursOfDay*floorDiv(hour, hoursOfDay))
}

// hoursBetween returns how far two hours of the day are from each other.
func hoursBetween(a, b int) int {
	between := max(a-b, b-a)
	return min(between, hoursOfDay-between)
}
