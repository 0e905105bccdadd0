// Package engine moves a unit from the partition that it is read from, through the worker that judges its policy, to
// the checkpoint.
package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/pace"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/names"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/retrain/outcome"
)

// Pipeline is what the parts of the service share. A unit passes through them like this:
//
//	telemetry partition -> PartitionFeed (its assembler) -> PartitionOutlet
//	    standalone:   -> delivery -> merger and worker of the policy
//	    in a cluster: -> unitWriter -> units topic -> unitReader -> delivery -> merger and worker of the policy
//
// Every worker saves its state periodically. So does every reader of a partition, of the telemetry or of the units,
// together with the units that are not yet in both of the last two saves of their workers. A crash between any two of
// these saves, or a damaged save, therefore loses nothing. A bank ignores units that it has applied, so nothing is
// counted twice. A standalone instance keeps these units in a log beside the checkpoint.
//
// It is large because it connects these parts; each field belongs to one of them.
type Pipeline struct {
	Cfg           *Settings
	Source        Source // set before anything is restored or read
	audience      Audience
	Log           zerolog.Logger
	intake        *IntakeMetrics
	Metrics       pipelineMetrics
	Recorded      *Recordings
	tenants       *tenant.Accounts
	Memory        *ceiling
	kept          *keptUnits
	pace, shows   *pace.Pace
	unsafeBacklog int // mostUnsafe, except in tests
	calibrations  *budget.Calibrations
	queue         *calibrationQueue
	batches       order.Batches
	scores        scoreKeeper   // nil if no page shows scores
	reading       chan struct{} // held while reading a baseline of an evicted group for a person

	Ctx  context.Context // of the workers; ends when all of them must save and stop
	stop context.CancelCauseFunc

	mu   sync.Mutex
	sets []*Workers // all sets of workers
	err  error      // of the first worker that could not go on
}

// Source is the source of the telemetry.
type Source struct {
	Topics []string // by index
	SentOn bool     // whether a repartition.Writer writes the only topic
	Shared bool     // whether other instances judge other policies
}

// Audience is notified of what the workers find, and of workers that start and stop.
type Audience interface {
	effects
	outcome.Audience
	// Restored is called with the state of restored workers, before their first unit. Anything that must not be lost is
	// left to Resumed.
	Restored(d *Workers)
	// Resumed returns once the state that a worker was restored with has been acted on, as by Changed.
	Resumed(ctx context.Context, d *Worker) error
	// Passed reconsiders the state of a worker as time passes, and returns once the consequences have been acted on, as
	// by Changed.
	Passed(ctx context.Context, d *Worker) error
	// Gone reports that workers have stopped, and that other instances may judge their policies from now on.
	Gone(d *Workers)
	// Forgotten reports that a policy is no longer known.
	Forgotten(policy string)
}

type pipelineMetrics struct {
	Late, Saved prometheus.Counter
	expired     prometheus.Counter
	Dropped     *prometheus.CounterVec
	waiting     *prometheus.GaugeVec
	savedAt     prometheus.Gauge
	delay       *delayMetric
}

func newPipelineMetrics(reg prometheus.Registerer) pipelineMetrics {
	m := pipelineMetrics{
		Late:  prometheus.NewCounter(prometheus.CounterOpts{Name: names.MetricLateUnits, Help: "Episodes or blocks judged out of order, after an episode or block that ended later."}),
		Saved: prometheus.NewCounter(prometheus.CounterOpts{Name: names.MetricBankSaves, Help: "Number of times policy state was saved."}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{
			Name: names.MetricGroupsForgotten, Help: "Groups without recent episodes or blocks that were forgotten because limits.streams was reached.",
		}),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: names.MetricUnitsDropped, Help: "Episodes or blocks that were not judged."}, []string{"reason"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: names.MetricUnitsWaiting, Help: "Episodes or blocks waiting to be judged."}, []string{"reason"}),
		savedAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: names.MetricBankSavedAt, Help: "Unix time at which policy state was last saved."}),
		delay: &delayMetric{desc: prometheus.NewDesc(
			names.MetricUnitDelay, "Time from the last event of an episode or block until it is judged.", nil, nil)},
	}
	for _, why := range []error{ErrUnmatched, errStreamLimit, errTenantPolicies, errNoBaseline, ErrDamagedUnit} {
		m.Dropped.WithLabelValues(why.Error())
	}
	for _, reason := range []string{waitsForPartitions, waitsForCalibration} {
		m.waiting.WithLabelValues(reason)
	}
	reg.MustRegister(m.Late, m.Saved, m.expired, m.Dropped, m.waiting, m.savedAt, m.delay)
	return m
}

// NewPipeline returns a pipeline without workers. When ctx ends, the workers stop without saving; Stop lets them save
// first.
func NewPipeline(ctx context.Context, cfg *Settings, pinned RangeReader, scores scoreKeeper, a Audience, log zerolog.Logger, reg prometheus.Registerer) *Pipeline {
	p := &Pipeline{
		Cfg: cfg, audience: a, Log: log,
		intake: NewIntakeMetrics(reg), Metrics: newPipelineMetrics(reg),
		Recorded: NewRecordings(cfg, pinned),
		tenants:  tenant.NewAccounts(cfg.Tenants, cfg.divided(), reg), Memory: newCeiling(cfg.Limits.Memory, reg), kept: newKeptUnits(int64(cfg.Limits.Memory)), unsafeBacklog: mostUnsafe, calibrations: budget.NewCalibrations(), pace: pace.OfSaves(), shows: pace.OfShows(),
		scores: scores, reading: make(chan struct{}, 1),
	}
	p.queue = newCalibrationQueue(
		func() (waiting, running int) { return p.calibrations.Queue() },
		func() finding.Progress { return finding.ProgressOf(p.Summaries()) }, log, reg)
	p.Memory.opaque = p.intake.DecisionBytes
	p.tenants.Watched = p.names
	if len(cfg.Tenants) > 0 {
		p.intake.Tenants = p.tenants
	}
	p.Ctx, p.stop = context.WithCancelCause(ctx)
	reg.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: names.MetricPolicies, Help: "Number of monitored policies."},
		func() float64 { return float64(len(p.All())) }))
	reg.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: names.MetricUnitLogBytes, Help: "Disk space used by episodes or blocks that two saves may not cover yet."},
		func() float64 { return float64(p.kept.logged()) }))
	for reason, refused := range refusals(p.tenants.Limits()) {
		reg.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{
				Name: names.MetricStreamLimitHits, Help: "Streams not judged because of limits.streams.",
				ConstLabels: prometheus.Labels{"reason": reason},
			},
			func() float64 { return float64(refused()) }))
	}
	return p
}

// refusals returns counters of everything that the stream limits have refused, by reason.
func refusals(limits []*capacity.StreamLimit) map[string]func() int64 {
	sum := func(of func(*capacity.StreamLimit) int64) func() int64 {
		return func() (n int64) {
			for _, l := range limits {
				n += of(l)
			}
			return n
		}
	}
	return map[string]func() int64{"limit": sum((*capacity.StreamLimit).Exhausted), "policy": sum((*capacity.StreamLimit).Crowded)}
}

// Failed is closed when a worker fails; Stop returns the error.
func (p *Pipeline) Failed() <-chan struct{} { return p.Ctx.Done() }

// errStopped is the cause of an orderly shutdown. errTooLate is the reason why a policy is not saved during shutdown.
var (
	errStopped = errors.New("stopped")
	errTooLate = errors.New("shutdown timed out: episodes or blocks judged since the last save will be judged again after a restart")
)

// Stop lets every worker finish its units and save its state, waits for all of them, and returns their errors.
func (p *Pipeline) Stop() error { return p.StopBy(context.Background()) }

// StopBy is like Stop, but limited by ctx. Workers that have not begun to save when ctx ends do not save: units that
// they have judged since their last save are judged again after a restart.
func (p *Pipeline) StopBy(ctx context.Context) error {
	p.stop(errStopped)
	var errs []error
	for _, d := range p.Present() {
		late := context.AfterFunc(ctx, func() { d.Abandon(errTooLate) })
		errs = append(errs, d.stop())
		late()
	}
	if ctx.Err() != nil {
		p.Log.Warn().Err(errTooLate).Msg("not all policies were saved")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(append(errs, p.err)...)
}

// Fail ends the service because a worker cannot continue.
func (p *Pipeline) Fail(err error) {
	p.mu.Lock()
	p.err = errors.Join(p.err, err)
	p.mu.Unlock()
	p.stop(err)
}

// Present returns the current sets of workers.
func (p *Pipeline) Present() []*Workers {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sets)
}

// Furthest returns the watermarks of the set with the most recent knowledge of how far the telemetry has been read, or
// nil if there are no workers.
func (p *Pipeline) Furthest() *order.Watermarks {
	var most *order.Watermarks
	for _, d := range p.Present() {
		if most == nil || most.Low().Before(d.Marks.Low()) {
			most = d.Marks
		}
	}
	return most
}

// remove removes a set of workers that has stopped.
func (p *Pipeline) remove(d *Workers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = slices.DeleteFunc(p.sets, func(have *Workers) bool { return have == d })
}

// All returns the workers, sorted by the names of their policies.
func (p *Pipeline) All() []*RunningWorker {
	var all []*RunningWorker
	for _, d := range p.Present() {
		all = append(all, d.List()...)
	}
	slices.SortFunc(all, func(a, b *RunningWorker) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// checkFleet warns if there are more policies than the number that is configured to share the fleet's budget.
func (p *Pipeline) checkFleet(policy string) {
	fleet := p.Cfg.Fleet
	if n := len(p.All()); fleet.Budget > 0 && n > fleet.Policies {
		p.Log.Warn().Str("policy", policy).Int("policies", n).Int("shared_among", fleet.Policies).
			Msg("there are more policies than fleet.policies, so the fleet's false alarm budget will be exceeded: raise fleet.policies")
	}
}

// Summaries returns the published summaries of the banks of all workers.
func (p *Pipeline) Summaries() []*finding.Summary {
	var out []*finding.Summary
	for _, r := range p.All() {
		out = append(out, r.Policy.Summary())
	}
	return out
}
