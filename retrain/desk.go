package retrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/kubejob"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// overdueEvery is how often the desk looks for overdue requests. Any change to the ledger also ends them.
const overdueEvery = time.Minute

// Desk turns incidents into retrain requests and arranges their delivery.
//
// It is large because each request by a person, a trigger or a schedule is a method that uses both the ledger and the
// queue; everything else is in separate types.
type Desk struct {
	*ledger.Reader // of the ledger
	cfg            Config
	recipes        recipe.Recipes
	schema         recipe.Validator
	ledger         *ledger.Ledger
	dispatcher     *dispatcher
	runs           *command.Runner   // nil if no target is a command
	jobs           *kubejob.Follower // nil if no target is a Job of Kubernetes
	metrics        *metrics
	log            zerolog.Logger
	awaited        awaited

	levels      recipe.Levels            // nil without baselines
	learns      func(policy string) bool // whether a policy learns all the time; nil if that is unknown
	externalURL string                   // the base URL of the service for people, "" if unknown
}

// Open opens the ledger and reads every target's secret once, so that an unreadable secret causes an error now instead
// of at the first request. The configuration must have passed Check and CheckRecipes. The caller must close the desk.
// ctx is that of the service: when it ends, so do waits for an unavailable ledger, even after Open has returned.
func Open(ctx context.Context, cfg Config, recipes recipe.Recipes, log zerolog.Logger, reg prometheus.Registerer) (*Desk, error) {
	return open(ctx, cfg, recipes, log, reg, target.NewTransport)
}

func open(
	ctx context.Context, cfg Config, recipes recipe.Recipes, log zerolog.Logger, reg prometheus.Registerer, transport func(target.Target) (http.RoundTripper, error),
) (*Desk, error) {
	published, err := recipe.NewValidator()
	if err != nil {
		return nil, err
	}
	runs, err := cfg.openRuns(log)
	if err != nil {
		return nil, err
	}
	means := target.Means{Check: published.Check, Transport: transport, Runs: runs}
	adapters, err := target.NewAdapters(cfg.Targets, means)
	if err != nil {
		return nil, err
	}
	m := newMetrics(cfg)
	l, err := ledger.Open(ctx, cfg.Ledger, listener(m, log))
	if err != nil {
		return nil, err
	}
	if err := l.Resume(ctx, cfg.Targets); err != nil {
		return nil, errors.Join(fmt.Errorf("resume deliveries: %w", err), l.Close())
	}
	dispatcher, err := newDispatcher(l, cfg.Targets, adapters, m, log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := dispatcher.queue.AddAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("resume deliveries: %w", err), l.Close())
	}
	if err := m.register(reg, newLedgerCollector(cfg, l)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.Arm()
	d := &Desk{
		Reader: &l.Reader, cfg: cfg, recipes: recipes, schema: published, ledger: l, metrics: m, log: log,
		dispatcher: dispatcher, runs: runs,
	}
	if err := d.followJobs(means); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// listener returns a listener that passes the ledger's events to metrics and log.
func listener(m *metrics, log zerolog.Logger) ledger.Listener {
	return ledger.Listener{
		Waits: func(err error, wait time.Duration) {
			m.retries.Inc()
			log.Warn().Err(err).Stringer("wait", wait).Msg("the ledger cannot be reached, retrying")
		},
		Suspended: func(err error, now *ledger.SuspendedError) {
			log.Error().Err(err).Str("reason", now.Why).Msg("the ledger is unavailable: no retrain requests are opened or delivered until it recovers; drift detection continues")
		},
		Revived: func(since time.Time) { log.Warn().Time("since", since).Msg("the ledger is available again") },
	}
}

// Run delivers requests until the context ends, and then finishes the attempts in flight. While the ledger is
// suspended, Run retries it and continues once it is available. It returns nil on a clean stop.
func (d *Desk) Run(ctx context.Context) error { return d.runWith(ctx, d.dispatcher.run) }

// runWith runs deliver together with everything else that must be watched.
func (d *Desk) runWith(ctx context.Context, deliver func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	var overdue, scheduled, runs, jobs error
	watching.Go(func() {
		defer cancel()
		overdue = d.watchOverdue(ctx)
	})
	watching.Go(func() {
		defer cancel()
		scheduled = d.watchSchedules(ctx)
	})
	watching.Go(func() {
		defer cancel()
		runs = d.watchRuns(ctx)
	})
	watching.Go(func() {
		defer cancel()
		jobs = d.watchJobs(ctx)
	})
	watching.Go(func() { d.ledger.Revive(ctx) })
	err := d.deliverAgain(ctx, deliver)
	cancel()
	watching.Wait()
	return errors.Join(err, overdue, scheduled, runs, jobs)
}

// deliverAgain calls deliver again whenever the ledger is available again. Requests that were in progress when it
// failed may have no job.
func (d *Desk) deliverAgain(ctx context.Context, deliver func(context.Context) error) error {
	for {
		err := deliver(ctx)
		for errors.Is(err, ledger.ErrSuspended) && d.back(ctx) {
			err = d.dispatcher.queue.AddJobless(ctx)
		}
		if err != nil || ctx.Err() != nil {
			return unlessSuspended(err)
		}
	}
}

// back waits until the ledger is usable. It returns false if ctx ends first.
func (d *Desk) back(ctx context.Context) bool {
	select {
	case <-d.ledger.Back():
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// unlessSuspended drops ErrSuspended: the work is done once the ledger is available again.
func unlessSuspended(err error) error {
	if errors.Is(err, ledger.ErrSuspended) {
		return nil
	}
	return err
}

// watchOverdue ends overdue states and releases queued rollbacks, until ctx ends or the ledger fails.
func (d *Desk) watchOverdue(ctx context.Context) error {
	every := time.NewTicker(overdueEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if d.Suspended() != nil {
			continue
		}
		if err := unlessSuspended(d.release(ctx)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("release queued rollbacks: %w", err)
		}
		if found, err := d.ledger.AnyOverdue(ctx, time.Now()); err == nil && !found {
			continue // the loop waits for an unavailable ledger
		}
		err := d.ledger.Update(ctx, func(tx *ledger.Tx) error { return tx.EndOverdue(ctx, time.Now()) })
		if unlessSuspended(err) != nil && ctx.Err() == nil {
			return fmt.Errorf("end overdue requests: %w", err)
		}
	}
}

// Waiting returns how long the oldest pending change of the ledger has waited, or 0 if there is none. While it waits,
// its policy is not judged.
func (d *Desk) Waiting() time.Duration { return d.ledger.Waiting() }

// Close closes the ledger. It must be called after Run has returned.
func (d *Desk) Close() error {
	d.metrics.unregister()
	return d.ledger.Close()
}

// Consider decides whether an incident triggers a retraining, and opens the request if it does. The decision is durable
// when Consider returns. Call it whenever the incident or its clock has changed: an incident has at most one request.
// clock is the time of the newest unit of the incident's group, zero if its telemetry has no clock. Consider is safe
// for concurrent use.
func (d *Desk) Consider(ctx context.Context, inc alerts.Incident, clock time.Time) (ledger.Decision, error) {
	policy := ledger.Plain(inc.Group.Policy)
	log := d.log.With().Str("incident", inc.ID).Stringer("group", inc.Group).Logger()
	decision, err := d.settleOn(ctx, inc.ID, policy, log, func(tx *ledger.Tx, now time.Time) (ledger.Decision, error) {
		return d.decide(ctx, tx, inc, clock, now)
	})
	if err != nil {
		return ledger.Decision{}, fmt.Errorf("decide whether incident %s triggers a retraining: %w", inc.ID, err)
	}
	return decision, nil
}

// settleOn makes a decision about the origin of a retraining, and records and logs a new decision.
func (d *Desk) settleOn(
	ctx context.Context, origin, policy string, log zerolog.Logger, decide func(tx *ledger.Tx, now time.Time) (ledger.Decision, error),
) (ledger.Decision, error) {
	var decision ledger.Decision
	var news bool
	err := d.ledger.Update(ctx, func(tx *ledger.Tx) error {
		now := time.Now()
		news = false
		err := tx.EndOverdue(ctx, now)
		if err != nil {
			return err
		}
		if decision, err = decide(tx, now); err != nil {
			return err
		}
		if decision.Reason == ledger.AlreadyRequested {
			return nil // the ledger already says so
		}
		news, err = tx.Record(ctx, now, origin, policy, decision)
		return err
	})
	if err != nil {
		return ledger.Decision{}, err
	}
	if decision.Reason == ledger.Opened {
		d.announce(ctx, decision.Request)
	}
	if news {
		event := log.Info()
		if decision.Reason == ledger.InvalidOrder {
			event = log.Error()
		}
		event.Str("reason", string(decision.Reason)).Str("request", decision.Request).Str("detail", decision.Detail).Msg("retraining decision")
	}
	return decision, nil
}

func (d *Desk) decide(ctx context.Context, tx *ledger.Tx, inc alerts.Incident, clock, now time.Time) (ledger.Decision, error) {
	id, state, err := tx.OfOrigin(ctx, inc.ID)
	if err != nil {
		return ledger.Decision{}, err
	}
	if id != "" {
		return revisit(ctx, tx, inc, id, state, now)
	}
	c, reason := judge(d.cfg.Triggers, inc)
	if reason != ledger.Opened {
		return ledger.Decision{Reason: reason}, nil
	}
	if held, err := lasted(ctx, tx, inc, c.trigger, clock, now); err != nil || held.Reason != "" {
		return held, err
	}
	policy := ledger.Plain(inc.Group.Policy)
	if held, err := d.hold(ctx, tx, policy, c.trigger, now); err != nil || held.Reason != "" {
		return held, err
	}
	return d.place(ctx, tx, requestSpec{
		origin: inc.ID, kind: ledger.OriginIncident, policy: policy, trigger: c.trigger.key(), recipe: c.trigger.Recipe, target: c.trigger.Target,
		approval: c.trigger.Approval, incident: &inc, alarms: c.alarms,
	}, now)
}

// lasted returns NotLasted if an incident has not been open for as long as a trigger requires. If its telemetry has no
// clock, the time counts from the first such decision.
func lasted(ctx context.Context, tx *ledger.Tx, inc alerts.Incident, t Trigger, clock, now time.Time) (ledger.Decision, error) {
	if t.Lasting == 0 {
		return ledger.Decision{}, nil
	}
	opened := time.Unix(0, inc.Opened.TS)
	if inc.Opened.TS == 0 {
		first, err := tx.FirstDecided(ctx, inc.ID, ledger.NotLasted)
		if err != nil {
			return ledger.Decision{}, err
		}
		if first.IsZero() {
			first = now
		}
		opened, clock = first, now
	}
	again := opened.Add(time.Duration(t.Lasting))
	if clock.Before(again) {
		return ledger.Decision{Reason: ledger.NotLasted, Detail: "until " + finding.Stamp(again), Again: again}, nil
	}
	return ledger.Decision{}, nil
}

// revisit reconsiders an incident that has a request. It withdraws an undelivered request if the cause turns out to
// need a person, or if a person has accepted the drift. A request that waits for approval follows the drifted data.
func revisit(ctx context.Context, tx *ledger.Tx, inc alerts.Incident, id string, state ledger.State, now time.Time) (ledger.Decision, error) {
	d, accepted := inc.Ended()
	switch {
	case state == ledger.StateAwaitingApproval && !accepted && !inc.Cause.NeedsPerson():
		return ledger.Decision{Reason: ledger.AlreadyRequested, Request: id}, tx.Recut(ctx, id, inc, now)
	case state != ledger.StateOpen && state != ledger.StateAwaitingApproval || !accepted && !inc.Cause.NeedsPerson():
		return ledger.Decision{Reason: ledger.AlreadyRequested, Request: id}, nil
	case accepted:
		return withdraw(ctx, tx, id, ledger.IncidentAccepted, "its incident was "+d.String(), now)
	}
	return withdraw(ctx, tx, id, ledger.CauseNeedsPerson, "its cause is now "+string(inc.Cause), now)
}

func withdraw(ctx context.Context, tx *ledger.Tx, id string, reason ledger.Reason, why string, now time.Time) (ledger.Decision, error) {
	err := tx.Withdraw(ctx, id, why, now)
	return ledger.Decision{Reason: reason, Request: id, Detail: "the request was withdrawn"}, err
}

// hold returns why the ledger forbids a request now, with reason "" if it does not.
func (d *Desk) hold(ctx context.Context, tx *ledger.Tx, policy string, t Trigger, now time.Time) (ledger.Decision, error) {
	target, _ := d.cfg.target(t.Target)
	disabled, err := tx.IsDisabled(ctx, target)
	if err != nil || disabled {
		return ledger.Decision{Reason: ledger.TargetDisabled, Detail: t.Target}, err
	}
	unfinished, err := tx.Unfinished(ctx, policy)
	if err != nil || unfinished != "" {
		return ledger.Decision{Reason: ledger.OpenRequest, Detail: unfinished}, err
	}
	last, err := tx.LastOpened(ctx, policy, t.key())
	if err != nil {
		return ledger.Decision{}, err
	}
	if until := cooldownEnd(t, last); now.Before(until) {
		return ledger.Decision{Reason: ledger.Cooldown, Detail: "until " + finding.Stamp(until)}, nil
	}
	return d.cfg.Breaker.decide(ctx, tx, policy, now)
}

// cooldownEnd returns when a trigger may open a request again after its last one. A schedule has no cooldown.
func cooldownEnd(t Trigger, last time.Time) time.Time {
	if t.On == OnSchedule {
		return last
	}
	return last.Add(time.Duration(t.Cooldown))
}

// insert opens a request and schedules its delivery, unless it waits for a person.
func (d *Desk) insert(ctx context.Context, tx *ledger.Tx, e ledger.Entry) error {
	if err := tx.Insert(ctx, e); err != nil || e.State != ledger.StateOpen {
		return err
	}
	return d.dispatcher.queue.Add(ctx, tx, e.Id, e.Target)
}

// requestSpec is a request to open.
type requestSpec struct {
	origin                 string
	kind                   ledger.OriginKind
	policy, recipe, target string
	trigger                string // key of the trigger, "" if a person asks
	approval               bool
	by, why                string           // of a person
	incident               *alerts.Incident // nil if no incident is the reason
	alarms                 []alerts.Alarm   // of the incident, at least one
}

// place opens the request of a spec. The reason InvalidOrder means that the order from the recipe violates its
// schema.
func (d *Desk) place(ctx context.Context, tx *ledger.Tx, w requestSpec, now time.Time) (ledger.Decision, error) {
	e, err := d.order(w, now)
	if err != nil {
		return ledger.Decision{Reason: ledger.InvalidOrder, Detail: ledger.Plain(err.Error())}, nil
	}
	return ledger.Decision{Reason: ledger.Opened, Request: e.Id, Detail: w.reason()}, d.insert(ctx, tx, e)
}

// reason returns which person asks and why, or "" if no person does.
func (w requestSpec) reason() string {
	if w.by == "" {
		return ""
	}
	return "requested by " + w.by + ": " + w.why
}

// Delta returns the differences of a request's contract and config from the current parent of its recipe, and the
// parent's name. Without a parent, the name is "" and everything differs.
func (d *Desk) Delta(q ledger.Request) (parent string, differences []recipe.Difference, err error) {
	return d.recipes.Delta(q.Recipe, q.Order)
}

// ResolveBy sets the source of baseline levels. It must be called before the first request.
func (d *Desk) ResolveBy(levels recipe.Levels) { d.levels = levels }

// LearnsBy sets the function that reports whether a policy learns all the time. It must be called before the first
// request.
func (d *Desk) LearnsBy(learns func(policy string) bool) { d.learns = learns }

// levelOf returns a lookup of the baseline for a spec.
func (d *Desk) levelOf(w requestSpec) func(signal string) (finding.Distribution, error) {
	return func(signal string) (finding.Distribution, error) {
		if d.levels == nil {
			return finding.Distribution{}, errors.New("no baseline exists yet")
		}
		if w.incident == nil {
			return d.levels(w.policy, nil, signal)
		}
		return d.levels(w.incident.Group.Policy, &w.incident.Group, signal)
	}
}

// order builds the request.
func (d *Desk) order(w requestSpec, now time.Time) (ledger.Entry, error) {
	how := d.recipes[w.recipe]
	if how == nil {
		return ledger.Entry{}, fmt.Errorf("unknown recipe %q", w.recipe)
	}
	if how.Kind != recipe.Retrain && (d.learns == nil || !d.learns(w.policy)) {
		return ledger.Entry{}, fmt.Errorf("recipe %q requests %s, which requires a policy with learning: continuous", w.recipe, how.Kind)
	}
	id := recipe.RequestID(w.origin, w.trigger)
	body, err := how.Order(recipe.Occasion{ID: id, Policy: w.policy, Incident: w.incident, Alarms: w.alarms, Level: d.levelOf(w), At: now})
	if err != nil {
		return ledger.Entry{}, err
	}
	state := ledger.StateOpen
	if w.approval {
		state = ledger.StateAwaitingApproval
	}
	return ledger.Entry{
		Id: id, State: state, Origin: w.origin, Kind: ledger.Kind(how.Kind), OriginKind: w.kind, Policy: w.policy, TriggerKey: w.trigger, Recipe: how.Name,
		Target: w.target, By: w.by, Why: w.why, Body: body, Opened: now, Due: now.Add(requestLifetime),
	}, d.schema.Check(body)
}
