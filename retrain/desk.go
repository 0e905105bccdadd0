package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// overdueEvery is how often the desk looks for requests whose time is over. Who looks into the ledger to change something
// ends them first anyway.
const overdueEvery = time.Minute

// Desk turns incidents into retrain requests and sees to their delivery.
type Desk struct {
	cfg     Config
	recipes Recipes
	schema  schema
	ledger  *ledger
	courier *courier
	runs    *command.Runner // nil where no target is a command
	metrics *metrics
	log     zerolog.Logger
	awaited awaited

	externalURL string // under which people reach the service, "" where that is not known
}

// Open opens the ledger and reads every target's secret once, so that an unreadable one is an error now and not when
// the first order is due. The configuration must have passed Check, also that of the recipes. The caller closes the desk. ctx is that of the
// service: when it ends, what waits for a ledger that cannot be reached gives up, also after Open has returned.
func Open(ctx context.Context, cfg Config, recipes Recipes, log zerolog.Logger, reg prometheus.Registerer) (*Desk, error) {
	return open(ctx, cfg, recipes, log, reg, newTransport)
}

func open(
	ctx context.Context, cfg Config, recipes Recipes, log zerolog.Logger, reg prometheus.Registerer, transport func(Target) http.RoundTripper,
) (*Desk, error) {
	published, err := newSchema()
	if err != nil {
		return nil, err
	}
	runs, err := cfg.openRuns(log)
	if err != nil {
		return nil, err
	}
	adapters, err := newAdapters(cfg.Targets, means{schema: published, transport: transport, runs: runs})
	if err != nil {
		return nil, err
	}
	m := newMetrics(cfg)
	l, err := openLedger(ctx, cfg.Ledger, func(err error, wait time.Duration) {
		m.retries.Inc()
		log.Warn().Err(err).Dur("wait", wait).Msg("the ledger cannot be reached; trying again")
	})
	if err != nil {
		return nil, err
	}
	if err := l.resume(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("resume deliveries: %w", err), l.close())
	}
	courier, err := newCourier(l, cfg.Targets, adapters, m, log)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := courier.enqueueAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("resume deliveries: %w", err), l.close())
	}
	if err := m.register(reg, newLedgerCollector(cfg, l)); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return &Desk{
		cfg: cfg, recipes: recipes, schema: published, ledger: l, metrics: m, log: log,
		courier: courier, runs: runs,
	}, nil
}

// Run delivers requests until the context ends, and then finishes the attempts in flight. It gives nil on a clean
// stop, and an error where the ledger failed.
func (d *Desk) Run(ctx context.Context) error { return d.runWith(ctx, d.courier.run) }

// runWith watches what else there is to watch while deliver runs.
func (d *Desk) runWith(ctx context.Context, deliver func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	var overdue, scheduled, runs error
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
	err := deliver(ctx)
	cancel()
	watching.Wait()
	return errors.Join(err, overdue, scheduled, runs)
}

// watchOverdue ends the states whose time is over, and releases what is queued, until ctx ends or the ledger fails.
func (d *Desk) watchOverdue(ctx context.Context) error {
	every := time.NewTicker(overdueEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if err := d.release(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("release queued rollbacks: %w", err)
		}
		if found, err := anyOverdue(ctx, d.ledger.db, time.Now()); err == nil && !found {
			continue // a ledger that cannot be reached is waited for below
		}
		err := d.ledger.update(ctx, func(tx *sql.Tx) error { return endOverdue(ctx, tx, time.Now()) })
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("end overdue requests: %w", err)
		}
	}
}

// Close closes the ledger. It must be called after Run has returned.
func (d *Desk) Close() error {
	d.metrics.unregister()
	return d.ledger.close()
}

// Consider decides whether an incident orders a retraining, and opens its request if so. What it decided is durable
// when it returns. It may be called any number of times for an incident, whenever that or its clock changed: an incident has at
// most one request. clock is the time of the newest unit of the incident's group, zero where its telemetry has no clock. It is safe for
// concurrent use.
func (d *Desk) Consider(ctx context.Context, inc alerts.Incident, clock time.Time) (Decision, error) {
	policy := plain(inc.Group.Policy)
	log := d.log.With().Str("incident", inc.ID).Stringer("group", inc.Group).Logger()
	decision, err := d.settleOn(ctx, inc.ID, policy, log, func(tx *sql.Tx, now time.Time) (Decision, error) {
		return d.decide(ctx, tx, inc, clock, now)
	})
	if err != nil {
		return Decision{}, fmt.Errorf("consider incident %s: %w", inc.ID, err)
	}
	return decision, nil
}

// settleOn makes a decision of what asks for a retraining, and keeps and logs it where it is news.
func (d *Desk) settleOn(
	ctx context.Context, origin, policy string, log zerolog.Logger, decide func(tx *sql.Tx, now time.Time) (Decision, error),
) (Decision, error) {
	var decision Decision
	var news bool
	err := d.ledger.update(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		news = false
		err := endOverdue(ctx, tx, now)
		if err != nil {
			return err
		}
		if decision, err = decide(tx, now); err != nil {
			return err
		}
		if decision.Reason == AlreadyRequested {
			return nil // repeats what the ledger says already
		}
		news, err = record(ctx, tx, now, origin, policy, decision)
		return err
	})
	if err != nil {
		return Decision{}, err
	}
	if decision.Reason == Opened {
		d.announce(ctx, decision.Request)
	}
	if news {
		event := log.Info()
		if decision.Reason == InvalidOrder {
			event = log.Error()
		}
		event.Str("reason", string(decision.Reason)).Str("request", decision.Request).Str("detail", decision.Detail).Msg("considered retraining")
	}
	return decision, nil
}

func (d *Desk) decide(ctx context.Context, tx *sql.Tx, inc alerts.Incident, clock, now time.Time) (Decision, error) {
	id, state, err := ofOrigin(ctx, tx, inc.ID)
	if err != nil {
		return Decision{}, err
	}
	if id != "" {
		return revisit(ctx, tx, inc, id, state, now)
	}
	c, reason := judge(d.cfg.Triggers, inc)
	if reason != Opened {
		return Decision{Reason: reason}, nil
	}
	if held, err := lasted(ctx, tx, inc, c.trigger, clock, now); err != nil || held.Reason != "" {
		return held, err
	}
	policy := plain(inc.Group.Policy)
	if held, err := d.hold(ctx, tx, policy, c.trigger, now); err != nil || held.Reason != "" {
		return held, err
	}
	return d.place(ctx, tx, wish{
		origin: inc.ID, kind: OriginIncident, policy: policy, trigger: c.trigger.key(), recipe: c.trigger.Recipe, target: c.trigger.Target,
		approval: c.trigger.Approval, incident: &inc, alarms: c.alarms,
	}, now)
}

// lasted gives NotLasted where an incident has not been open for as long as a trigger wants. Where its telemetry has no clock it counts from
// the first time that this was decided.
func lasted(ctx context.Context, tx *sql.Tx, inc alerts.Incident, t Trigger, clock, now time.Time) (Decision, error) {
	if t.Lasting == 0 {
		return Decision{}, nil
	}
	opened := time.Unix(0, inc.Opened.TS)
	if inc.Opened.TS == 0 {
		first, err := firstDecided(ctx, tx, inc.ID, NotLasted)
		if err != nil {
			return Decision{}, err
		}
		if first.IsZero() {
			first = now
		}
		opened, clock = first, now
	}
	again := opened.Add(time.Duration(t.Lasting))
	if clock.Before(again) {
		return Decision{Reason: NotLasted, Detail: "until " + again.UTC().Format(time.RFC3339), Again: again}, nil
	}
	return Decision{}, nil
}

// revisit looks again at an incident that has its request. One that is not delivered yet is withdrawn when the cause
// turns out to need a person, or when a person has accepted the drift.
func revisit(ctx context.Context, tx *sql.Tx, inc alerts.Incident, id string, state State, now time.Time) (Decision, error) {
	d, accepted := inc.Ended()
	switch {
	case state != StateOpen && state != StateAwaitingApproval || !accepted && !needsPerson(inc.Cause):
		return Decision{Reason: AlreadyRequested, Request: id}, nil
	case accepted:
		return withdraw(ctx, tx, id, IncidentAccepted, "its incident was "+d.String(), now)
	}
	return withdraw(ctx, tx, id, CauseNeedsPerson, "its cause is now "+string(inc.Cause), now)
}

func withdraw(ctx context.Context, tx *sql.Tx, id string, reason Reason, why string, now time.Time) (Decision, error) {
	err := settle(ctx, tx, now, StateWithdrawn, plain(why), `id = $4 AND state IN ('awaiting_approval', 'open')`, id)
	return Decision{Reason: reason, Request: id, Detail: "the request is withdrawn"}, err
}

// hold says what in the ledger speaks against a request now. Its reason is "" where nothing does.
func (d *Desk) hold(ctx context.Context, tx *sql.Tx, policy string, t Trigger, now time.Time) (Decision, error) {
	target, _ := d.cfg.target(t.Target)
	disabled, err := isDisabled(ctx, tx, target)
	if err != nil || disabled {
		return Decision{Reason: TargetDisabled, Detail: t.Target}, err
	}
	unfinished, err := unfinishedOf(ctx, tx, policy)
	if err != nil || unfinished != "" {
		return Decision{Reason: OpenRequest, Detail: unfinished}, err
	}
	last, err := lastOpened(ctx, tx, policy, t.key())
	if err != nil {
		return Decision{}, err
	}
	if until := cooldownEnd(t, last); now.Before(until) {
		return Decision{Reason: Cooldown, Detail: "until " + until.UTC().Format(time.RFC3339)}, nil
	}
	return d.cfg.Breaker.decide(ctx, tx, policy, now)
}

// cooldownEnd says when a trigger may open a request again after it last did. A schedule says itself how often it does.
func cooldownEnd(t Trigger, last time.Time) time.Time {
	if t.On == OnSchedule {
		return last
	}
	return last.Add(time.Duration(t.Cooldown))
}

// insert opens a request and sees to its delivery, unless it waits for a person.
func (d *Desk) insert(ctx context.Context, tx *sql.Tx, e entry) error {
	if err := insert(ctx, tx, e); err != nil || e.state != StateOpen {
		return err
	}
	return d.courier.enqueue(ctx, tx, e.id, e.target)
}

// wish is a request that somebody or something asks for.
type wish struct {
	origin                 string
	kind                   OriginKind
	policy, recipe, target string
	trigger                string // its key, "" where a person asks
	approval               bool
	by, why                string           // of a person
	incident               *alerts.Incident // nil where none asks for it
	alarms                 []alerts.Alarm   // of the incident, at least one
}

// place opens the request of a wish. InvalidOrder says that what the recipe makes of it is not what receivers were promised.
func (d *Desk) place(ctx context.Context, tx *sql.Tx, w wish, now time.Time) (Decision, error) {
	e, err := d.order(w, now)
	if err != nil {
		return Decision{Reason: InvalidOrder, Detail: plain(err.Error())}, nil
	}
	return Decision{Reason: Opened, Request: e.id, Detail: w.reason()}, d.insert(ctx, tx, e)
}

// reason says who asks, "" where no person does.
func (w wish) reason() string {
	if w.by == "" {
		return ""
	}
	return "asked for by " + w.by + ": " + w.why
}

// order writes the request.
func (d *Desk) order(w wish, now time.Time) (entry, error) {
	recipe := d.recipes[w.recipe]
	if recipe == nil {
		return entry{}, fmt.Errorf("no recipe is named %q", w.recipe)
	}
	id := requestID(w.origin, w.trigger)
	o, onset := bareOrder(id, w.policy), moment{}
	if w.incident != nil {
		o, onset = newOrder(id, *w.incident, w.alarms), onsetOf(w.alarms[0])
	}
	if err := o.instruct(recipe, onset); err != nil {
		return entry{}, err
	}
	body, err := newBody(o, now)
	if err != nil {
		return entry{}, err
	}
	state := StateOpen
	if w.approval {
		state = StateAwaitingApproval
	}
	return entry{
		id: id, state: state, origin: w.origin, kind: KindRetrain, originKind: w.kind, policy: w.policy, triggerKey: w.trigger, recipe: recipe.Name,
		target: w.target, by: w.by, why: w.why, body: body, opened: now, due: now.Add(requestLifetime),
	}, d.schema.check(body)
}
