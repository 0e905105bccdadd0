package retrain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for CRON_TZ on machines without time zones

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/robfig/cron/v3"
)

// slotLifetime is how late a slot of a schedule may be ordered. Older slots, from a time when no instance ran, are
// skipped.
const slotLifetime = time.Hour

// slotsEvery is how often the clock is checked for slots, in case it was set.
const slotsEvery = 15 * time.Second

// parseSchedule parses the five fields of a schedule. The default time zone is UTC, so that instances agree on the
// slots.
func parseSchedule(text string) (cron.Schedule, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		if !strings.Contains(text, " ") {
			return nil, errors.New("must have five fields after its time zone and a space")
		}
	} else if text != "" {
		text = "CRON_TZ=UTC " + text
	}
	s, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		return nil, fmt.Errorf(`must be a cron expression such as "0 3 * * 1" (Mondays at 3:00): %w`, err)
	}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("%q never occurs", text)
	}
	return s, nil
}

// appointment is a policy that a schedule retrains.
type appointment struct {
	trigger Trigger
	times   cron.Schedule
	policy  string
	decided time.Time // the newest slot that this instance knows to be decided
}

// latest returns the newest slot that is not too old, or the zero time if there is none.
func (a *appointment) latest(now time.Time) time.Time {
	var slot time.Time
	for next := a.times.Next(now.Add(-slotLifetime)); !next.IsZero() && !next.After(now); next = a.times.Next(next) {
		slot = next
	}
	return slot
}

func (a *appointment) origin(slot time.Time) string {
	return "schedule/" + a.trigger.key() + "/" + ledger.Plain(a.policy) + "/" + slot.UTC().Format(time.RFC3339)
}

func (c Config) appointments() ([]appointment, error) {
	var out []appointment
	for _, t := range c.Triggers {
		if t.On != OnSchedule {
			continue
		}
		times, err := parseSchedule(t.Cron)
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %w", t.Cron, err)
		}
		for _, policy := range t.Policies {
			out = append(out, appointment{trigger: t, times: times, policy: policy})
		}
	}
	return out, nil
}

// watchSchedules decides on each slot at its time, until ctx ends or the ledger fails.
func (d *Desk) watchSchedules(ctx context.Context) error {
	appointments, err := d.cfg.appointments()
	if err != nil {
		return err
	}
	if len(appointments) == 0 {
		<-ctx.Done()
		return nil
	}
	for {
		now := time.Now()
		wake := now.Add(slotsEvery)
		for i := range appointments {
			a := &appointments[i]
			if slot := a.latest(now); slot.After(a.decided) {
				err := d.keep(ctx, a, slot)
				if errors.Is(err, ledger.ErrSuspended) {
					continue // the slot is decided once the ledger is back
				}
				if err != nil {
					if ctx.Err() != nil {
						return nil
					}
					return err
				}
				a.decided = slot
			}
			if next := a.times.Next(now); next.Before(wake) {
				wake = next
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wake.Sub(now)):
		}
	}
}

// keep decides on a slot of a schedule, once across all instances and restarts. If the ledger forbids a request at
// that time, for example because of an unfinished request of the policy, it is not reconsidered before the next
// slot.
func (d *Desk) keep(ctx context.Context, a *appointment, slot time.Time) error {
	policy, origin := ledger.Plain(a.policy), a.origin(slot)
	log := d.log.With().Str("policy", policy).Time("slot", slot).Logger()
	_, err := d.settleOn(ctx, origin, policy, log, func(tx *ledger.Tx, now time.Time) (ledger.Decision, error) {
		decided, err := tx.IsDecided(ctx, origin)
		if err != nil || decided {
			return ledger.Decision{Reason: ledger.AlreadyRequested}, err
		}
		if held, err := d.hold(ctx, tx, policy, a.trigger, now); err != nil || held.Reason != "" {
			return held, err
		}
		return d.place(ctx, tx, requestSpec{
			origin: origin, kind: ledger.OriginSchedule, policy: policy, trigger: a.trigger.key(), recipe: a.trigger.Recipe, target: a.trigger.Target,
			approval: a.trigger.Approval,
		}, now)
	})
	if err != nil {
		return fmt.Errorf("decide whether %s triggers a retraining: %w", origin, err)
	}
	return nil
}
