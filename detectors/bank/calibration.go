package bank

import (
	"fmt"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxPending is how many units may wait for a calibration; beyond it the bank waits for the calibration instead.
const maxPending = 50_000

// calibrating is the freeze of a baseline that is under way beside the goroutine that owns the bank. Until it is done
// the bank does not touch its groups: units wait, so that a baseline comes into force at the same unit however long it
// takes.
type calibrating struct {
	done  chan struct{}
	found []Finding // valid when done
}

// pendingUnit is a unit that waits for a calibration.
type pendingUnit struct {
	unit *ingest.Unit
	now  time.Time
}

// InBackground lets baselines be calibrated beside the goroutine that owns the bank. Findings of units that came
// meanwhile are given by the next Observe or Proceed.
func (p *Policy) InBackground() { p.background = true }

// Proceed gives the findings of a calibration that has ended, and of the units that waited for it.
func (p *Policy) Proceed() []Finding { return p.proceed(false) }

// Settle waits for a calibration that is under way, and gives what Proceed then would. A snapshot is taken only of a bank
// that has settled.
func (p *Policy) Settle() []Finding { return p.proceed(true) }

// Pending is the number of units that wait for a calibration.
func (p *Policy) Pending() int { return len(p.pending) }

// Calibrating reports whether a calibration is under way.
func (p *Policy) Calibrating() bool { return p.calibrating != nil }

func (p *Policy) proceed(wait bool) []Finding {
	var found []Finding
	for {
		if c := p.calibrating; c != nil {
			if !wait && !c.isDone() && len(p.pending) <= maxPending {
				return found
			}
			<-c.done
			found = append(found, c.found...)
			p.calibrating = nil
		}
		if len(p.pending) == 0 {
			p.pending = nil
			return found
		}
		next := p.pending[0]
		p.pending = p.pending[1:]
		found = append(found, p.judge(next.unit, next.now)...)
	}
}

func (c *calibrating) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// calibrate runs the freeze of a baseline, beside the caller where that is wanted.
func (p *Policy) calibrate(freeze func() []Finding) []Finding {
	p.changed = true
	if !p.background {
		return freeze()
	}
	c := &calibrating{done: make(chan struct{})}
	p.calibrating = c
	go func() {
		defer close(c.done)
		c.found = freeze()
	}()
	return nil
}

// Calibrations keeps what calibrations found, so that a baseline that is met again need not be calibrated again. It may be
// shared by several goroutines.
type Calibrations struct {
	mu    sync.Mutex
	found map[string]calibrationFound
}

// keptCalibrations bounds the calibrations kept; past it all are forgotten.
const keptCalibrations = 1000

// calibrationFound is what the dear part of a freeze finds.
type calibrationFound struct {
	overlap float64
	weakest string
	detectors.Bootstrapped
}

// NewCalibrations makes an empty store.
func NewCalibrations() *Calibrations { return &Calibrations{found: map[string]calibrationFound{}} }

// of gives the calibration of a key, and makes it where it is not known.
func (c *Calibrations) of(key string, make func() calibrationFound) calibrationFound {
	c.mu.Lock()
	have, known := c.found[key]
	c.mu.Unlock()
	if known {
		return have
	}
	have = make()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.found) >= keptCalibrations {
		clear(c.found)
	}
	c.found[key] = have
	return have
}

// key tells calibrations apart: the values of the baseline and the rates that its branches may spend.
func (of portion) key(spent float64) string {
	rate := spent
	branches := 0
	of.walks(func(w *detectors.Walks) {
		for i := range w.Branches {
			if b := &w.Branches[i]; b.Height > 0 {
				rate += b.Height
				branches++
			}
		}
	})
	return fmt.Sprintf("%x %d %x", of.seed, branches, rate)
}
