package budget

import (
	"runtime"
	"slices"
	"testing"
)

// queued returns a store with one core, and the calibration that uses it.
func queued() (*Calibrations, *Turn) {
	c := NewCalibrations()
	c.cores = 1
	running := c.Enter("one", 500)
	running.Wait()
	return c, running
}

func TestCalibrationsWaitInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		units, urgent, gone, want []int // all but units are places in units
		owners                    string
	}{
		"by arrival":           {units: []int{100, 100, 100}, want: []int{0, 1, 2}},
		"smallest first":       {units: []int{500, 100, 250, 100}, want: []int{1, 3, 2, 0}},
		"what others wait for": {units: []int{500, 100, 250}, urgent: []int{2}, want: []int{2, 1, 0}},
		"owners take turns":    {units: []int{100, 100, 100, 100, 50}, owners: "aaaba", want: []int{4, 0, 3, 1, 2}},
		"some are given up":    {units: []int{100, 50, 250}, gone: []int{1, 2}, want: []int{0}},
	} {
		all, running := queued()
		var turns []*Turn
		for i, units := range c.units {
			turns = append(turns, all.Enter((c.owners + "aaaaa")[i:i+1], units))
		}
		for _, i := range c.urgent {
			turns[i].Hurry()
		}
		for _, i := range c.gone {
			turns[i].GiveUp()
			if turns[i].Wait() {
				t.Errorf("%s: calibration %d was given up and has a core", name, i)
			}
			turns[i] = nil
		}
		if waiting, busy := all.Queue(); waiting != len(c.want) || busy != 1 {
			t.Errorf("%s: %d wait and %d run, want %d and 1", name, waiting, busy, len(c.want))
		}
		var got []int
		for range c.want {
			running.Leave()
			next := slices.IndexFunc(turns, func(turn *Turn) bool { return turn != nil && hasBegun(turn) })
			if next < 0 {
				t.Fatalf("%s: none has begun after %v", name, got)
			}
			running, turns[next] = turns[next], nil
			got = append(got, next)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: order %v, want %v", name, got, c.want)
		}
		running.Leave()
		if waiting, busy := all.Queue(); waiting != 0 || busy != 0 {
			t.Errorf("%s: %d wait and %d run at the end", name, waiting, busy)
		}
		if len(all.owners) > 0 {
			t.Errorf("%s: turns of %v wait at the end", name, all.owners)
		}
	}
}

func hasBegun(t *Turn) bool {
	select {
	case <-t.begun:
		return true
	default:
		return false
	}
}

// Calibrations that run or wait at the same time use one core each, so that they leave cores to the intake of
// telemetry.
func TestCalibrationsShareTheCores(t *testing.T) {
	c := NewCalibrations()
	c.cores = 4
	if got := c.share(); got != 4 {
		t.Errorf("one outside the queue may use %d cores, want 4", got)
	}
	for i, want := range []int{4, 2, 1, 1, 1} {
		c.Enter("one", 100)
		if got := c.share(); got != want {
			t.Errorf("%d in the queue: %d cores each, want %d", i+1, got, want)
		}
	}
	if NewCalibrations().cores != runtime.GOMAXPROCS(0) {
		t.Error("not one calibration per core")
	}
}
