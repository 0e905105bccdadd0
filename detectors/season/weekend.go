package season

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// ofKind holds the number and the mean of the scores in an hour of the day: those of working days first, then those of
// weekends.
type ofKind struct{ n, mean [2]float64 }

// weight returns the difference between weekends and working days in the hour, and its weight: the inverse of its
// variance if scores have variance 1.
func (h *ofKind) weight() (w, difference float64) {
	if h.n[0] == 0 || h.n[1] == 0 {
		return 0, 0
	}
	return h.n[0] * h.n[1] / (h.n[0] + h.n[1]), h.mean[1] - h.mean[0]
}

// expected returns the mean in the hour on days of a kind, if weekends differ from working days by the same amount in
// all hours.
func (h *ofKind) expected(kind int, difference float64) float64 {
	n := h.n[0] + h.n[1]
	onWorkingDays := (h.n[0]*h.mean[0] + h.n[1]*(h.mean[1]-difference)) / n
	if h.n[0] == 0 || h.n[1] == 0 {
		return h.mean[0] + h.mean[1] // one of them is 0
	}
	return onWorkingDays + float64(kind)*difference
}

// WeekendAlike returns the p-value of the differences between the scores of weekends and of working days at the same
// hours of the day: the harmonic mean of the p-values of the mean difference and of the differences in all hours. If
// days are alike, the sum of the squared differences, divided by their variances, approximately follows a chi-square
// distribution with one degree of freedom per hour; that of the mean has one in total.
//
// Variances are multiplied by the dependence factor of the residuals, which factor returns, or by the factor of days if
// it is larger and days of one kind differ significantly, which takes at least four days. If no hour occurs on days of
// both kinds, there is nothing to compare, and the p-value is 1.
func WeekendAlike(scores []float64, times []int64, zone *time.Location, factor func(rest []float64) float64) float64 {
	hours := hoursByKind(scores, times, zone)
	shared, weights, sum, squares := 0.0, 0.0, 0.0, 0.0
	for i := range hours {
		if w, d := hours[i].weight(); w > 0 {
			shared, weights, sum, squares = shared+1, weights+w, sum+w*d, squares+w*d*d
		}
	}
	if shared == 0 {
		return 1
	}
	var rest []float64
	var days []int64
	for i, z := range scores {
		if times[i] != 0 {
			kind, hour := kindOf(times[i], zone)
			rest = append(rest, z-hours[hour].expected(kind, sum/weights))
			days = append(days, Clock(times[i], zone)/int64(24*time.Hour))
		}
	}
	_, variance := meanVariance(rest)
	if variance == 0 || len(rest) < 2*hoursOfDay {
		return 1
	}
	f, p := DayFactor(rest, days, 2)
	if p >= differentDays {
		f = 1
	}
	variance *= max(f, factor(rest)) * float64(len(rest)) / float64(len(rest)-hoursOfDay-1)
	level := distuv.ChiSquared{K: 1}.Survival(sum * sum / weights / variance)
	course := distuv.ChiSquared{K: shared}.Survival(squares / variance)
	return 2 / (1/math.Max(level, leastP) + 1/math.Max(course, leastP))
}

// differentDays is the p-value below which days count as different. leastP keeps means of inverse p-values finite.
const (
	differentDays = .001
	leastP        = 1e-300
)

// hoursByKind returns the scores that have a time, by hour of the day.
func hoursByKind(scores []float64, times []int64, zone *time.Location) (hours [hoursOfDay]ofKind) {
	for i, z := range scores {
		if times[i] != 0 {
			kind, hour := kindOf(times[i], zone)
			h := &hours[hour]
			h.n[kind]++
			h.mean[kind] += (z - h.mean[kind]) / h.n[kind]
		}
	}
	return hours
}

// kindOf returns the kind of the day of a time, 1 on weekends and 0 on working days, and the hour of the day.
func kindOf(ts int64, zone *time.Location) (kind, hour int) {
	of := int(hourOfWeek(ts, zone))
	if of >= 5*hoursOfDay {
		kind = 1
	}
	return kind, of % hoursOfDay
}
