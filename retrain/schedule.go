package retrain

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for CRON_TZ where the machine has no time zones

	"github.com/robfig/cron/v3"
)

// slotLifetime is how late a slot of a schedule may be ordered: one that came while nothing ran, and is older, is left out.
const slotLifetime = time.Hour

// slotsEvery is how often the clock is looked at for slots, in case it was set.
const slotsEvery = 15 * time.Second

// parseSchedule reads the five fields of a schedule. Without a time zone it is in UTC, for instances to agree on its slots.
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
		return nil, fmt.Errorf(`must be written as in "0 3 * * 1", which is Mondays at 3:00: %w`, err)
	}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("%q never comes", text)
	}
	return s, nil
}

// appointment is a policy that a schedule has retrained.
type appointment struct {
	trigger Trigger
	times   cron.Schedule
	policy  string
	decided time.Time // the newest slot that this instance knows to be decided
}

// latest gives the newest slot that is not too old, the zero time where there is none.
func (a *appointment) latest(now time.Time) time.Time {
	var slot time.Time
	for next := a.times.Next(now.Add(-slotLifetime)); !next.IsZero() && !next.After(now); next = a.times.Next(next) {
		slot = next
	}
	return slot
}

func (a *appointment) origin(slot time.Time) string {
	return "schedule/" + a.trigger.key() + "/" + plain(a.policy) + "/" + slot.UTC().Format(time.RFC3339)
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

// watchSchedules decides each slot as it comes, until ctx ends or the ledger fails.
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
				if err := d.keep(ctx, a, slot); err != nil {
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

// keep decides a slot of a schedule, once over all instances and restarts: what speaks against it then, such as a request of the policy that
// is not finished, is not asked again before the next slot.
func (d *Desk) keep(ctx context.Context, a *appointment, slot time.Time) error {
	policy, origin := plain(a.policy), a.origin(slot)
	log := d.log.With().Str("policy", policy).Time("slot", slot).Logger()
	_, err := d.settleOn(ctx, origin, policy, log, func(tx *sql.Tx, now time.Time) (Decision, error) {
		decided, err := isDecided(ctx, tx, origin)
		if err != nil || decided {
			return Decision{Reason: AlreadyRequested}, err
		}
		if held, err := d.hold(ctx, tx, policy, a.trigger, now); err != nil || held.Reason != "" {
			return held, err
		}
		return d.place(ctx, tx, wish{
			origin: origin, kind: OriginSchedule, policy: policy, trigger: a.trigger.key(), recipe: a.trigger.Recipe, target: a.trigger.Target,
			approval: a.trigger.Approval,
		}, now)
	})
	if err != nil {
		return fmt.Errorf("consider %s: %w", origin, err)
	}
	return nil
}

// isDecided reports whether anything was decided of what asks for a request.
func isDecided(ctx context.Context, q queryer, origin string) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM decisions WHERE incident = $1`, origin).Scan(&n)
	return n > 0, err
}
