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

// How the desks of the service work: units that fit in a desk's channel, units of one partition that may wait for a
// desk, how often a desk with waiting units looks for those that it can release and how often it looks after all else,
// and how often it looks for silence.
const (
	deskBacklog = 512
	feedBacklog = 8192
	// unsavedBacklog is how many units a partition may hold for desks that cannot save them.
	unsavedBacklog = 200_000
	mergePulse     = 50 * time.Millisecond
	deskPulse      = time.Second
	tickEvery      = 10 * time.Second
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
	limit    *bank.StreamLimit

	ctx  context.Context // of the desks; ends when all of them are to save and stop
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	desks  map[string]*runningDesk
	feeds  map[int32]*partitionFeed
	errors []error // of the desks
}

type pipelineMetrics struct {
	late, saved      prometheus.Counter
	dropped          *prometheus.CounterVec
	waiting, savedAt prometheus.Gauge
}

func newPipelineMetrics(reg prometheus.Registerer) pipelineMetrics {
	m := pipelineMetrics{
		late:    prometheus.NewCounter(prometheus.CounterOpts{Name: MetricLateUnits, Help: "Units judged after one that ended later."}),
		saved:   prometheus.NewCounter(prometheus.CounterOpts{Name: MetricBankSaves, Help: "Snapshots of banks written."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: MetricUnitsDropped, Help: "Units that were not judged."}, []string{"reason"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricUnitsWaiting, Help: "Units that wait for other partitions."}),
		savedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBankSavedAt, Help: "When a bank was last saved."}),
	}
	for _, why := range []error{errUnmatched, errStreamLimit} {
		m.dropped.WithLabelValues(why.Error())
	}
	reg.MustRegister(m.late, m.saved, m.dropped, m.waiting, m.savedAt)
	return m
}

// newPipeline makes a pipeline without desks. ctx ends the desks in the hard way; Stop lets them save first.
func newPipeline(ctx context.Context, cfg *Config, store ingest.CheckpointStore, fx effects, log zerolog.Logger, reg prometheus.Registerer) *pipeline {
	p := &pipeline{
		cfg: cfg, store: store, effects: fx, log: log,
		episodes: assemble.NewMetrics(reg), metrics: newPipelineMetrics(reg),
		marks: newWatermarks(), recorded: newRecordings(cfg), limit: bank.NewStreamLimit(cfg.Limits.Streams),
		desks: map[string]*runningDesk{}, feeds: map[int32]*partitionFeed{},
	}
	p.ctx, p.stop = context.WithCancelCause(ctx)
	reg.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: MetricPolicies, Help: "Policies watched."},
		func() float64 { return float64(len(p.all())) }))
	reg.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: MetricStreamLimitHits, Help: "Times that a stream was not followed because of limits.streams."},
		func() float64 { return float64(p.limit.Refused()) }))
	return p
}

// Failed is closed when a desk could not go on; Stop gives the error.
func (p *pipeline) Failed() <-chan struct{} { return p.ctx.Done() }

// errStopped is the cause of an orderly stop.
var errStopped = errors.New("stopped")

// Stop lets every desk finish what it has been given and save its state, waits for them, and gives their errors.
func (p *pipeline) Stop() error {
	p.stop(errStopped)
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errors...)
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
		d := newDesk(policy, cfg, p.limit, p.effects)
		if err := d.restore(snapshot, time.Now()); err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
		p.launch(policy, d)
	}
	return nil
}

// Why a unit is not judged: no entry of the configuration watches its policy, or no more streams are followed.
var (
	errUnmatched   = errors.New("unmatched")
	errStreamLimit = errors.New("stream_limit")
)

// desk finds the desk of a policy, or starts it. errUnmatched and errStreamLimit say that the policy is not watched.
func (p *pipeline) desk(policy string) (*runningDesk, error) {
	p.mu.Lock()
	r := p.desks[policy]
	p.mu.Unlock()
	if r != nil {
		return r, nil
	}
	cfg, watched := p.cfg.policy(policy)
	switch {
	case !watched:
		return nil, errUnmatched
	case p.limit.Full():
		return nil, errStreamLimit
	}
	d := newDesk(policy, cfg, p.limit, p.effects)
	if err := p.recorded.teach(p.ctx, d.policy, policy, cfg); err != nil {
		return nil, err
	}
	return p.launch(policy, d), nil
}

// launch starts the goroutine of a desk, unless another partition has just started one for the policy.
func (p *pipeline) launch(policy string, d *desk) *runningDesk {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.desks[policy]; r != nil {
		return r
	}
	r := &runningDesk{
		desk: d, name: policy, pipeline: p, merger: newMerger(),
		units: make(chan waitingUnit, deskBacklog), orders: make(chan func()),
	}
	applied := map[int32]bank.AppliedUnit{}
	if !d.policy.Changed() { // as it was saved
		applied = d.policy.Applied()
	}
	r.saved.Store(&applied)
	p.desks[policy] = r
	p.wg.Go(func() {
		if err := r.run(); err != nil {
			p.failed(fmt.Errorf("policy %q: %w", policy, err))
		}
	})
	return r
}

func (p *pipeline) failed(err error) {
	p.mu.Lock()
	p.errors = append(p.errors, err)
	p.mu.Unlock()
	p.stop(err)
}

// all lists the desks by the names of their policies.
func (p *pipeline) all() []*runningDesk {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.desks), func(a, b *runningDesk) int { return strings.Compare(a.name, b.name) })
}

// Assign implements ingest.Handler.
func (p *pipeline) Assign(partition int32) (ingest.Processor, error) {
	p.marks.assign(partition, 0, time.Now())
	f := &partitionFeed{
		pipeline: p, partition: partition, episodes: newAssembler(p.cfg, p.episodes), known: map[string]*way{},
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
	if f := p.feeds[partition]; f != nil {
		f.episodes.Close()
		delete(p.feeds, partition)
	}
	p.mu.Unlock()
	p.tell(func(r *runningDesk) {
		r.receive() // the partition has handed on all that it ever will
		r.merger.drop(partition)
	})
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
	known     map[string]*way // by policy
	unsaved   []*ingest.Unit
	last      int64 // largest event time read that can be believed
	begun     bool  // restored, or fed
}

// way is the way of a partition's units to the desk of their policy.
type way struct {
	desk    *runningDesk
	waiting atomic.Int64 // units on the way
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
	now, clock := time.Now(), false
	believed := now.Add(clockTolerance).UnixNano()
	for i := range batch {
		if ts := batch[i].TS; ts != 0 && ts <= believed {
			f.last, clock = max(f.last, ts), true
		}
		f.episodes.Fold(&batch[i], emit)
	}
	f.pipeline.marks.advance(f.partition, f.last, !clock, now)
	return failed
}

// Idle implements ingest.Processor.
func (f *partitionFeed) Idle(context.Context) error {
	f.pipeline.marks.advance(f.partition, f.last, true, time.Now())
	return nil
}

// hand gives a unit to the desk of its policy, and waits while too many of this partition are on their way there.
func (f *partitionFeed) hand(ctx context.Context, u *ingest.Unit) error {
	w, err := f.way(u.Group.Policy)
	if errors.Is(err, errUnmatched) || errors.Is(err, errStreamLimit) {
		f.pipeline.metrics.dropped.WithLabelValues(err.Error()).Inc()
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.room(ctx, w); err != nil {
		return err
	}
	f.unsaved = append(f.unsaved, u)
	select {
	case w.desk.units <- newWaitingUnit(u, &w.waiting, time.Now()):
		return nil
	case <-f.pipeline.ctx.Done():
		return context.Cause(f.pipeline.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// way finds the way to the desk of a policy.
func (f *partitionFeed) way(policy string) (*way, error) {
	if w := f.known[policy]; w != nil {
		return w, nil
	}
	r, err := f.pipeline.desk(policy)
	if err != nil {
		return nil, err
	}
	f.known[policy] = &way{desk: r}
	return f.known[policy], nil
}

// errUnsaved ends the service where its state cannot be saved for so long that what is not saved fills the memory.
var errUnsaved = errors.New("too many units wait for a state that cannot be saved")

// room waits until fewer units than allowed are on the way, or the generation ends: then the batch in hand is finished.
// Partitions that are further behind are not held up: it is them that the units wait for.
func (f *partitionFeed) room(ctx context.Context, w *way) error {
	if len(f.unsaved) >= unsavedBacklog {
		if f.forgetSaved(); len(f.unsaved) >= unsavedBacklog {
			return fmt.Errorf("%w: %d", errUnsaved, len(f.unsaved))
		}
	}
	if w.waiting.Load() < feedBacklog {
		return nil
	}
	pulse := time.NewTicker(mergePulse)
	defer pulse.Stop()
	for w.waiting.Load() >= feedBacklog && !f.pipeline.marks.ending() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.pipeline.ctx.Done():
			return context.Cause(f.pipeline.ctx)
		case <-pulse.C:
		}
	}
	return nil
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
		if !f.known[u.Group.Policy].desk.hasSaved(u) {
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
	f.pipeline.marks.assign(f.partition, f.last, time.Now())
	return nil
}

// bankPrefix begins the names of the snapshots of desks.
const bankPrefix = "bank-"

// runningDesk is a desk with its goroutine.
type runningDesk struct {
	*desk
	name         string
	pipeline     *pipeline
	merger       *merger
	units        chan waitingUnit
	orders       chan func()                                // to be done between two units
	unshown      bool                                       // something has changed since it was last shown
	shownWaiting int                                        // units of the desk that the metric counts
	saved        atomic.Pointer[map[int32]bank.AppliedUnit] // what the saved state of the desk has applied, by partition
}

// hasSaved reports whether the saved state of the desk has the unit applied.
func (r *runningDesk) hasSaved(u *ingest.Unit) bool {
	applied, any := (*r.saved.Load())[u.Pos.Partition]
	return any && applied.Covers(u)
}

// run is the desk's goroutine. At a stop it judges what it has been given and can be released, and saves.
func (r *runningDesk) run() error {
	ctx := context.WithoutCancel(r.pipeline.ctx) // what has begun is finished
	pulse := time.NewTimer(deskPulse)
	defer pulse.Stop()
	shown, saved, ticked := time.Now(), time.Now(), time.Now()
	for {
		select {
		case <-r.pipeline.ctx.Done():
			err := r.release(ctx)
			r.publish()
			return errors.Join(err, r.save())
		case do := <-r.orders:
			do()
			continue
		case u := <-r.units:
			r.merger.add(u)
		case <-pulse.C:
			pulse.Reset(r.nextPulse())
		}
		if err := r.release(ctx); err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(shown) >= deskPulse {
			r.show()
			shown = now
		}
		if now.Sub(ticked) >= tickEvery && r.pipeline.marks.current(now) {
			if err := r.tick(ctx, now); err != nil {
				return err
			}
			ticked = now
		}
		if now.Sub(saved) >= time.Duration(r.pipeline.cfg.Checkpoint.Every) {
			if err := r.save(); err != nil {
				r.pipeline.log.Error().Err(err).Str("policy", r.name).Msg("Saving the state of a policy failed, trying again")
			}
			saved = now
		}
	}
}

// nextPulse is soon where units wait for other partitions, which say nothing when they get on.
func (r *runningDesk) nextPulse() time.Duration {
	if r.merger.waiting() > 0 {
		return mergePulse
	}
	return deskPulse
}

// receive takes what has been handed on.
func (r *runningDesk) receive() {
	for n := len(r.units); n > 0; n-- {
		r.merger.add(<-r.units)
	}
}

// release judges all units that need not wait any longer. How far partitions have been read is asked before the
// channel is drained: a partition hands on its units before it says that it got that far.
func (r *runningDesk) release(ctx context.Context) error {
	now := time.Now()
	low := r.pipeline.marks.low(now)
	r.receive()
	for {
		u := r.merger.release(low)
		if u == nil {
			break
		}
		r.unshown = true
		if err := r.observe(ctx, u, now); err != nil {
			return err
		}
	}
	r.pipeline.metrics.late.Add(float64(r.merger.takeLate()))
	return nil
}

// show publishes what has changed since it last did.
func (r *runningDesk) show() {
	waiting := r.merger.waiting()
	r.pipeline.metrics.waiting.Add(float64(waiting - r.shownWaiting))
	r.shownWaiting = waiting
	if r.unshown {
		r.publish()
		r.unshown = false
	}
}

// save makes the desk's state durable where it has changed, and remembers up to which units it is.
func (r *runningDesk) save() error {
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
	r.policy.Saved()
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
