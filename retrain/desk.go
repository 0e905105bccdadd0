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
)

// overdueEvery is how often the desk looks for requests whose time is over. Who looks into the ledger to change something
// ends them first anyway.
const overdueEvery = 15 * time.Second

// Desk turns incidents into retrain requests and sees to their delivery.
type Desk struct {
	cfg     Config
	recipes Recipes
	schema  schema
	ledger  *ledger
	courier *courier
	metrics *metrics
	log     zerolog.Logger

	externalURL string // under which people reach the service, "" where that is not known
}

// Open opens the ledger and reads every target's secret once, so that an unreadable one is an error now and not when
// the first order is due. The configuration must have passed Check, also that of the recipes. The caller closes the desk. ctx is that of the
// service: when it ends, what waits for a ledger that cannot be reached gives up, also after Open has returned.
func Open(ctx context.Context, cfg Config, recipes Recipes, log zerolog.Logger, reg prometheus.Registerer) (*Desk, error) {
	return open(ctx, cfg, recipes, log, reg, newTransport())
}

func open(
	ctx context.Context, cfg Config, recipes Recipes, log zerolog.Logger, reg prometheus.Registerer, transport http.RoundTripper,
) (*Desk, error) {
	published, err := newSchema()
	if err != nil {
		return nil, err
	}
	for _, t := range cfg.Targets {
		if _, err := readKeys(t.SecretFile); err != nil {
			return nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
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
	if err := m.register(reg, newLedgerCollector(cfg, l)); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return &Desk{
		cfg: cfg, recipes: recipes, schema: published, ledger: l, metrics: m, log: log,
		courier: newCourier(l, sender{transport: transport, schema: published}, cfg.Targets, m, log),
	}, nil
}

// Run delivers requests until the context ends, and then finishes the attempts in flight. It gives nil on a clean
// stop, and an error where the ledger failed.
func (d *Desk) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	var overdue error
	watching.Go(func() {
		defer cancel()
		overdue = d.watchOverdue(ctx)
	})
	err := d.courier.run(ctx)
	cancel()
	watching.Wait()
	return errors.Join(err, overdue)
}

// watchOverdue ends the states whose time is over, until ctx ends or the ledger fails.
func (d *Desk) watchOverdue(ctx context.Context) error {
	every := time.NewTicker(overdueEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
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
// when it returns. It may be called any number of times for an incident, whenever that changed: an incident has at
// most one request. It is safe for concurrent use.
func (d *Desk) Consider(ctx context.Context, inc alerts.Incident) (Decision, error) {
	var decision Decision
	var target string
	var news bool
	err := d.ledger.update(ctx, func(tx *sql.Tx) error {
		now := time.Now()
		news = false
		var err error
		if decision, target, err = d.decide(ctx, tx, inc, now); err != nil {
			return err
		}
		if decision.Reason == AlreadyRequested {
			return nil // repeats what the ledger says already
		}
		news, err = record(ctx, tx, now, inc.ID, plain(inc.Group.Policy), decision)
		return err
	})
	if err != nil {
		return Decision{}, fmt.Errorf("consider incident %s: %w", inc.ID, err)
	}
	if decision.Reason == Opened {
		d.courier.notify(target)
		d.announce(ctx, decision.Request)
	}
	if news {
		event := d.log.Info()
		if decision.Reason == InvalidOrder {
			event = d.log.Error()
		}
		event.Str("incident", inc.ID).Stringer("group", inc.Group).Str("reason", string(decision.Reason)).
			Str("request", decision.Request).Str("detail", decision.Detail).Msg("considered retraining")
	}
	return decision, nil
}

// decide gives the decision, and the target of the request where it opened one.
func (d *Desk) decide(ctx context.Context, tx *sql.Tx, inc alerts.Incident, now time.Time) (Decision, string, error) {
	if err := endOverdue(ctx, tx, now); err != nil {
		return Decision{}, "", err
	}
	id, state, err := ofIncident(ctx, tx, inc.ID)
	if err != nil {
		return Decision{}, "", err
	}
	if id != "" {
		decision, err := revisit(ctx, tx, inc, id, state, now)
		return decision, "", err
	}
	c, reason := judge(d.cfg.Triggers, inc)
	if reason != Opened {
		return Decision{Reason: reason}, "", nil
	}
	if held, err := d.hold(ctx, tx, plain(inc.Group.Policy), c.trigger, now); err != nil || held.Reason != "" {
		return held, "", err
	}
	e, err := d.order(inc, c, now)
	if err != nil {
		return Decision{Reason: InvalidOrder, Detail: plain(err.Error())}, "", nil
	}
	return Decision{Reason: Opened, Request: e.id}, c.trigger.Target, insert(ctx, tx, e)
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
	return Decision{}, nil
}

// cooldownEnd says when a trigger may open a request again after it last did.
func cooldownEnd(t Trigger, last time.Time) time.Time {
	return last.Add(time.Duration(t.Cooldown))
}

// order writes the request. It fails where what came of incident and recipe is not what receivers were promised.
func (d *Desk) order(inc alerts.Incident, c candidate, now time.Time) (entry, error) {
	recipe := d.recipes[c.trigger.Recipe]
	if recipe == nil {
		return entry{}, fmt.Errorf("no recipe is named %q", c.trigger.Recipe)
	}
	key := c.trigger.key()
	o := newOrder(requestID(inc.ID, key), inc, c.alarms)
	if err := o.instruct(recipe, onsetOf(c.alarms[0])); err != nil {
		return entry{}, err
	}
	body, err := newBody(o, now)
	if err != nil {
		return entry{}, err
	}
	return entry{
		id: o.ID, origin: inc.ID, kind: KindRetrain, originKind: OriginIncident, policy: plain(inc.Group.Policy), triggerKey: key, recipe: recipe.Name, target: c.trigger.Target,
		body: body, opened: now, due: now.Add(requestLifetime),
	}, d.schema.check(body)
}
