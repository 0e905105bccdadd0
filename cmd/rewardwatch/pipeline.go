package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	pages "github.com/rewardwatch/rewardwatch/cmd/rewardwatch/console"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
)

// pipeline is what the rooms of the service share. The way of a unit through them:
//
//	telemetry partition -> partitionFeed (its assembler) -> partitionOutlet
//	    alone:        -> delivery -> merger and desk of the policy
//	    in a cluster: -> unitWriter -> units topic -> unitReader -> delivery -> merger and desk of the policy
//
// Every desk saves its state from time to time, and so does whoever reads a partition, of the telemetry or of the units,
// together with the units that are not yet in both of the last two saves of their desks: a crash between any two of these,
// or a save that is damaged, loses nothing, and since a bank ignores what it has applied, nothing is counted twice.
type pipeline struct {
	cfg           *Config
	audience      audience
	log           zerolog.Logger
	episodes      *assemble.Metrics
	metrics       pipelineMetrics
	recorded      *recordings
	limit         *bank.StreamLimit
	memory        *ceiling
	unsafeBacklog int // mostUnsafe, but in tests
	calibrations  *bank.Calibrations
	scores        *pages.Scores

	ctx  context.Context // of the desks; ends when all of them are to save and stop
	stop context.CancelCauseFunc

	mu   sync.Mutex
	sets []*desks // that there are
	err  error    // of the first desk that could not go on
}

// audience is told of what the desks find, and of the desks that come and go.
type audience interface {
	effects
	outcomes
	// restored takes over what desks that were restored hold, before their first unit. What must not be lost it leaves to
	// resumed.
	restored(d *desks)
	// resumed returns when what a desk held when it was restored has been acted on, as by Changed.
	resumed(ctx context.Context, d *desk) error
	// passed looks again, as time passes, at what a desk holds, and returns when what follows has been acted on, as by Changed.
	passed(ctx context.Context, d *desk) error
	// gone says that desks have stopped, and that others may judge their policies from now on.
	gone(d *desks)
}

type pipelineMetrics struct {
	late, saved prometheus.Counter
	dropped     *prometheus.CounterVec
	waiting     *prometheus.GaugeVec
	savedAt     prometheus.Gauge
	delay       prometheus.Histogram
}

func newPipelineMetrics(reg prometheus.Registerer) pipelineMetrics {
	m := pipelineMetrics{
		late:    prometheus.NewCounter(prometheus.CounterOpts{Name: MetricLateUnits, Help: "Units judged after one that ended later."}),
		saved:   prometheus.NewCounter(prometheus.CounterOpts{Name: MetricBankSaves, Help: "Snapshots of banks written."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: MetricUnitsDropped, Help: "Units that were not judged."}, []string{"reason"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: MetricUnitsWaiting, Help: "Units that wait to be judged."}, []string{"reason"}),
		savedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricBankSavedAt, Help: "When a bank was last saved."}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: MetricUnitDelay, Help: "Time from the last event of a unit until the detectors had judged it.",
			Buckets: []float64{1, 5, 15, alerts.FreshWithin, 300, 1800, 7200},
		}),
	}
	for _, why := range []error{errUnmatched, errStreamLimit, errNoBaseline, errDamagedUnit} {
		m.dropped.WithLabelValues(why.Error())
	}
	for _, reason := range []string{waitsForPartitions, waitsForCalibration} {
		m.waiting.WithLabelValues(reason)
	}
	reg.MustRegister(m.late, m.saved, m.dropped, m.waiting, m.savedAt, m.delay)
	return m
}

// newPipeline makes a pipeline without desks. ctx ends the desks in the hard way; Stop lets them save first.
func newPipeline(ctx context.Context, cfg *Config, a audience, log zerolog.Logger, reg prometheus.Registerer) *pipeline {
	p := &pipeline{
		cfg: cfg, audience: a, log: log,
		episodes: assemble.NewMetrics(reg), metrics: newPipelineMetrics(reg),
		recorded: newRecordings(cfg, topicRanges(cfg.Ingest.Kafka)),
		limit:    bank.NewStreamLimit(cfg.Limits.Streams), memory: newCeiling(cfg.Limits.Memory, reg), unsafeBacklog: mostUnsafe, calibrations: bank.NewCalibrations(),
		scores: pages.NewScores(),
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
	var errs []error
	for _, d := range p.present() {
		errs = append(errs, d.stop())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(append(errs, p.err)...)
}

// failed ends the service, as a desk cannot go on.
func (p *pipeline) failed(err error) {
	p.mu.Lock()
	p.err = errors.Join(p.err, err)
	p.mu.Unlock()
	p.stop(err)
}

// present gives the sets of desks that there are.
func (p *pipeline) present() []*desks {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sets)
}

// furthest gives the watermarks of the desks that know most of how far the telemetry has been read, nil without desks.
func (p *pipeline) furthest() *watermarks {
	var most *watermarks
	for _, d := range p.present() {
		if most == nil || most.low().before(d.marks.low()) {
			most = d.marks
		}
	}
	return most
}

// remove takes a set of desks out that has stopped.
func (p *pipeline) remove(d *desks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = slices.DeleteFunc(p.sets, func(have *desks) bool { return have == d })
}

// all lists the desks by the names of their policies.
func (p *pipeline) all() []*runningDesk {
	var all []*runningDesk
	for _, d := range p.present() {
		all = append(all, d.list()...)
	}
	slices.SortFunc(all, func(a, b *runningDesk) int { return strings.Compare(a.name, b.name) })
	return all
}

// checkFleet warns where a policy is one more than the fleet's budget is shared among.
func (p *pipeline) checkFleet(policy string) {
	fleet := p.cfg.Fleet
	if n := len(p.all()); fleet.Budget > 0 && n > fleet.Policies {
		p.log.Warn().Str("policy", policy).Int("policies", n).Int("shared_among", fleet.Policies).
			Msg("more policies than fleet.policies share the fleet's budget of false alarms; raise it, or the budget is exceeded")
	}
}

// summaries gives what the banks of all desks have published.
func (p *pipeline) summaries() []*bank.Summary {
	var out []*bank.Summary
	for _, r := range p.all() {
		out = append(out, r.policy.Summary())
	}
	return out
}
