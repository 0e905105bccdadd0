package season

import "time"

// DailyMean is the mean of a value by time of day, minus its mean over all times. Exported fields are saved.
type DailyMean struct {
	Levels []float64 // at evenly spaced times of the day, the first at midnight; linear in between
	Zone   string    // time zone of the day; UTC if empty
}

// A daily mean has a level every 20 minutes: the mean of all values within 10 minutes or, if these are fewer than
// leastOfLevel, within the shortest distance that includes that many.
const (
	levelsOfDay    = 72
	minutesOfDay   = 24 * 60
	minutesOfLevel = minutesOfDay / levelsOfDay
	leastOfLevel   = 30
)

// NewDailyMean returns the daily mean of values at times, in Unix nanoseconds. It returns nil if the times do not cover
// each hour of the day on two days, or if the levels do not predict values better than the overall mean does when each
// value is left out of its own level.
func NewDailyMean(values []float64, times []int64, zone *time.Location) *DailyMean {
	clock := Clocks(times, zone)
	if !coversHoursTwice(clock) {
		return nil
	}
	mean, variance := meanVariance(values)
	var n, sum [minutesOfDay]float64
	for i, ts := range clock {
		if ts != 0 {
			n[minuteOf(ts)]++
			sum[minuteOf(ts)] += values[i] - mean
		}
	}
	d, of := &DailyMean{make([]float64, levelsOfDay), zoneName(zone)}, [levelsOfDay]float64{}
	for k := range d.Levels {
		d.Levels[k], of[k] = levelAt(k*minutesOfLevel, &n, &sum)
	}
	left := 0.0
	for i, ts := range clock {
		off := values[i] - mean
		if k := (minuteOf(ts) + minutesOfLevel/2) / minutesOfLevel % levelsOfDay; ts != 0 && of[k] > 1 {
			off = (off - d.Levels[k]) * of[k] / (of[k] - 1)
		}
		left += off * off
	}
	if left >= variance*float64(len(values)) {
		return nil
	}
	return d
}

// levelAt returns the mean of the values around a minute of the day, and their number.
func levelAt(minute int, n, sum *[minutesOfDay]float64) (level, of float64) {
	total := 0.0
	for away := range minutesOfDay / 2 {
		if away > minutesOfLevel/2 && of >= leastOfLevel {
			break
		}
		for _, at := range []int{minute + away, minute - away - 1} {
			at = (at + minutesOfDay) % minutesOfDay
			of += n[at]
			total += sum[at]
		}
	}
	if of == 0 {
		return 0, 0
	}
	return total / of, of
}

// minuteOf returns the minute of the day of a clock time.
func minuteOf(clock int64) int {
	minute := floorDiv(clock, int64(time.Minute))
	return int(minute - minutesOfDay*floorDiv(minute, minutesOfDay))
}

// coversHoursTwice reports whether each hour of the day occurs on at least two days.
func coversHoursTwice(clock []int64) bool {
	first, twice := map[int64]int64{}, map[int64]bool{}
	for _, ts := range clock {
		if ts == 0 {
			continue
		}
		hour := floorDiv(ts, int64(time.Hour))
		day, of := floorDiv(hour, hoursOfDay), hour-hoursOfDay*floorDiv(hour, hoursOfDay)
		if before, seen := first[of]; seen && day != before {
			twice[of] = true
		} else {
			first[of] = day
		}
	}
	return len(twice) == hoursOfDay
}

// At returns how far the mean at a time of day lies above the overall mean; 0 without a time. d may be nil.
func (d *DailyMean) At(ts int64) float64 {
	if d == nil || ts == 0 || len(d.Levels) == 0 {
		return 0
	}
	const day = int64(24 * time.Hour)
	clock := Clock(ts, Zone(d.Zone))
	at := float64(clock-day*floorDiv(clock, day)) / float64(day) * float64(len(d.Levels))
	k := min(int(at), len(d.Levels)-1)
	next := d.Levels[(k+1)%len(d.Levels)]
	return d.Levels[k] + (at-float64(k))*(next-d.Levels[k])
}

// Square returns the mean square of values about the daily mean at ts, from their mean and mean square. d may be nil.
func (d *DailyMean) Square(mean, square float64, ts int64) float64 {
	level := d.At(ts)
	return square - 2*level*mean + level*level
}
