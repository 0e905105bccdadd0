package budget

import (
	"cmp"
	"container/heap"
	"runtime"
	"sync"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Calibrations caches the results of calibrations, so a baseline that occurs again need not be calibrated again. It
// also limits the background calibrations of all policies that share it to one per core. Otherwise hundreds of
// baselines that freeze at the same time would block scrapes for seconds. Calibrations is safe for concurrent use.
type Calibrations struct {
	cores   int
	mu      sync.Mutex
	found   map[string]Found
	running int
	waiting turns
	entered int64
	owners  map[any]int // number of waiting turns by owner
}

// keptCalibrations limits the number of cached calibrations. When it is reached, the cache is cleared.
const keptCalibrations = 1000

// Found is the result of the expensive part of a freeze.
type Found struct {
	Overlap     float64
	WeakestTest string
	detectors.Bootstrapped
}

// NewCalibrations returns an empty cache that admits one background calibration per core.
func NewCalibrations() *Calibrations {
	return &Calibrations{cores: runtime.GOMAXPROCS(0), found: map[string]Found{}, owners: map[any]int{}}
}

// Len returns the number of cached calibrations.
func (c *Calibrations) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.found)
}

// Turn is a background calibration that waits for a core or has one.
type Turn struct {
	of     *Calibrations
	owner  any
	units  int
	behind int   // number of its owner's turns that were waiting when it entered
	number int64 // in order of entry
	place  int   // in the heap of waiting turns; -1 if it does not wait
	urgent bool
	begun  chan struct{} // closed when it gets a core or is given up
}

// Enter queues the calibration of a baseline of the given number of units for a core. Urgent calibrations come first,
// see Hurry, then smaller ones: every group gets a first baseline before any group gets a better one. Among equals,
// owners take turns, so that an owner with many calibrations does not hold up the others; after that, the order of
// entry decides.
func (c *Calibrations) Enter(owner any, units int) *Turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entered++
	t := &Turn{of: c, owner: owner, units: units, behind: c.owners[owner], number: c.entered, begun: make(chan struct{})}
	c.owners[owner]++
	heap.Push(&c.waiting, t)
	c.admit()
	return t
}

// Wait blocks until the calibration has a core, which it keeps until Leave. It returns false if the calibration was
// given up.
func (t *Turn) Wait() bool {
	<-t.begun
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.units > 0
}

// Hurry moves the calibration ahead of others, because a caller waits for its policy.
func (t *Turn) Hurry() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.urgent = true; t.place >= 0 {
		heap.Fix(&t.of.waiting, t.place)
	}
}

// GiveUp removes the calibration from the queue if it still waits.
func (t *Turn) GiveUp() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.place >= 0 {
		heap.Remove(&t.of.waiting, t.place)
		t.begin()
		t.units = 0
	}
}

// Leave passes the core on to the next calibration.
func (t *Turn) Leave() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.running--
	t.of.admit()
}

// admit assigns free cores to waiting calibrations.
func (c *Calibrations) admit() {
	for c.running < c.cores && len(c.waiting) > 0 {
		heap.Pop(&c.waiting).(*Turn).begin()
		c.running++
	}
}

// begin ends the wait of a turn.
func (t *Turn) begin() {
	if c := t.of; c.owners[t.owner] > 1 {
		c.owners[t.owner]--
	} else {
		delete(c.owners, t.owner)
	}
	close(t.begun)
}

// turns is a heap of the waiting calibrations.
type turns []*Turn

func (w turns) Len() int { return len(w) }

func (w turns) Less(i, j int) bool {
	a, b := w[i], w[j]
	if a.urgent != b.urgent {
		return a.urgent
	}
	return cmp.Or(cmp.Compare(a.units, b.units), cmp.Compare(a.behind, b.behind), cmp.Compare(a.number, b.number)) < 0
}

func (w turns) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].place, w[j].place = i, j
}

// Push implements heap.Interface.
func (w *turns) Push(x any) {
	t := x.(*Turn)
	t.place = len(*w)
	*w = append(*w, t)
}

// Pop implements heap.Interface.
func (w *turns) Pop() any {
	last := len(*w) - 1
	t := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	t.place = -1
	return t
}

// Queue returns the numbers of background calibrations that wait for a core and that have one.
func (c *Calibrations) Queue() (waiting, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting), c.running
}

// share returns the number of cores that one calibration may use. If several run or wait, each has one, so the intake
// of telemetry competes with few.
func (c *Calibrations) share() int {
	waiting, running := c.Queue()
	return max(1, c.cores/max(1, waiting+running))
}

// of returns the calibration with a key from the cache. If it is not cached, of calls calibrate and caches the result.
func (c *Calibrations) of(key string, calibrate func() Found) Found {
	c.mu.Lock()
	have, known := c.found[key]
	c.mu.Unlock()
	if known {
		return have
	}
	have = calibrate()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.found) >= keptCalibrations {
		clear(c.found)
	}
	c.found[key] = have
	return have
}
