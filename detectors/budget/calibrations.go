package budget

import (
	"runtime"
	"slices"
	"sync"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Calibrations caches the results of calibrations, so that a baseline seen again need not be calibrated again. The
// policies that share it calibrate at most one baseline per core at a time in the background. Otherwise hundreds that
// freeze at once would block scrapes for seconds. Calibrations is safe for concurrent use.
type Calibrations struct {
	cores   int
	mu      sync.Mutex
	found   map[string]Found
	running int
	waiting []*Turn // by arrival
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
	return &Calibrations{cores: runtime.GOMAXPROCS(0), found: map[string]Found{}}
}

// Len returns the number of cached calibrations.
func (c *Calibrations) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.found)
}

// Turn is a calibration in the background, which waits for a core or has one.
type Turn struct {
	of     *Calibrations
	units  int
	urgent bool
	begun  chan struct{} // closed when it has a core
}

// Enter lets the calibration of a baseline of so many units wait for a core. The first to get one are those that others
// wait for, see Hurry, then the smallest: every group gets a first baseline before any gets a better one. Among equals
// it is the first to come.
func (c *Calibrations) Enter(units int) *Turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &Turn{of: c, units: units, begun: make(chan struct{})}
	c.waiting = append(c.waiting, t)
	c.admit()
	return t
}

// Wait returns when the calibration has a core, which it keeps until Leave.
func (t *Turn) Wait() { <-t.begun }

// Hurry prefers the calibration to others: its policy can take no more units, and keeps its partitions from reading on.
func (t *Turn) Hurry() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.urgent = true
}

// Leave passes the core on.
func (t *Turn) Leave() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.running--
	t.of.admit()
}

// admit gives free cores to waiting calibrations.
func (c *Calibrations) admit() {
	for c.running < c.cores && len(c.waiting) > 0 {
		next := 0
		for i, t := range c.waiting {
			if t.before(c.waiting[next]) {
				next = i
			}
		}
		close(c.waiting[next].begun)
		c.waiting = slices.Delete(c.waiting, next, next+1)
		c.running++
	}
}

func (t *Turn) before(other *Turn) bool {
	if t.urgent != other.urgent {
		return t.urgent
	}
	return t.units < other.units
}

// Queue returns the number of calibrations in the background that wait for a core, and of those that have one.
func (c *Calibrations) Queue() (waiting, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting), c.running
}

// share returns the number of cores that one calibration may use. Where several run or wait, each has one, so that
// those who read telemetry meanwhile compete with few.
func (c *Calibrations) share() int {
	waiting, running := c.Queue()
	return max(1, c.cores/max(1, waiting+running))
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
