package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

// Shares of limits.memory that keep memory below it. Above evictAbove, the least recently used groups are evicted until
// usage is down to evictTo. Above tight, a group that must be loaded waits a moment for others to leave. A restart
// loads groups up to restoreTo. The rest is for allocations between two garbage collections.
const (
	restoreTo   = .5
	evictTo     = .65
	evictAbove  = .75
	tight       = .8
	memoryPulse = 250 * time.Millisecond
	memoryLook  = 10 * time.Millisecond
	SlowUnits   = 100
	// loadPatience is how long an evicted group waits for a checkpoint that cannot be read.
	loadPatience = 5 * time.Minute
	// goesToGo is the share of the limit for the heap and everything else of the Go runtime: a late garbage
	// collection exceeds it.
	goesToGo = .92
	// mappedStep is the change of the files in memory, in bytes, at which Go's limit is adjusted.
	mappedStep = 1 << 20
	// leastGarbage is the amount of garbage, in bytes, that may always accumulate before it is collected.
	leastGarbage = 32 << 20
	// mostSaves is the maximum number of workers that save at once, because saving takes memory too.
	mostSaves = 4
)

// ceiling tracks how much memory the process uses, and how much it may use.
type ceiling struct {
	limit     int64
	residents *capacity.Residents
	mu        sync.Mutex // guards the next seven
	samples   []metrics.Sample
	cycle     uint64       // the garbage collection after which heap and live were measured
	heap      int64        // bytes on the heap after that collection
	live      int64        // the same without the groups
	usualPace int          // GOGC before it was changed here
	paced     int          // current GOGC
	restores  int          // number of restores in progress
	other     atomic.Int64 // bytes of everything except the groups
	reserved  atomic.Int64 // bytes reserved for groups that are being loaded
	held      atomic.Int64 // bytes of the limit that were not available to Go when its limit was last set; unheld while it is not set
	Passed    atomic.Bool
	saves     chan struct{} // saves in progress
	opaque    func() int64  // bytes of long-lived heap memory without pointers; nil if there is none
	overdrawn atomic.Int64  // when a group was last loaded although memory was tight, in Unix nanoseconds

	evictions, returns prometheus.Counter
}

// The runtime metrics that are measured, as indexes into ceiling.samples.
const (
	sampleCycles = iota
	sampleLive
	sampleTotal
	sampleReleased
	sampleHeapFree
	sampleHeapObjects
	sampleHeapUnused
)

// unheld means that Go's memory limit is not set.
const unheld = -1

func newCeiling(limit ingest.ByteSize, reg prometheus.Registerer) *ceiling {
	c := &ceiling{
		limit: int64(limit), saves: make(chan struct{}, mostSaves), residents: capacity.NewResidents(0),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{Name: names.MetricGroupEvictions, Help: "Groups evicted from memory."}),
		returns:   prometheus.NewCounter(prometheus.CounterOpts{Name: names.MetricGroupReturns, Help: "Groups reloaded into memory."}),
	}
	c.held.Store(unheld)
	for _, name := range []string{
		"/gc/cycles/total:gc-cycles", "/gc/heap/live:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes",
		"/memory/classes/heap/free:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes",
	} {
		c.samples = append(c.samples, metrics.Sample{Name: name})
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	reg.MustRegister(c.evictions, c.returns,
		gauge(names.MetricMemory, "Memory in use: live heap after the last garbage collection, allocations since then, and memory outside the heap.",
			func() float64 { return float64(c.inUse()) }),
		gauge(names.MetricMemoryLimit, "Memory limit set in limits.memory.", func() float64 { return float64(c.limit) }),
		gauge(names.MetricGroupsEvicted, "Groups whose state is only in the checkpoint.", func() float64 { return float64(c.residents.Evicted()) }))
	return c
}

// inUse returns the number of bytes in use. The memory that groups have taken since the last garbage collection is an
// estimate.
func (c *ceiling) inUse() int64 { return c.other.Load() + c.residents.Bytes() }

// above reports whether more than the given share of the limit is in use.
func (c *ceiling) above(part float64) bool { return float64(c.inUse()) > part*float64(c.limit) }

// reserve reserves room for a group to be loaded, if there is room. The reservation lasts until the group is counted
// and the room is given back; otherwise several workers would find the same room.
//
// It measures each time, since many groups can be loaded within a memoryPulse and take more than their estimates.
func (c *ceiling) reserve(bytes int64) bool {
	c.measure()
	if float64(c.inUse()+c.reserved.Add(bytes)) <= tight*float64(c.limit) {
		return true
	}
	c.reserved.Add(-bytes)
	return false
}

// measure reads memory usage from the runtime, and the size of mapped files from the kernel.
func (c *ceiling) measure() {
	c.mu.Lock()
	defer c.mu.Unlock()
	metrics.Read(c.samples)
	bytes := func(i int) int64 { return int64(c.samples[i].Value.Uint64()) }
	if cycle := c.samples[sampleCycles].Value.Uint64(); cycle != c.cycle {
		c.cycle, c.heap = cycle, bytes(sampleLive)
		c.live = c.heap - c.residents.Bytes()
		c.pace()
	}
	heap := bytes(sampleReleased) + bytes(sampleHeapFree) + bytes(sampleHeapObjects) + bytes(sampleHeapUnused)
	files := mappedFiles()
	c.other.Store(c.live + bytes(sampleTotal) - heap + files)
	if held := c.held.Load(); held != unheld && max(files-held, held-files) >= mappedStep {
		c.hold(files)
	}
}

// pace makes garbage collections more frequent while open decisions take up much of the heap. At Go's own pace, garbage
// of the same size would accumulate between two collections, although open decisions contain no pointers and cost the
// collector nothing.
func (c *ceiling) pace() {
	if c.opaque == nil || c.held.Load() == unheld || c.usualPace < 0 {
		return
	}
	percent := c.usualPace
	if c.restores > 0 {
		percent *= 3
	}
	if opaque := c.opaque(); opaque > leastGarbage && c.heap > opaque {
		percent = int(int64(percent) * max(c.heap-opaque, leastGarbage) / c.heap)
	}
	c.setPace(percent)
}

// restore makes garbage collections less frequent while restores are in progress; more is 1 when one begins and -1 when
// it ends. The loaded memory stays, so most collections would scan all of it in vain. Go's limit still keeps the
// process below its own.
func (c *ceiling) restore(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restores += more
	c.pace()
}

func (c *ceiling) setPace(percent int) {
	if percent != c.paced {
		c.paced = percent
		debug.SetGCPercent(percent)
	}
}

// allow limits the memory for groups that a worker loads while it is restored, given the other memory in use.
func (c *ceiling) allow() {
	c.measure()
	c.residents.Allow(int64(restoreTo*float64(c.limit)) - c.other.Load())
}

// Hold sets Go's memory limit so that the process stays below the limit, until letGo is called.
func (c *ceiling) Hold() (letGo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := debug.SetMemoryLimit(-1)
	c.usualPace = debug.SetGCPercent(-1)
	c.paced = c.usualPace
	debug.SetGCPercent(c.usualPace)
	c.hold(mappedFiles())
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held.Store(unheld)
		debug.SetMemoryLimit(before)
		c.setPace(c.usualPace)
	}
}

// hold sets Go's memory limit to its share of the limit that the files in memory leave.
func (c *ceiling) hold(files int64) {
	c.held.Store(files)
	debug.SetMemoryLimit(int64(goesToGo * float64(c.limit-files)))
}

// agedEvery is the precision with which the groups in memory are known by their last use.
const agedEvery = time.Minute

// WatchMemory keeps the memory below its limit until ctx ends.
func (p *Pipeline) WatchMemory(ctx context.Context) {
	pulse := time.NewTicker(memoryPulse)
	defer pulse.Stop()
	for aged := time.Now(); ; {
		p.Memory.measure()
		p.evict()
		p.Memory.tell(p.Log)
		select {
		case <-ctx.Done():
			return
		case now := <-pulse.C:
			if now.Sub(aged) >= agedEvery {
				p.Memory.residents.Age()
				aged = now
			}
		}
	}
}

// evict asks the workers to evict groups if too much memory is in use.
func (p *Pipeline) evict() {
	c := p.Memory
	if !c.above(evictAbove) {
		return
	}
	chosen := map[string][]ingest.Group{}
	for _, group := range c.residents.Choose(c.inUse() - int64(evictTo*float64(c.limit))) {
		chosen[group.Policy] = append(chosen[group.Policy], group)
	}
	for _, r := range p.All() {
		if groups := chosen[r.Name]; len(groups) > 0 {
			r.askToEvict(groups)
		}
	}
}

// tell logs when usage exceeds the limit, and when it is below the limit again.
func (c *ceiling) tell(log zerolog.Logger) {
	passed := c.above(1)
	if c.Passed.Swap(passed) == passed {
		return
	}
	at, now := log.Info(), "memory usage is below limits.memory again; no longer slowing down reads"
	if passed {
		at, now = log.Error(), "memory usage exceeds limits.memory; slowing down reads"
	}
	at.Int64("bytes", c.inUse()).Int64("limit", c.limit).Int("evicted", c.residents.Evicted()).Bool("passed", passed).
		Msg(now)
}

// SlowDown limits a partition to SlowUnits units per second while the memory limit is exceeded.
func (d *Delivery) SlowDown(ctx context.Context) error {
	if !d.Workers.Pipeline.Memory.Passed.Load() {
		return nil
	}
	if d.slowed++; d.slowed%SlowUnits != 0 {
		return nil
	}
	_, err := d.Pause(ctx, WorkerPulse)
	return err
}

// askToEvict makes the worker evict groups between two units. Only one goroutine may call it.
func (r *RunningWorker) askToEvict(groups []ingest.Group) {
	select {
	case before := <-r.leaving: // groups that the worker has not evicted yet
		groups = append(before, groups...)
	default:
	}
	r.leaving <- groups
}

// leave evicts the groups that askToEvict left, if any.
func (r *RunningWorker) leave() {
	select {
	case groups := <-r.leaving:
		r.evict(groups)
	default:
	}
}

// evict evicts those groups that can leave, after saving them.
func (r *RunningWorker) evict(groups []ingest.Group) {
	evicted, unsaved := r.Policy.Evict(groups)
	if len(unsaved) > 0 {
		if err := r.save(); err != nil {
			r.workers.Pipeline.Log.Error().Err(err).Str("policy", r.Name).Msg("failed to save the state of a policy: its groups cannot be evicted")
		}
		more, kept := r.Policy.Evict(unsaved)
		r.Policy.Stay(kept)
		evicted += more
	}
	r.workers.Pipeline.Memory.evictions.Add(float64(evicted))
}

// beginSave waits for the worker's turn to save. Call end when the save has finished. beginSave fails if the worker is
// abandoned meanwhile.
func (r *RunningWorker) beginSave() (end func(), err error) {
	saves := r.workers.Pipeline.Memory.saves
	select {
	case saves <- struct{}{}:
	case <-r.workers.work.Done():
		return nil, context.Cause(r.workers.work)
	}
	r.saving = true
	return func() {
		r.saving = false
		<-saves
	}, nil
}

// load returns parts of the worker's checkpoint. It retries while they cannot be read, for example because the brokers
// are unreachable.
func (r *RunningWorker) load(parts []string) (ingest.Parts, error) {
	for begun := time.Now(); ; {
		loaded, err := r.workers.Store.LoadParts(BankPrefix+r.Name, parts)
		if err == nil {
			r.workers.Pipeline.Memory.returns.Inc()
			return loaded, nil
		}
		if !mayPass(err) || time.Since(begun) > loadPatience {
			return nil, err
		}
		r.workers.Pipeline.Log.Warn().Err(err).Str("policy", r.Name).Msg("failed to read the state of an evicted group, retrying")
		select {
		case <-time.After(WorkerPulse):
		case <-r.workers.Ctx.Done():
			return nil, err
		}
	}
}

// mayPass reports whether a failed load may succeed later.
func mayPass(err error) bool {
	var damaged *checkpoint.DamagedError
	var version *checkpoint.VersionError
	return !errors.As(err, &damaged) && !errors.As(err, &version) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ingest.ErrFenced)
}

// makeRoom reserves room for a group, until giveBack is called. It does not wait forever: if every group that could
// leave is needed, slow progress is better than none. Groups arrive faster than they leave, since each leaves with a
// save. So every WorkerPulse, one of all workers that have waited for long proceeds. Groups that a save needs do not
// wait, because the groups that could leave would have to be saved first.
func (r *RunningWorker) makeRoom(bytes int64) (giveBack func()) {
	m, begun := r.workers.Pipeline.Memory, time.Now()
	giveBack = func() { m.reserved.Add(-bytes) }
	for look := memoryLook; !m.reserve(bytes); look = min(2*look, memoryPulse) {
		now := time.Now()
		if r.saving || r.workers.Ctx.Err() != nil || now.Sub(begun) >= WorkerPulse && m.overdraw(now) {
			m.reserved.Add(bytes)
			break
		}
		select {
		case groups := <-r.leaving:
			r.evict(groups)
		case <-time.After(look):
		case <-r.workers.Ctx.Done():
		}
	}
	return giveBack
}

// lacksRoom reports whether a group is evicted and there is no room for it. During shutdown, no group leaves any more,
// so the units of such a group are not judged: the checkpoint of their partition contains them and the units after
// them.
func (r *RunningWorker) lacksRoom(group ingest.Group) bool {
	m := r.workers.Pipeline.Memory
	return len(r.Policy.Absent(group)) > 0 && m.above(tight)
}

// overdraw reports whether a group may be loaded although memory is tight: one every WorkerPulse for all workers
// together.
func (c *ceiling) overdraw(now time.Time) bool {
	last := c.overdrawn.Load()
	return now.UnixNano()-last >= WorkerPulse.Nanoseconds() && c.overdrawn.CompareAndSwap(last, now.UnixNano())
}

// tick looks for silent groups, including evicted ones if there is room to load them. The next tick continues.
func (r *RunningWorker) tick(ctx context.Context, now time.Time) error {
	for _, group := range r.Policy.Silent(now) {
		if r.workers.Pipeline.Memory.above(evictAbove) {
			break
		}
		if err := r.comeBack(group); err != nil {
			return err
		}
	}
	return r.Worker.tick(ctx, now)
}

// comeBack loads an evicted group back into memory.
func (d *Worker) comeBack(group ingest.Group) error {
	names := d.Policy.Absent(group)
	if len(names) == 0 {
		return nil
	}
	defer d.reserve(group)()
	parts, err := d.load(names)
	if err == nil {
		err = d.Policy.Return(group, parts)
	}
	if err != nil {
		return fmt.Errorf("reload group %s: %w", group, err)
	}
	return nil
}
