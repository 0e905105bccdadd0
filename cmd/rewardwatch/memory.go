package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

// How memory is kept below limits.memory, as parts of it: above evictAbove the groups that were not used for longest are
// evicted until it is down to evictTo; above tight what would come back waits a moment for others to leave. A restart fills
// restoreTo with groups. The rest is for what comes and goes between two collections of garbage.
const (
	restoreTo   = .5
	evictTo     = .65
	evictAbove  = .75
	tight       = .9
	memoryPulse = 250 * time.Millisecond
	memoryLook  = 10 * time.Millisecond
	slowUnits   = 100
	// loadPatience is for how long an evicted group waits for a checkpoint that cannot be read.
	loadPatience = 5 * time.Minute
	// mostSaves is how many desks may write at once: what they write is in memory too.
	mostSaves = 4
)

// ceiling says how much memory the process takes, and how much it may.
type ceiling struct {
	limit     int64
	residents *bank.Residents
	samples   []metrics.Sample
	cycle     uint64       // of the collection of garbage that live is of
	live      int64        // bytes on the heap that this left, but for the groups
	other     atomic.Int64 // bytes of all but the groups
	passed    atomic.Bool
	saves     chan struct{} // that are under way

	evictions, returns prometheus.Counter
}

// The figures of the runtime that are measured, by their places in ceiling.samples.
const (
	sampleCycles = iota
	sampleLive
	sampleTotal
	sampleReleased
	sampleHeapFree
	sampleHeapObjects
	sampleHeapUnused
)

func newCeiling(limit ingest.ByteSize, reg prometheus.Registerer) *ceiling {
	c := &ceiling{
		limit: int64(limit), saves: make(chan struct{}, mostSaves), residents: bank.NewResidents(int64(restoreTo * float64(limit))),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{Name: MetricGroupEvictions, Help: "Groups evicted from memory."}),
		returns:   prometheus.NewCounter(prometheus.CounterOpts{Name: MetricGroupReturns, Help: "Groups that came back into memory."}),
	}
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
		gauge(MetricMemory, "Memory in use: what the last collection of garbage left, what came since, and all beside the heap.",
			func() float64 { return float64(c.inUse()) }),
		gauge(MetricMemoryLimit, "Memory that may be in use, limits.memory.", func() float64 { return float64(c.limit) }),
		gauge(MetricGroupsEvicted, "Groups whose state is in the checkpoint alone.", func() float64 { return float64(c.residents.Evicted()) }))
	return c
}

// inUse is how many bytes are in use. What groups take is an estimate from the last collection of garbage on.
func (c *ceiling) inUse() int64 { return c.other.Load() + c.residents.Bytes() }

// above reports whether more than a part of the limit is in use.
func (c *ceiling) above(part float64) bool { return float64(c.inUse()) > part*float64(c.limit) }

// measure asks the runtime. It belongs to one goroutine.
func (c *ceiling) measure() {
	metrics.Read(c.samples)
	bytes := func(i int) int64 { return int64(c.samples[i].Value.Uint64()) }
	if cycle := c.samples[sampleCycles].Value.Uint64(); cycle != c.cycle {
		c.cycle, c.live = cycle, bytes(sampleLive)-c.residents.Bytes()
	}
	heap := bytes(sampleReleased) + bytes(sampleHeapFree) + bytes(sampleHeapObjects) + bytes(sampleHeapUnused)
	c.other.Store(c.live + bytes(sampleTotal) - heap)
}

// watchMemory keeps the memory below its limit until ctx ends.
func (p *pipeline) watchMemory(ctx context.Context) {
	pulse := time.NewTicker(memoryPulse)
	defer pulse.Stop()
	for {
		p.memory.measure()
		p.evict()
		p.memory.tell(p.log)
		select {
		case <-ctx.Done():
			return
		case <-pulse.C:
		}
	}
}

// evict asks the desks to evict groups where too much memory is in use.
func (p *pipeline) evict() {
	c := p.memory
	if !c.above(evictAbove) {
		return
	}
	chosen := map[string][]ingest.Group{}
	for _, group := range c.residents.Choose(c.inUse() - int64(evictTo*float64(c.limit))) {
		chosen[group.Policy] = append(chosen[group.Policy], group)
	}
	for _, r := range p.all() {
		if groups := chosen[r.name]; len(groups) > 0 {
			r.askToEvict(groups)
		}
	}
}

// tell says when the limit is passed, and when it is not any more.
func (c *ceiling) tell(log zerolog.Logger) {
	passed := c.above(1)
	if c.passed.Swap(passed) == passed {
		return
	}
	at := log.Info()
	if passed {
		at = log.Error()
	}
	at.Int64("bytes", c.inUse()).Int64("limit", c.limit).Int("evicted", c.residents.Evicted()).Bool("passed", passed).
		Msg("limits.memory: while it is passed, reading is slow")
}

// slowDown lets a partition hand on slowUnits a second while the limit of memory is passed.
func (d *delivery) slowDown(ctx context.Context) error {
	if !d.desks.pipeline.memory.passed.Load() {
		return nil
	}
	if d.slowed++; d.slowed%slowUnits != 0 {
		return nil
	}
	_, err := d.pause(ctx, deskPulse)
	return err
}

// askToEvict has the desk evict groups between two units. There is one who asks.
func (r *runningDesk) askToEvict(groups []ingest.Group) {
	select {
	case before := <-r.leaving: // it has not got round to these
		groups = append(before, groups...)
	default:
	}
	r.leaving <- groups
}

// evict evicts those of the groups that may go, once they are saved.
func (r *runningDesk) evict(groups []ingest.Group) {
	evicted, unsaved := r.policy.Evict(groups)
	if len(unsaved) > 0 {
		for range 2 {
			if err := r.save(); err != nil {
				r.desks.pipeline.log.Error().Err(err).Str("policy", r.name).Msg("Saving the state of a policy failed: its groups cannot be evicted")
				break
			}
		}
		more, kept := r.policy.Evict(unsaved)
		r.policy.Stay(kept)
		evicted += more
	}
	r.desks.pipeline.memory.evictions.Add(float64(evicted))
}

// beginSave waits for the desk's turn to write, which ends with what it gives. It fails where the desk is given up meanwhile.
func (r *runningDesk) beginSave() (end func(), err error) {
	saves := r.desks.pipeline.memory.saves
	select {
	case saves <- struct{}{}:
	case <-r.desks.work.Done():
		return nil, context.Cause(r.desks.work)
	}
	r.saving = true
	return func() {
		r.saving = false
		<-saves
	}, nil
}

// load gives parts of the desk's checkpoint, once there is room for them or none could be made for a while. While they
// cannot be read, as where the brokers are away, it tries again.
func (r *runningDesk) load(parts []string) (ingest.Parts, error) {
	r.makeRoom()
	for begun := time.Now(); ; {
		loaded, err := r.desks.store.LoadParts(bankPrefix+r.name, parts)
		if err == nil {
			r.desks.pipeline.memory.returns.Inc()
			return loaded, nil
		}
		if !mayPass(err) || time.Since(begun) > loadPatience {
			return nil, err
		}
		r.desks.pipeline.log.Warn().Err(err).Str("policy", r.name).Msg("Reading the state of an evicted group failed, trying again")
		select {
		case <-time.After(deskPulse):
		case <-r.desks.ctx.Done():
			return nil, err
		}
	}
}

// mayPass reports whether what could not be loaded may be loaded later.
func mayPass(err error) bool {
	var damaged *checkpoint.DamagedError
	var version *checkpoint.VersionError
	return !errors.As(err, &damaged) && !errors.As(err, &version) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ingest.ErrFenced)
}

// makeRoom waits while memory is tight, but not for ever: where all that could leave is needed, it is better slow than dead.
// What a save needs does not wait for groups that would be saved before they leave.
func (r *runningDesk) makeRoom() {
	patience := time.Now().Add(deskPulse)
	for !r.saving && r.desks.pipeline.memory.above(tight) && time.Now().Before(patience) {
		select {
		case groups := <-r.leaving:
			r.evict(groups)
		case <-time.After(memoryLook):
		case <-r.desks.ctx.Done():
			return
		}
	}
}

// tick looks for silence, also of evicted groups as far as there is room for them; the next tick goes on.
func (r *runningDesk) tick(ctx context.Context, now time.Time) error {
	for _, group := range r.policy.Silent(now) {
		if r.desks.pipeline.memory.above(evictAbove) {
			break
		}
		if err := r.comeBack(group); err != nil {
			return err
		}
	}
	return r.desk.tick(ctx, now)
}

// comeBack brings a group back into memory where it is evicted.
func (d *desk) comeBack(group ingest.Group) error {
	names := d.policy.Absent(group)
	if len(names) == 0 {
		return nil
	}
	parts, err := d.load(names)
	if err == nil {
		err = d.policy.Return(group, parts)
	}
	if err != nil {
		return fmt.Errorf("bring back group %s: %w", group, err)
	}
	return nil
}
