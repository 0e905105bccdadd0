package season

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// rush is the mean of a value that peaks in the rush hour, at about half past eight.
func rush(ts int64) float64 {
	hour := float64(ts%int64(24*time.Hour)) / float64(time.Hour)
	return 2 * math.Exp(-(hour-8.5)*(hour-8.5))
}

// ofDays returns values and times over some days: one every two minutes by day, and one per hour at night.
func ofDays(days int, mean func(ts int64) float64) (values []float64, times []int64) {
	r := rand.New(rand.NewPCG(1, 2))
	for minute := range days * 24 * 60 {
		if hour := minute / 60 % 24; hour < 6 && minute%60 == 0 || hour >= 6 && minute%2 == 0 {
			ts := (int64(minute) + 1) * int64(time.Minute)
			values, times = append(values, mean(ts)+r.NormFloat64()), append(times, ts)
		}
	}
	return values, times
}

func TestDailyMeanFollowsARushHour(t *testing.T) {
	values, times := ofDays(2, rush)
	d := NewDailyMean(values, times, nil)
	if d == nil {
		t.Fatal("no daily mean")
	}
	mean := 0.
	for _, ts := range times {
		mean += rush(ts) / float64(len(times))
	}
	for hour := range 24 {
		ts := int64(hour) * int64(time.Hour)
		if want := rush(ts) - mean; math.Abs(d.At(ts)-want) > .45 {
			t.Errorf("%d:00: %.2f, want %.2f", hour, d.At(ts), want)
		}
	}
	off, n := 0., 0.
	for i, x := range values { // the residual about the course is the residual about the mean
		off += d.Square(x-mean, (x-mean)*(x-mean), times[i]) - (x-rush(times[i]))*(x-rush(times[i]))
		n++
	}
	if off /= n; math.Abs(off) > .15 {
		t.Errorf("squares about the course differ by %.2f from those about the mean", off)
	}
}

func TestDailyMeanNeedsACycle(t *testing.T) {
	flat := func(int64) float64 { return 3 }
	for name, of := range map[string]struct {
		days int
		mean func(int64) float64
	}{"one day": {1, rush}, "hours that are alike": {3, flat}} {
		values, times := ofDays(of.days, of.mean)
		if d := NewDailyMean(values, times, nil); d != nil {
			t.Errorf("%s: a daily mean with %d levels", name, len(d.Levels))
		}
	}
	var none *DailyMean
	if got := none.Square(1, 2, 3); got != 2 {
		t.Errorf("without a daily mean, a square of 2 became %v", got)
	}
}

func TestDailyMeanFollowsClocks(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	values, times := ofDays(5, rush)
	for i := range times {
		times[i] += 40*int64(24*time.Hour) - 9*int64(time.Hour) // half past eight in Tokyo
	}
	d := NewDailyMean(values, times, zone)
	at := func(hour float64) float64 { return d.At(40*int64(24*time.Hour) + int64((hour-9)*float64(time.Hour))) }
	if d == nil || at(8.5) < 1 || at(17.5) > .5 {
		t.Errorf("the course is %+v", d)
	}
}
