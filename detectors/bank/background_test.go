package bank

import (
	"reflect"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A bank that calibrates beside its owner finds what one finds that waits, in the same order, whatever its owner does
// meanwhile.
func TestBackgroundFindsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	run := func(background bool) (found []finding.Finding) {
		p := newBank(rebaselining())
		if background {
			p.InBackground()
		}
		r := newRelease(180)
		r.edit = func(u *ingest.Unit) {
			if r.made < 620 {
				return
			}
			m := ingest.NamedMoments{Signal: "outcome.sale"}
			for range u.Length {
				m.Add(float64(r.rng.IntN(2)))
			}
			u.Numeric = append(u.Numeric, m)
		}
		feed := func(n int, version string) {
			for i := range n {
				found = append(found, r.run(p, 1, version)...)
				if i%10 == 0 {
					p.Publish()
					p.Changed()
					p.Applied()
					found = append(found, p.Tick(time.Time{})...)
				}
			}
		}
		feed(1200, "p1")
		r.means["p1"] = -3
		feed(60, "p1")
		feed(700, "p2")
		found = append(found, p.Settle()...)
		return found
	}
	want, got := run(false), run(true)
	if len(alarmsIn(want)) == 0 {
		t.Fatal("no alarm")
	}
	for i := range want {
		if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("finding %d of %d differs:\n%+v\n%+v", i, len(got), got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d findings, want %d", len(got), len(want))
	}
}

// However many baselines freeze at once, only as many are calibrated at a time as there are cores.
func TestBackgroundCalibrationsTakeTurns(t *testing.T) {
	shared := budget.NewCalibrations()
	var running, most atomic.Int32
	var policies []*Policy
	for i := range 20 * runtime.GOMAXPROCS(0) {
		p := NewPolicy(strconv.Itoa(i), watch.DefaultConfig(), NewStreamLimit(1000))
		p.Share(shared)
		p.InBackground()
		p.calibrate(100, func() []finding.Finding {
			now := running.Add(1)
			for have := most.Load(); now > have && !most.CompareAndSwap(have, now); have = most.Load() {
			}
			runtime.Gosched()
			running.Add(-1)
			return nil
		})
		policies = append(policies, p)
	}
	for _, p := range policies {
		p.Settle()
	}
	if got := int(most.Load()); got > runtime.GOMAXPROCS(0) {
		t.Errorf("%d calibrations ran at once on %d cores", got, runtime.GOMAXPROCS(0))
	}
}
