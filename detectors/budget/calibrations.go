package budget

import (
	"runtime"
	"sync"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Calibrations caches the results of calibrations, so that a baseline seen again need not be calibrated again. The
// policies that share it calibrate at most one baseline per core at a time in the background. Otherwise hundreds that
// freeze at once would block scrapes for seconds. Calibrations is safe for concurrent use.
type Calibrations struct {
	slots chan struct{} // held by each calibration in the background
	mu    sync.Mutex
	found map[string]Found
}

// keptCalibrations bounds the number of cached calibrations. Beyond it the cache is cleared.
const keptCalibrations = 1000

// Found is the result of the expensive part of a freeze.
type Found struct {
	Overlap     float64
	WeakestTest string
	detectors.Bootstrapped
}

// NewCalibrations returns an empty store.
func NewCalibrations() *Calibrations {
	return &Calibrations{slots: make(chan struct{}, runtime.GOMAXPROCS(0)), found: map[string]Found{}}
}

// Len returns the number of cached calibrations.
func (c *Calibrations) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.found)
}

// Acquire waits for a core to calibrate on in the background. The caller releases it.
func (c *Calibrations) Acquire() (release func()) {
	c.slots <- struct{}{}
	return func() { <-c.slots }
}

// of returns the calibration of a key. If it is not cached, of calls make.
func (c *Calibrations) of(key string, make func() Found) Found {
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
