package pace

import (
	"errors"
	"runtime"
	"testing"
	"time"
)

func TestPaced(t *testing.T) {
	for name, tt := range map[string]struct {
		every, total time.Duration
		cores        int
		want         time.Duration
	}{
		"nothing was saved yet":            {10 * time.Second, 0, 2, 10 * time.Second},
		"saves are quick":                  {10 * time.Second, 500 * time.Millisecond, 2, 10 * time.Second},
		"a fortieth of the cores":          {10 * time.Second, 2 * time.Second, 2, 40 * time.Second},
		"the same with more cores":         {10 * time.Second, 2 * time.Second, 8, 10 * time.Second},
		"no longer than that":              {10 * time.Second, time.Hour, 2, 2 * time.Minute},
		"a longer interval is left alone":  {time.Hour, time.Minute, 2, time.Hour},
		"a longer one than the most, too":  {time.Hour, 10 * time.Hour, 2, time.Hour},
		"a short interval is extended too": {time.Second, 500 * time.Millisecond, 2, 10 * time.Second},
	} {
		if got := OfSaves().paced(tt.every, tt.total, tt.cores); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A summary that takes 0.1 ms per group is published every second for a few hundred groups, and rarely for a large
// fleet.
func TestShowsArePaced(t *testing.T) {
	for groups, want := range map[time.Duration]time.Duration{
		1: time.Second, 400: time.Second, 2000: 5 * time.Second, 20_000: 30 * time.Second,
	} {
		if got := OfShows().paced(time.Second, groups*100*time.Microsecond, 2); got != want {
			t.Errorf("%d groups are published every %s, want %s", groups, got, want)
		}
	}
}

func TestAfterFailures(t *testing.T) {
	for failures, want := range []time.Duration{120, 10, 20, 40, 80, 120, 120} {
		if got := afterFailures(10*time.Second, Longest, failures); got != want*time.Second {
			t.Errorf("%d failures: %s, want %s", failures, got, want*time.Second)
		}
	}
	if got := afterFailures(time.Minute, time.Minute, 1000); got != time.Minute {
		t.Errorf("an interval that is not paced becomes %s", got)
	}
}

// The interval depends on the last saves of all remaining policies, and is the shortest after a failure.
func TestSavesOfPolicies(t *testing.T) {
	p := OfSaves()
	one, other := p.Policy(), p.Policy()
	cores := time.Duration(runtime.GOMAXPROCS(0))
	one.Ended(time.Now().Add(-time.Hour), nil)
	one.Ended(time.Now().Add(-cores*time.Second), nil)
	other.Ended(time.Now().Add(-2*cores*time.Second), nil)
	if got := one.After(time.Second).Round(time.Second); got != 2*time.Minute {
		t.Errorf("after saves that took 3 s a core: %s", got)
	}
	one.Ended(time.Now().Add(-cores*time.Second), errors.New("no space"))
	if got := one.After(time.Second); got != time.Second {
		t.Errorf("after a failure: %s", got)
	}
	other.Gone()
	one.Ended(time.Now().Add(-cores*time.Second), nil)
	if got := one.After(time.Second).Round(time.Second); got != 40*time.Second {
		t.Errorf("after the other is gone: %s", got)
	}
	if p.Total() != one.Last() {
		t.Errorf("the total is %s, and the last save took %s", p.Total(), one.Last())
	}
}
