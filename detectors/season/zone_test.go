package season

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Clocks in Berlin go back by an hour on 25 October 2026 at 1:00 UTC.
func TestClock(t *testing.T) {
	berlin := Zone("Europe/Berlin")
	for at, want := range map[string]string{
		"2026-10-24T22:30:00Z": "2026-10-25T00:30:00Z",
		"2026-10-25T00:59:00Z": "2026-10-25T02:59:00Z",
		"2026-10-25T01:00:00Z": "2026-10-25T02:00:00Z",
		"2026-10-25T23:00:00Z": "2026-10-26T00:00:00Z",
	} {
		ts, _ := time.Parse(time.RFC3339, at)
		if got := time.Unix(0, Clock(ts.UnixNano(), berlin)).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s is %s, want %s", at, got, want)
		}
		if Clock(ts.UnixNano(), nil) != ts.UnixNano() {
			t.Errorf("%s is another time in UTC", at)
		}
	}
	if Clock(0, berlin) != 0 {
		t.Error("no time has become one")
	}
	sunday := time.Date(2026, 10, 25, 0, 0, 0, 0, berlin)
	times := []int64{sunday.Add(-time.Nanosecond).UnixNano(), sunday.UnixNano(), sunday.Add(25 * time.Hour).UnixNano(), 0}
	if days := DaysOf(times, berlin); days[1] != days[0]+1 || days[2] != days[1]+1 || days[3] != 0 {
		t.Errorf("days %v: Sunday has 25 hours", days)
	}
}

func TestZone(t *testing.T) {
	for name, want := range map[string]string{"": "", "Europe/Berlin": "Europe/Berlin", "UTC": "UTC", "Middle/Earth": ""} {
		if got := zoneName(Zone(name)); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// A season of the hours in Berlin, with its course, judges days equally before and after clocks go back.
func TestSeasonFollowsTheClock(t *testing.T) {
	const perHour, days = 15, 3
	berlin := Zone("Europe/Berlin")
	x, clock := smoothDays(rand.New(rand.NewPCG(80, 0)), days+7, perHour)
	times, first := make([]int64, len(x)), time.Date(2026, 10, 22, 0, 0, 0, 0, berlin)
	for i, wall := range clock {
		at := time.Unix(0, wall-clock[0]).UTC()
		times[i] = time.Date(2026, 10, 22+at.YearDay()-1, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), berlin).UnixNano()
	}
	learned := days * 24 * perHour
	if after := first.AddDate(0, 0, days).UnixNano(); times[learned] != after {
		t.Fatalf("the later values begin at %d, want %d", times[learned], after)
	}
	judge := func(zone *time.Location) (least, most float64) {
		sample := x[:learned]
		ranks, z := detectors.NewRanks(sample), make([]float64, learned)
		for i, v := range sample {
			z[i] = detectors.NormalScore(ranks.OwnRank(v))
		}
		s := New(sample, z, ranks, times[:learned], true, zone)
		if s == nil || s.Course == nil {
			t.Fatal("there is no season with a course")
		}
		hours := make([]float64, 24) // mean normal scores of the later values, by hour
		for i := learned; i < len(x); i++ {
			hours[clock[i]/int64(time.Hour)%24] += detectors.NormalScore(s.Rank(x[i], times[i])) / 7 / perHour
		}
		return slices.Min(hours), slices.Max(hours)
	}
	// The standard error of the difference between means of 105 and of 45 values is .18. One hour of the slope is up to
	// 2 pi / 24 / .2 = 1.3 standard deviations.
	if least, most := judge(berlin); least < -.72 || most > .72 {
		t.Errorf("in Berlin, mean scores of an hour are from %.2f to %.2f", least, most)
	}
	if least, most := judge(nil); least > -.9 || most < .9 {
		t.Errorf("in UTC, mean scores of an hour are from %.2f to %.2f: the test shows nothing", least, most)
	}
}
