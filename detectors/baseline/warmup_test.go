package baseline

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestPromisedUnits(t *testing.T) {
	// 500 units of 20 steps, one every ten seconds; the variants have wrong times at the beginning and far ahead, and a
	// wrong length.
	collected := func(edit func(i int, u *ingest.Unit)) Warmup {
		var w Warmup
		for i := range 500 {
			u := &ingest.Unit{Length: 20, EndTS: (1_800_000_000 + 10*int64(i)) * 1e9}
			edit(i, u)
			w.Collect(u, 0, int64(i))
		}
		return w
	}
	timed := collected(func(int, *ingest.Unit) {})
	clockless := collected(func(_ int, u *ingest.Unit) { u.EndTS = 0 })
	spoilt := collected(func(i int, u *ingest.Unit) {
		switch i {
		case 0:
			u.EndTS = 1
		case 200:
			u.EndTS = 4e18
		case 300:
			u.Length = 1e15
		}
	})
	const day = 86400 * int64(1e9)
	daily := collected(func(i int, u *ingest.Unit) { u.EndTS = int64(1+i/100) * day })
	uploaded := collected(func(i int, u *ingest.Unit) { u.EndTS = int64(1+i/100)*day + int64(i)*1e6 })
	holes := collected(func(i int, u *ingest.Unit) { u.EndTS += int64(i/200)*30*day + int64(i/400)*300*day })
	swapped := collected(func(i int, u *ingest.Unit) {
		if i == 150 || i == 350 {
			u.EndTS += 20 * day
		}
	})
	for _, c := range []struct {
		name string
		w    Warmup
		per  string
		want float64
	}{
		{"batches of a day", daily, "30d", 30 * 499 / 4.},
		{"batches of a day, at the times of their upload", uploaded, "30d", 30 * 499 / (4 + 490e-3/86400)},
		{"days with holes of unequal length", holes, "30d", 30 * 86400 / 10},
		{"days with two wrong times", swapped, "30d", 30 * 86400 / 10},
		{"days", timed, "30d", 30 * 86400 / 10},
		{"days with wrong times", spoilt, "30d", 30 * 86400 / 10},
		{"steps with a wrong length", spoilt, "1000000 steps", 50_000},
		{"next to nothing", timed, "3 episodes", 100},
		{"days without a clock", clockless, "30d", 50_000},
		{"episodes", timed, "20000 episodes", 20_000},
		{"steps", timed, "1000000 steps", 50_000},
	} {
		var per watch.Per
		if err := per.UnmarshalText([]byte(c.per)); err != nil {
			t.Fatal(err)
		}
		if got := c.w.Promised(watch.Budget{Budget: 1, Per: per}, 1); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%s: %v units, want %v", c.name, got, c.want)
		}
	}
}

// Silence between batches is not a fault.
func TestPaceKnowsRegularPauses(t *testing.T) {
	gaps := make([]float64, 499)
	for i := range gaps {
		if i%100 == 99 {
			gaps[i] = 86400
		}
	}
	if _, largest := Pace(gaps); largest != 86400 {
		t.Errorf("the largest gap is %v s, want a day", largest)
	}
	outages := slices.Repeat([]float64{1}, 499)
	outages[100], outages[300] = 1800, 1900
	if mean, largest := Pace(outages); math.Abs(mean-1) > 1e-9 || largest != 1 {
		t.Errorf("two outages count: a mean of %v s, at most %v s", mean, largest)
	}
	gaps[99], gaps[199], gaps[299] = 0, 0, 0
	if mean, largest := Pace(gaps); mean != 0 || largest != 0 {
		t.Errorf("one pause counts: a mean of %v s, at most %v s", mean, largest)
	}
}

// The steps of a baseline fit into memory for any number and size of units. If there is room for all of them, all units
// keep their steps.
func TestStepsOfABaselineFit(t *testing.T) {
	const memory = 2 << 20
	for _, c := range []struct{ observations, units, collected, least int }{
		{4, 500, 500, 500}, {32, 500, 1000, 250}, {4, 500, 1000, 250}, {4, 20000, 20000, 250}, {32, 20000, 20000, 250},
	} {
		s := &ingest.Steps{Names: make([]string, c.observations)}
		for i := range int32(ingest.MaxKeptSteps) {
			s.At, s.Actions = append(s.At, i), append(s.Actions, 0)
		}
		s.Rows = make([]float32, len(s.At)*s.Width())
		var w Warmup
		for i := range c.collected {
			w.Collect(&ingest.Unit{}, 0, int64(i))
			w.KeepSteps(factor.Told{Steps: s}, memory, c.units)
			if i%1000 != 999 && i != c.collected-1 {
				continue
			}
			told, _ := w.Told()
			bytes := 0
			for k := range told {
				bytes += told[k].Steps.Bytes()
			}
			if bytes > memory || len(told) < c.least {
				t.Errorf("%+v: after %d units, %d bytes of %d units are kept", c, i+1, bytes, len(told))
			}
		}
	}
}

// Hours whose units were left out are not covered. Hours without any units are.
func TestSpanLacksWhatWasLeftOut(t *testing.T) {
	hour := func(ordinals ...int64) Warmup {
		var w Warmup
		for _, i := range ordinals {
			w.Collect(&ingest.Unit{EndTS: 1_800_000_000e9 + i*int64(30*time.Minute)}, 0, i)
		}
		return w
	}
	for _, c := range []struct {
		name string
		w    Warmup
		want time.Duration
	}{
		{"all", hour(0, 1, 2, 3, 4, 5, 6, 7, 8), 4 * time.Hour},
		{"three hours left out", hour(0, 1, 2, 8, 9), 90 * time.Minute},
		{"single units left out", hour(0, 2, 4, 6, 8), 4 * time.Hour},
	} {
		if got := c.w.Span(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		w    Warmup
		want bool
	}{
		{"two days", hour(between(0, 97)...), false},
		{"less than two days", hour(between(0, 95)...), false},
		{"the afternoons left out", hour(append(between(0, 24), append(between(36, 72), between(84, 132)...)...)...), true},
		{"and collected", hour(append(between(0, 24), append(between(36, 72), between(84, 181)...)...)...), false},
	} {
		if got := c.w.LacksHours(); got != c.want {
			t.Errorf("%s: lacks hours: %t, want %t", c.name, got, c.want)
		}
	}
	var quiet Warmup
	for i, at := range []time.Duration{0, 1, 9, 10} {
		quiet.Collect(&ingest.Unit{EndTS: 1_800_000_000e9 + int64(at*time.Hour)}, 0, int64(i))
	}
	if got := quiet.Span(); got != 10*time.Hour {
		t.Errorf("a quiet night: %s, want 10 h", got)
	}
}

// Time that is passed twice counts once, and a clock that runs ahead does not count.
func TestSpanOfTimesThatGoBack(t *testing.T) {
	at := func(minutes ...int64) *Warmup {
		w := &Warmup{}
		for i := range int64(600) { // 10 hours
			w.Collect(&ingest.Unit{EndTS: 1_800_000_000e9 + i*int64(time.Minute)}, 0, i)
		}
		for i, m := range minutes {
			w.Collect(&ingest.Unit{EndTS: 1_800_000_000e9 + m*int64(time.Minute)}, 0, int64(600+i))
		}
		return w
	}
	const year = 365 * 24 * 60
	for _, c := range []struct {
		name    string
		minutes []int64
		want    int64
	}{
		{"in order", []int64{600, 601, 602}, 602},
		{"one late by five hours", []int64{300, 600, 601}, 601},
		{"two late", []int64{300, 301, 600, 601}, 601},
		{"two agents, one of them late", []int64{300, 600, 301, 601, 302, 602}, 602},
		{"one a year ahead", []int64{year, 600, 601}, 601},
		{"the last one a year ahead", []int64{600, year}, 600},
		{"without a time", []int64{600, -1_800_000_000 / 60, 601}, 601},
		{"ahead before one without a time", []int64{year, -1_800_000_000 / 60, 601}, 601},
		{"the last one after a quiet night", []int64{600, 1200}, 600},
		{"a quiet night", []int64{600, 1200, 1201}, 1201},
	} {
		if got, want := at(c.minutes...).Span(), time.Duration(c.want)*time.Minute; got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
}

// Hours that incidents remove each day are awaited for at most a week, at any rate of units.
func TestHoursAreAwaitedForAWeek(t *testing.T) {
	for _, every := range []int64{10, 30} { // minutes
		w, lacked := &Warmup{}, int64(0)
		for i := range 20 * 24 * 60 / every {
			minute := i * every
			if hour := minute / 60 % 24; hour < 12 || hour >= 15 {
				w.Collect(&ingest.Unit{EndTS: 1_800_000_000e9 + minute*int64(time.Minute)}, 0, i)
			}
			if w.LacksHours() {
				lacked = minute
			}
		}
		if days := float64(lacked) / 60 / 24; days < 6.9 || days > 7.1 {
			t.Errorf("a unit every %d minutes: hours are awaited for %.2f days, want 7", every, days)
		}
	}
}

func between(from, to int64) (out []int64) {
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}
