//go:build e2e && faults

package e2e

import (
	"flag"
	"fmt"
	"math"
	"os"
	"testing"
	"time"
)

var (
	soakFor   = flag.Duration("soak", 20*time.Minute, "how long TestSoak runs after its warm-up")
	soakEvery = flag.Duration("soak-every", 30*time.Second, "how often TestSoak looks")
)

// soakWarmUp is how long the service grows to its usual size, while caches fill and baselines freeze.
const soakWarmUp = 3 * time.Minute

// use is the resource usage of a process at a time.
type use struct {
	after               time.Duration
	goroutines, rss, fd float64 // rss in bytes
}

// TestSoak runs the service under load and prints its resource usage, none of which may grow.
func TestSoak(t *testing.T) {
	s := setting{broker: startBroker(t, ""), binary: build(t)}
	d := s.disturb(t, "soak", s.broker.address, 7)
	began := time.Now()
	look := time.NewTicker(*soakEvery)
	defer look.Stop()
	var uses []use
	for now := began; now.Sub(began) < soakWarmUp+*soakFor; {
		now = <-look.C
		u := d.use(t, now.Sub(began))
		fmt.Fprintf(os.Stderr, "%8s  goroutines %4.0f  rss %6.1f MiB  file descriptors %4.0f\n",
			u.after.Round(time.Second), u.goroutines, u.rss/(1<<20), u.fd)
		if u.after > soakWarmUp {
			uses = append(uses, u)
		}
	}
	flat(t, "goroutines", uses, 5, func(u use) float64 { return u.goroutines })
	flat(t, "resident memory in MiB", uses, 10, func(u use) float64 { return u.rss / (1 << 20) })
	flat(t, "file descriptors", uses, 3, func(u use) float64 { return u.fd })
	d.nothingLostNothingTwice(t)
	d.service.stop(t)
}

func (d *disturbed) use(t *testing.T, after time.Duration) use {
	t.Helper()
	u := use{after: after}
	for metric, into := range map[string]*float64{
		"go_goroutines": &u.goroutines, "process_resident_memory_bytes": &u.rss, "process_open_fds": &u.fd,
	} {
		value, err := d.service.largest(metric, nil)
		if err != nil {
			t.Fatal(err)
		}
		*into = value
	}
	return u
}

// flat fails if a quantity grows over the run, by its regression line, by more than an allowance and by more than three
// standard errors of the line.
func flat(t *testing.T, what string, uses []use, allowed float64, of func(use) float64) {
	t.Helper()
	slope, sd := regress(uses, of)
	hours := (uses[len(uses)-1].after - uses[0].after).Hours()
	verdict := "flat"
	if slope*hours > allowed && slope > 3*sd {
		verdict = "growing"
		t.Errorf("%s: growing", what)
	}
	fmt.Fprintf(os.Stderr, "%s: %+.2f an hour, standard error %.2f: %s\n", what, slope, sd, verdict)
}

// regress fits a line by least squares and returns its slope per hour and the standard error of the slope.
func regress(uses []use, of func(use) float64) (slope, sd float64) {
	n := float64(len(uses))
	var x, y float64
	for _, u := range uses {
		x += u.after.Hours() / n
		y += of(u) / n
	}
	var xx, xy float64
	for _, u := range uses {
		dx := u.after.Hours() - x
		xx += dx * dx
		xy += dx * (of(u) - y)
	}
	slope = xy / xx
	var rest float64
	for _, u := range uses {
		e := of(u) - y - slope*(u.after.Hours()-x)
		rest += e * e
	}
	return slope, math.Sqrt(rest / (n - 2) / xx)
}
