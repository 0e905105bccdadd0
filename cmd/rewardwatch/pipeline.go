package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// How the desks of the service work: units that may wait in a desk's channel and in its merger, how often a desk looks
// for units that it can release and publishes what it shows, and how often it looks for silence.
const (
	deskBacklog   = 4096
	mergerBacklog = 16384
	deskPulse     = 50 * time.Millisecond
	publishEvery  = time.Second
	tickEvery     = 10 * time.Second
)

// pipeline joins the rooms of the service. A partition's goroutine folds events into units and hands them to the desk
// of their policy; each desk has a goroutine of its own. Every desk saves its state from time to time, and every
// partition its open episodes, together with the units that no saved desk has applied yet: a crash between any two of
// these loses nothing, and since a bank ignores what it has applied, nothing is counted twice.
type pipeline struct {
	cfg      *Config
	store    ingest.CheckpointStore
	effects  effects
	log      zerolog.Logger
	episodes *assemble.Metrics
	metrics  pipelineMetrics
	marks    *watermarks
	recorded *recordings

	ctx  context.Context // of the desks; ends when all of them are to save and stop
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	desks   map[string]*runningDesk
	feeds   map[int32]*partitionFeed
	streams atomic.Int64 // of all desks, as last published
}

type pipelineMetrics struct {
	late, saved prometheus.Counter
	dropped     *prometheus.CounterVec
	waiting     *prometheus.GaugeVec
	savedAt     prometheus.Gauge
}

func newPipelineMetrics(reg prometheus.Registerer) pipelineMetrics {
	m := pipelineMetrics{
		late:    prometheus.NewCounter(prometheus.CounterOpts{Name: MetricLateUnits, Help: "Units judged after one that ended later."}),
		saved:   prometheus.NewCounter(prometheus.CounterOpts{Name: MetricBankSaves, Help: "Snapshots of banks written."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: MetricUnitsDropped, Help: "Units that were not judged."}, []string{"reason"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: MetricUnitsWaiting, Help: "Units that wait for other partitions."}, []string{"policy"}),
		savedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBankSavedAt, Help: "When a bank was last saved."}),
	}
	for _, reason := range []string{droppedUnmatched, droppedLimit} {
		m.dropped.WithLabelValues(reason)
	}
	reg.MustRegister(m.late, m.saved, m.dropped, m.waiting, m.savedAt)
	return m
}

// Why a unit was not judged.
const (
	droppedUnmatched = "unmatched"
	droppedLimit     = "streams_limit"
)

// newPipeline makes a pipeline without desks. ctx ends the desks in the hard way; Stop lets them save first.
func newPipeline(ctx context.Context, cfg *Config, store ingest.CheckpointStore, fx effects, log zerolog.Logger, reg prometheus.Registerer) *pipeline {
	p := &pipeline{
		cfg: cfg, store: store, effects: fx, log: log,
		episodes: assemble.NewMetrics(reg), metrics: newPipelineMetrics(reg),
		marks: newWatermarks(), recorded: newRecordings(cfg),
		desks: map[string]*runningDesk{}, feeds: map[int32]*partitionFeed{},
	}
	p.ctx, p.stop = context.WithCancelCause(ctx)
	reg.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: MetricPolicies, Help: "Policies watched."},
		func() float64 { return float64(len(p.all())) }))
	return p
}

// Failed is closed when a desk could not go on; Stop gives the error.
func (p *pipeline) Failed() <-chan struct{} { return p.ctx.Done() }

// errStopped is the cause of an orderly stop.
var errStopped = errors.New("stopped")

// Stop lets every desk finish what it has been given and save its state, and waits for them.
func (p *pipeline) Stop() error {
	p.stop(errStopped)
	p.wg.Wait()
	if err := context.Cause(p.ctx); !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// restore makes the desks that were saved. It is called once, before the first partition is assigned.
func (p *pipeline) restore(names []string) error {
	for _, name := range names {
		snapshot, err := p.store.Load(name)
		if err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
		policy := name[len(bankPrefix):]
		cfg, watched := p.cfg.policy(policy)
		if !watched {
			p.log.Warn().Str("policy", policy).Msg("a saved policy is not watched any more; its state is kept but not used")
			continue
		}
		d := newDesk(policy, cfg, p.effects)
		if err := d.restore(snapshot, time.Now()); err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
		p.start(policy, d)
	}
	return nil
}

// desk finds the desk of a policy, or starts it; nil where the policy is not to be watched, with the reason.
func (p *pipeline) desk(policy string) (*runningDesk, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.desks[policy]; r != nil {
		return r, "", nil
	}
	cfg, watched := p.cfg.policy(policy)
	switch {
	case !watched:
		return nil, droppedUnmatched, nil
	case p.streams.Load() >= int64(p.cfg.Limits.Streams):
		return nil, droppedLimit, nil
	}
	d := newDesk(policy, cfg, p.effects)
	if err := p.recorded.teach(p.ctx, d.policy, policy, cfg); err != nil {
		return nil, "", err
	}
	return p.launch(policy, d), "", nil
}

func (p *pipeline) start(policy string, d *desk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launch(policy, d)
}

// launch starts the goroutine of a desk. The caller holds mu.
func (p *pipeline) launch(policy string, d *desk) *runningDesk {
	r := &runningDesk{
		desk: d, name: policy, pipeline: p, merger: newMerger(),
		units: make(chan *ingest.Unit, deskBacklog), orders: make(chan func()),
	}
	applied := map[int32]bank.AppliedUnit{}
	if !d.policy.Changed() { // as it was saved
		applied = d.policy.Applied()
	}
	r.saved.Store(&applied)
	p.desks[policy] = r
	p.wg.Go(func() {
		if err := r.run(); err != nil {
			p.stop(fmt.Errorf("policy %q: %w", policy, err))
		}
	})
	return r
}

// all lists the desks by the names of their policies.
func (p *pipeline) all() []*runningDesk {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.desks), func(a, b *runningDesk) int { return strings.Compare(a.name, b.name) })
}

// Assign implements ingest.Handler.
func (p *pipeline) Assign(partition int32) (ingest.Processor, error) {
	p.marks.assign(partition, 0)
	f := &partitionFeed{
		pipeline: p, partition: partition, episodes: newAssembler(p.cfg, p.episodes), known: map[string]*runningDesk{},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feeds[partition] = f
	return f, nil
}

// Revoke implements ingest.Handler. Units of the partition that still wait are dropped: its checkpoint has them.
func (p *pipeline) Revoke(partition int32) {
	p.marks.revoke(partition)
	p.mu.Lock()
	p.feeds[partition].episodes.Close()
	delete(p.feeds, partition)
	p.mu.Unlock()
	p.tell(func(r *runningDesk) { r.merger.drop(partition) })
}

// tell has every desk do something in its own goroutine, and returns when all have begun.
func (p *pipeline) tell(do func(*runningDesk)) {
	for _, r := range p.all() {
		select {
		case r.orders <- func() { do(r) }:
		case <-p.ctx.Done():
		}
	}
}

// newAssembler makes the first stage of a partition, or of a file.
func newAssembler(cfg *Config, m *assemble.Metrics) *assemble.Assembler {
	return assemble.New(assemble.Config{
		MaxOpen: cfg.Limits.OpenEpisodes,
		GroupBy: func(policy string) []string {
			c, _ := cfg.policy(policy)
			return c.GroupBy
		},
	}, m)
}

// partitionFeed is the processor of one partition: its open episodes, and the units that it handed to desks which have
// not saved them yet.
type partitionFeed struct {
	pipeline  *pipeline
	partition int32
	episodes  *assemble.Assembler
	known     map[string]*runningDesk
	unsaved   []*ingest.Unit
	last      int64 // largest event time read
	begun     bool  // restored, or fed
}

// Process folds a batch into units and hands them on.
func (f *partitionFeed) Process(ctx context.Context, batch []ingest.Event) error {
	if !f.begun {
		f.begun = true
		f.pipeline.tell(func(r *runningDesk) { r.policy.Forget(f.partition) })
	}
	var failed error
	emit := func(u *ingest.Unit) {
		if failed == nil {
			failed = f.hand(ctx, u)
		}
	}
	for i := range batch {
		f.last = max(f.last, batch[i].TS)
		f.episodes.Fold(&batch[i], emit)
	}
	f.pipeline.marks.advance(f.partition, f.last, false)
	return failed
}

// Idle implements ingest.Processor.
func (f *partitionFeed) Idle(context.Context) error {
	f.pipeline.marks.advance(f.partition, f.last, true)
	return nil
}

func (f *partitionFeed) hand(ctx context.Context, u *ingest.Unit) error {
	r := f.known[u.Group.Policy]
	if r == nil {
		found, reason, err := f.pipeline.desk(u.Group.Policy)
		if err != nil {
			return err
		}
		if found == nil {
			f.pipeline.metrics.dropped.WithLabelValues(reason).Inc()
			return nil
		}
		f.known[u.Group.Policy], r = found, found
	}
	f.unsaved = append(f.unsaved, u)
	select {
	case r.units <- u:
		return nil
	case <-f.pipeline.ctx.Done():
		return context.Cause(f.pipeline.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// feedState is the snapshot of a partition.
type feedState struct {
	Last     int64
	Episodes []byte
	Unsaved  []*ingest.Unit
}

// Snapshot implements ingest.Processor.
func (f *partitionFeed) Snapshot(w io.Writer) error {
	var episodes bytes.Buffer
	if err := f.episodes.Snapshot(&episodes); err != nil {
		return err
	}
	f.forgetSaved()
	if err := gob.NewEncoder(w).Encode(feedState{f.last, episodes.Bytes(), f.unsaved}); err != nil {
		return fmt.Errorf("write the state of a partition: %w", err)
	}
	return nil
}

// forgetSaved drops the units that their desks have saved.
func (f *partitionFeed) forgetSaved() {
	kept := f.unsaved[:0]
	for _, u := range f.unsaved {
		if !f.known[u.Group.Policy].hasSaved(u) {
			kept = append(kept, u)
		}
	}
	clear(f.unsaved[len(kept):])
	f.unsaved = kept
}

// Restore implements ingest.Processor. Units that no desk had saved are handed on again.
func (f *partitionFeed) Restore(r io.Reader) error {
	var state feedState
	if err := gob.NewDecoder(r).Decode(&state); err != nil {
		return fmt.Errorf("read the state of a partition: %w", err)
	}
	if err := f.episodes.Restore(bytes.NewReader(state.Episodes)); err != nil {
		return err
	}
	f.last, f.begun = state.Last, true
	for _, u := range state.Unsaved {
		if err := f.hand(f.pipeline.ctx, u); err != nil {
			return err
		}
	}
	f.pipeline.marks.assign(f.partition, f.last)
	return nil
}

// bankPrefix begins the names of the snapshots of desks.
const bankPrefix = "bank-"

// runningDesk is a desk with its goroutine.
type runningDesk struct {
	*desk
	name     string
	pipeline *pipeline
	merger   *merger
	units    chan *ingest.Unit
	orders   chan func()                                // to be done between two units
	saved    atomic.Pointer[map[int32]bank.AppliedUnit] // what the saved state of the desk has applied, by partition
}

// hasSaved reports whether the saved state of the desk has the unit applied.
func (r *runningDesk) hasSaved(u *ingest.Unit) bool {
	applied, any := (*r.saved.Load())[u.Pos.Partition]
	return any && applied.Covers(u)
}

// run is the desk's goroutine. At a stop it judges what it has been given and can be released, and saves.
func (r *runningDesk) run() error {
	ctx := context.WithoutCancel(r.pipeline.ctx) // what has begun is finished
	pulse := time.NewTicker(deskPulse)
	defer pulse.Stop()
	save, publish, tick := time.Now(), time.Now(), time.Now()
	for {
		var input <-chan *ingest.Unit
		if r.merger.waiting() < mergerBacklog {
			input = r.units
		}
		select {
		case <-r.pipeline.ctx.Done():
			return errors.Join(r.release(ctx), r.save())
		case do := <-r.orders:
			do()
			continue
		case u := <-input:
			r.merger.add(u)
		case <-pulse.C:
		}
		if err := r.release(ctx); err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(publish) >= publishEvery {
			r.show()
			publish = now
		}
		if now.Sub(tick) >= tickEvery && r.pipeline.marks.idle() {
			if err := r.tick(ctx, now); err != nil {
				return err
			}
			tick = now
		}
		if now.Sub(save) >= time.Duration(r.pipeline.cfg.Checkpoint.Every) {
			if err := r.save(); err != nil {
				r.pipeline.log.Error().Err(err).Str("policy", r.name).Msg("cannot save the state of a policy; trying again")
			}
			save = now
		}
	}
}

// release judges all units that need not wait any longer. How far partitions have been read is asked before the
// channel is drained: a partition hands on its units before it says that it got that far.
func (r *runningDesk) release(ctx context.Context) error {
	now := time.Now()
	low := r.pipeline.marks.low(now)
	for n := len(r.units); n > 0; n-- {
		r.merger.add(<-r.units)
	}
	for {
		u := r.merger.release(low)
		if u == nil {
			break
		}
		if err := r.observe(ctx, u, now); err != nil {
			return err
		}
	}
	r.pipeline.metrics.late.Add(float64(r.merger.takeLate()))
	return nil
}

// show publishes, and tells the pipeline how many streams there are.
func (r *runningDesk) show() {
	r.publish()
	r.pipeline.metrics.waiting.WithLabelValues(r.name).Set(float64(r.merger.waiting()))
	total := 0
	for _, other := range r.pipeline.all() {
		for _, g := range other.policy.Summary().Groups {
			total += len(g.Streams)
		}
	}
	r.pipeline.streams.Store(int64(total))
}

// save makes the desk's state durable and remembers up to which units it is.
func (r *runningDesk) save() error {
	r.publish()
	if !r.policy.Changed() {
		return nil
	}
	snapshot, err := r.snapshot()
	if err != nil {
		return err
	}
	if err := r.pipeline.store.Save(bankPrefix+r.name, snapshot); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	applied := r.policy.Applied()
	r.saved.Store(&applied)
	r.pipeline.metrics.saved.Inc()
	r.pipeline.metrics.savedAt.SetToCurrentTime()
	return nil
}

// summaries gives what the banks of all desks have published.
func (p *pipeline) summaries() []*bank.Summary {
	var out []*bank.Summary
	for _, r := range p.all() {
		out = append(out, r.policy.Summary())
	}
	return out
}
