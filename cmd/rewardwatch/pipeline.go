package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	// mostUnsafe is how many units a partition may hold for desks that have not saved them twice.
	mostUnsafe = 400_000
	mergePulse = 50 * time.Millisecond
	deskPulse  = time.Second
	tickEvery  = 10 * time.Second
)

// pipeline joins the rooms of the service. A partition's goroutine folds events into units and hands them to the desk
// of their policy; each desk has a goroutine of its own. Every desk saves its state from time to time, and every
// partition its open episodes, together with the units that are not yet in both of the last two saves of their desks: a
// crash between any two of these, or a save that is damaged, loses nothing, and since a bank ignores what it has applied,
// nothing is counted twice.
type pipeline struct {
	cfg           *Config
	store         ingest.CheckpointStore
	effects       effects
	log           zerolog.Logger
	episodes      *assemble.Metrics
	metrics       pipelineMetrics
	marks         *watermarks
	recorded      *recordings
	limit         *bank.StreamLimit
	unsafeBacklog int // mostUnsafe, but in tests
	calibrations  *bank.Calibrations

	ctx  context.Context // of the desks; ends when all of them are to save and stop
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	desks  map[string]*runningDesk
	feeds  map[int32]*partitionFeed
	errors []error // of the desks
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
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: MetricUnitsWaiting, Help: "Units that wait to be judged."}, []string{"reason"}),
		savedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBankSavedAt, Help: "When a bank was last saved."}),
	}
	for _, why := range []error{errUnmatched, errStreamLimit} {
		m.dropped.WithLabelValues(why.Error())
	}
	for _, reason := range []string{waitsForPartitions, waitsForCalibration} {
		m.waiting.WithLabelValues(reason)
	}
	reg.MustRegister(m.late, m.saved, m.dropped, m.waiting, m.savedAt)
	return m
}

// newPipeline makes a pipeline without desks. ctx ends the desks in the hard way; Stop lets them save first.
func newPipeline(ctx context.Context, cfg *Config, store ingest.CheckpointStore, fx effects, log zerolog.Logger, reg prometheus.Registerer) *pipeline {
	p := &pipeline{
		cfg: cfg, store: store, effects: fx, log: log,
		episodes: assemble.NewMetrics(reg), metrics: newPipelineMetrics(reg),
		marks: newWatermarks(), recorded: newRecordings(cfg, topicRanges(cfg.Ingest.Kafka)),
		limit: bank.NewStreamLimit(cfg.Limits.Streams), unsafeBacklog: mostUnsafe, calibrations: bank.NewCalibrations(),
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

// restore makes the desks that were saved, on all cores. It is called once, before the first partition is assigned.
func (p *pipeline) restore(names []string) error {
	errs := make([]error, len(names))
	cores := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, name := range names {
		cores <- struct{}{}
		wg.Go(func() {
			if err := p.restoreDesk(name); err != nil {
				errs[i] = fmt.Errorf("restore %s: %w", name, err)
			}
			<-cores
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p *pipeline) restoreDesk(name string) error {
	policy := name[len(bankPrefix):]
	cfg, watched := p.cfg.policy(policy)
	if !watched {
		p.log.Warn().Str("policy", policy).Msg("a saved policy is not watched any more; its state is kept but not used")
		return nil
	}
	parts, err := p.store.Load(name)
	if err != nil {
		return err
	}
	d := newDesk(policy, cfg, p.limit, p.effects)
	if err := d.restore(parts, time.Now()); err != nil {
		return err
	}
	p.launch(policy, d)
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
	d.policy.Share(p.calibrations)
	d.policy.InBackground()
	r := &runningDesk{
		desk: d, name: policy, pipeline: p, merger: newMerger(),
		units: make(chan waitingUnit, deskBacklog), orders: make(chan func()), shownWaiting: map[string]int{},
	}
	if d.resumed { // from the newest save, or from the one before
		r.newest, r.once = d.policy.Applied(), true
	}
	r.safe.Store(&map[int32]bank.AppliedUnit{})
	p.desks[policy] = r
	if fleet := p.cfg.Fleet; fleet.Budget > 0 && len(p.desks) > fleet.Policies {
		p.log.Warn().Str("policy", policy).Int("policies", len(p.desks)).Int("shared_among", fleet.Policies).
			Msg("more policies than fleet.policies share the fleet's budget of false alarms; raise it, or the budget is exceeded")
	}
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

// Begin implements ingest.Handler.
func (p *pipeline) Begin(partitions int) { p.marks.begin(partitions) }

// Assign implements ingest.Handler.
func (p *pipeline) Assign(partition int32, _ ingest.CheckpointStore) (ingest.State, error) {
	return p.assign(partition), nil
}

// Ending implements ingest.Handler.
func (p *pipeline) Ending() { p.marks.end() }

func (p *pipeline) assign(partition int32) *partitionFeed {
	p.marks.assign(partition, 0)
	f := &partitionFeed{
		pipeline: p, partition: partition, episodes: newAssembler(p.cfg, p.episodes), known: map[string]*way{},
		reading: time.Now().UnixNano(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.feeds[partition] = f
	return f
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

// tell has every desk do something in its own goroutine, and returns when all have done it: a partition that is read
// again must not hand its units on to a desk that is still to forget those of before.
func (p *pipeline) tell(do func(*runningDesk)) {
	for _, r := range p.all() {
		done := make(chan struct{})
		select {
		case r.orders <- func() { do(r); close(done) }:
			<-done
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

// summaries gives what the banks of all desks have published.
func (p *pipeline) summaries() []*bank.Summary {
	var out []*bank.Summary
	for _, r := range p.all() {
		out = append(out, r.policy.Summary())
	}
	return out
}
