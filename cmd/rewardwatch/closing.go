package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/expectation"
)

// outcomes are where a desk learns whose outcome is awaited and where it tells of it. Both may be told again after a crash.
type outcomes interface {
	// awaited gives the retraining of a policy whose outcome is awaited; false where none is.
	awaited(ctx context.Context, policy string) (retrain.Verification, bool)
	// appeared says which version the telemetry shows to be the new one. It gives false where nobody waits for it any more.
	appeared(ctx context.Context, request, version string) (bool, error)
	// concluded closes a request, and says what follows.
	concluded(ctx context.Context, request string, v retrain.Verdict) (consequence, error)
	// worsened says that the new version of a request that was missed is worse than the one before, which may be unknown.
	worsened(ctx context.Context, s retrain.Setback) error
}

// consequence is what follows from an outcome.
type consequence uint8

const (
	nothingFollows consequence = iota
	promotes                   // the units of the new version become the baseline
	compares                   // it is to be known whether the new version is worse than the one before
)

// closing is what a desk knows of the retraining of its policy. It is a part of the desk's checkpoint, so that it has seen
// exactly the units that the bank has applied. Exported fields are its state.
type closing struct {
	Seen   []seenVersion // the newest keptVersions of them, by their first unit
	Open   *awaitedOutcome
	Missed *awaitedOutcome // one that was missed, of which is left to know whether Version is worse than Previous; the next one may have begun

	changed bool      // since it was saved
	now     time.Time // of the unit at hand
}

// seenVersion is a policy_version and when its first unit ended, or was judged where that was before, or the unit has no clock.
type seenVersion struct {
	Version string
	At      time.Time
}

// keptVersions is how many versions a desk remembers. One that it has forgotten counts as new again.
const keptVersions = 64

// awaitedOutcome is a retraining that was delivered.
type awaitedOutcome struct {
	retrain.Verification
	Check *expectation.Check // of the units of Version; nil while there is none

	Before   *expectation.Check // of the same units against the level of those before; nil where these were too few
	Previous string             // policy_version of the unit before, "" where unknown

	news bool          // that Version was seen is to be told
	kept bool          // a save has Check: a crash after the verdict finds it again, and draws the consequences
	last *ingest.Group // whose units were asked for last, and whether they count
	mine bool
}

const (
	closingPart    = "closing"
	closingVersion = 1 // of its state
)

// judges says that units of another version are to be held against what the retraining was to show.
func (a *awaitedOutcome) judges(version string, due time.Time) {
	e := a.Expected
	a.Version, a.Due = version, due
	a.Before, a.Previous, a.kept = nil, "", false
	a.Check = expectation.New(expectation.Condition{Statistic: e.Statistic, Comparison: e.Comparison, Value: e.Value, Over: e.Over})
}

// counts reports whether the units of a group decide.
func (a *awaitedOutcome) counts(g ingest.Group) bool {
	if a.last == nil || *a.last != g {
		a.last, a.mine = &g, len(a.Group) == 0 || maps.Equal(g.Map(), a.Group)
	}
	return a.mine
}

// note remembers a version that was seen at a time, and says when its first unit came.
func (c *closing) note(version string, at time.Time) time.Time {
	i := slices.IndexFunc(c.Seen, func(s seenVersion) bool { return s.Version == version })
	if i >= 0 {
		return c.Seen[i].At
	}
	if len(c.Seen) == keptVersions {
		c.Seen = slices.Delete(c.Seen, 0, 1)
	}
	c.Seen, c.changed = append(c.Seen, seenVersion{version, at}), true
	return at
}

// timeOf is when a unit ended. What is judged late, as after an outage, may be from long ago; a clock that is ahead is not believed.
func (c *closing) timeOf(u *ingest.Unit) time.Time {
	if end := time.Unix(0, u.EndTS); u.EndTS != 0 && end.Before(c.now) {
		return end
	}
	return c.now
}

// witness holds a unit that the bank is about to fold in against what a retraining was to show.
func (d *desk) witness(u *ingest.Unit) {
	version, c := u.Versions.Policy, &d.closing
	if version == "" {
		return
	}
	first, open := c.note(version, c.timeOf(u)), c.Open
	if open != nil && open.Version == "" && open.counts(u.Group) && !first.Before(open.Since) && !slices.Contains(open.Ordered, version) {
		// Nobody has told of it, but no other version can be the new one.
		open.judges(version, c.now.Add(time.Duration(open.Expected.Within*float64(time.Second)))) // until the ledger says when
		open.news = true
	}
	d.hold(open, u)
	d.hold(c.Missed, u)
}

// hold holds a unit against what a retraining was to show, where it is of the version that this has made.
func (d *desk) hold(o *awaitedOutcome, u *ingest.Unit) {
	if o == nil || u.Versions.Policy != o.Version || !o.counts(u.Group) {
		return
	}
	x := bank.Value(u, o.Expected.Signal)
	if math.IsNaN(x) {
		return
	}
	if o.Check.Units() == 0 {
		d.refer(o)
	}
	o.Check.Add(x)
	if o.Before != nil {
		o.Before.Add(x)
	}
	d.closing.changed = true
}

// refer has the checks allow for what is known of the units before their first one.
func (d *desk) refer(open *awaitedOutcome) {
	var recent []float64
	for _, g := range d.policy.Summary().Groups {
		if !open.counts(g.Group) {
			continue
		}
		r := d.policy.Reference(g.Group, open.Expected.Signal)
		open.Check.Refer(r.Factor, r.Low, r.High)
		recent = append(recent, r.Recent...)
		if v := g.Versions.Policy; v != open.Version {
			open.Previous = v
		}
	}
	if n := len(open.Ordered); open.Previous == "" && n > 0 && open.Ordered[n-1] != open.Version { // its units came before its job told of it
		open.Previous = open.Ordered[n-1]
	}
	open.Before = open.Check.Before(recent)
}

// follow has the desk tell of the outcomes of retrainings. It is called before the first unit.
func (d *desk) follow(o outcomes) {
	d.outcomes = o
	d.policy.Witness(d.witness)
}

// attend takes over what the ledger says of the retraining of the policy. Where it awaits no outcome any more, what has been
// begun goes on: the desk may stand before the unit that decided, and has yet to draw the consequences.
func (d *desk) attend(ctx context.Context) {
	v, found := d.outcomes.awaited(ctx, d.name)
	c := &d.closing
	switch {
	case !found:
		if c.Open != nil && c.Open.Check == nil {
			c.Open, c.changed = nil, true
		}
		return
	case c.Open == nil || c.Open.Request != v.Request:
		c.Open, c.changed = &awaitedOutcome{Verification: v}, true
		c.Open.Version = ""
	}
	switch o := c.Open; {
	case v.Version != "" && v.Version != o.Version:
		o.judges(v.Version, v.Due)
		c.changed = true
	case v.Version != "" && !v.Due.Equal(o.Due):
		o.Due, c.changed = v.Due, true
	}
}

// conclude tells of what the units have shown by now.
func (d *desk) conclude(ctx context.Context) error {
	if err := d.concludeMissed(ctx); err != nil {
		return err
	}
	o := d.closing.Open
	if o == nil || o.Check == nil {
		return nil
	}
	if o.news {
		o.news = false
		awaited, err := d.outcomes.appeared(ctx, o.Request, o.Version)
		if err != nil {
			return fmt.Errorf("%w: %w", errUntold, err)
		}
		if !awaited {
			d.closing.Open, d.closing.changed = nil, true
			return nil
		}
	}
	switch o.Check.Verdict {
	case expectation.Met:
		return d.end(ctx, retrain.StateMet, "as expected, "+o.evidence())
	case expectation.Missed:
		return d.end(ctx, retrain.StateMissed, "not as expected: "+o.evidence())
	case expectation.Inconclusive:
		return d.end(ctx, retrain.StateInconclusive, "all units have come and do not tell: "+o.evidence())
	}
	return nil
}

// concludeMissed tells once it is known whether a new version that was missed is worse than the one before.
func (d *desk) concludeMissed(ctx context.Context) error {
	o := d.closing.Missed
	if o == nil {
		return nil
	}
	if o.Before == nil || o.Before.Verdict != expectation.Open {
		d.closing.Missed, d.closing.changed = nil, true
	}
	if o.Before == nil || o.Before.Verdict != expectation.Missed {
		return nil
	}
	err := d.outcomes.worsened(ctx, retrain.Setback{
		Request: o.Request, To: o.Previous,
		Evidence: fmt.Sprintf("worse than the %s of %g before: %s", o.Expected.Statistic, o.Before.Condition.Value, o.Before.Evidence(o.Expected.Signal, o.Expected.Unit)),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errUntold, err)
	}
	return nil
}

// evidence is what the units of the new version have shown.
func (a *awaitedOutcome) evidence() string {
	return a.Check.Evidence(a.Expected.Signal, a.Expected.Unit)
}

// concludeOverdue closes a retraining whose time is over, and ends a comparison whose time is.
func (d *desk) concludeOverdue(ctx context.Context, now time.Time) error {
	if o := d.closing.Missed; o != nil && !o.Due.IsZero() && !now.Before(o.Due) {
		d.closing.Missed, d.closing.changed = nil, true
	}
	o := d.closing.Open
	if o == nil || o.Check == nil || o.Due.IsZero() || now.Before(o.Due) {
		return nil
	}
	return d.end(ctx, retrain.StateInconclusive, fmt.Sprintf("its time was over after %d of %d %s: %s",
		o.Check.Units(), o.Expected.Over, o.Expected.Unit, o.evidence()))
}

// end closes the request and draws the consequences. It waits for the first save that has the check: with an older one nothing
// would be left after a crash to draw them from, as nobody waits for a request that is closed.
func (d *desk) end(ctx context.Context, state retrain.State, evidence string) error {
	o := d.closing.Open
	if !o.kept {
		return nil
	}
	d.closing.Open, d.closing.changed = nil, true
	follows, err := d.outcomes.concluded(ctx, o.Request, retrain.Verdict{State: state, Evidence: evidence})
	if err != nil {
		return fmt.Errorf("%w: %w", errUntold, err)
	}
	switch follows {
	case promotes:
		return d.promoteVersion(ctx, o)
	case compares:
		d.closing.Missed = o
		return d.concludeMissed(ctx)
	}
	return nil
}

// promoteVersion has the groups of a retraining that was met warm up a new baseline, unless they have begun to already since
// its version came. Their open incidents end.
func (d *desk) promoteVersion(ctx context.Context, o *awaitedOutcome) error {
	if err := d.apply(ctx, d.policy.Settle()); err != nil {
		return err
	}
	d.policy.Publish()
	for _, g := range d.policy.Summary().Groups {
		if !o.counts(g.Group) || o.hasBaseline(&g) {
			continue
		}
		err := d.restart(ctx, g.Group, alerts.Decision{
			Kind: alerts.Reset, By: byService, Why: fmt.Sprintf("policy_version %s has met what retraining %s was to show", o.Version, o.Request), At: d.closing.now,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// byService is who decides where no person does.
const byService = "rewardwatch"

// hasBaseline reports whether a group's baseline, or the warm-up for it, is of the new version already: it has one of its own,
// or a person has begun it since.
func (a *awaitedOutcome) hasBaseline(g *bank.GroupSummary) bool {
	l := &g.Lineage
	if a.Version == l.Version || a.Version == l.NextVersion {
		return true
	}
	return len(l.Past) > 0 && l.Past[len(l.Past)-1].EndedAt.After(a.Since)
}

// changes adds what has changed to the parts of the desk's checkpoint.
func (c *closing) changes(parts ingest.Parts) (err error) {
	if c.changed {
		parts[closingPart], err = ingest.EncodeState(closingVersion, c)
	}
	return err
}

// saved says that what changes gave last is durable.
func (c *closing) saved() {
	c.changed = false
	if c.Open != nil {
		c.Open.kept = c.Open.Check != nil
	}
}

// resume reads the part of a checkpoint. One of an earlier build does not have it: then the versions that the groups stand at were
// there before, or they would be taken for new.
func (c *closing) resume(parts ingest.Parts, groups []bank.GroupSummary) error {
	if part, has := parts[closingPart]; has {
		if err := ingest.DecodeState(part, closingVersion, c); err != nil {
			return fmt.Errorf("reading the outcome of a retraining: %w", err)
		}
		c.saved()
		return nil
	}
	for i := range groups {
		if version := groups[i].Versions.Policy; version != "" {
			c.note(version, time.Time{})
		}
	}
	return nil
}

// awaited implements outcomes.
func (a *app) awaited(ctx context.Context, policy string) (retrain.Verification, bool) {
	if a.retrain == nil {
		return retrain.Verification{}, false
	}
	return a.retrain.Awaited(ctx, policy)
}

// appeared implements outcomes.
func (a *app) appeared(ctx context.Context, request, version string) (bool, error) {
	if a.retrain == nil {
		return false, nil
	}
	_, err := a.retrain.Report(ctx, request, retrain.Report{State: retrain.JobSucceeded, Version: version, By: retrain.ByTelemetry})
	return stillAwaited(err)
}

// concluded implements outcomes.
func (a *app) concluded(ctx context.Context, request string, v retrain.Verdict) (consequence, error) {
	if a.retrain == nil {
		return nothingFollows, nil
	}
	_, err := a.retrain.Conclude(ctx, request, v)
	awaited, err := stillAwaited(err)
	switch {
	case !awaited:
		return nothingFollows, err
	case v.State == retrain.StateMet && a.cfg.Retrain.OnMet == retrain.OnMetPromote:
		return promotes, nil
	case v.State == retrain.StateMissed && a.cfg.Retrain.Rollback != "":
		return compares, nil
	}
	return nothingFollows, nil
}

// worsened implements outcomes.
func (a *app) worsened(ctx context.Context, s retrain.Setback) error {
	if a.retrain == nil {
		return nil
	}
	if s.To == "" {
		a.log.Warn().Str("request", s.Request).Str("reason", "the version before is unknown").Msg("a retraining made things worse, but nothing is rolled back")
		return nil
	}
	err := a.retrain.RollBack(ctx, s)
	if errors.Is(err, retrain.ErrUnknownRequest) { // of another ledger
		a.log.Warn().Err(err).Msg("a retraining made things worse, but nothing is rolled back")
		return nil
	}
	return err
}

// stillAwaited tells a request that was closed otherwise, or has another version, from one that could not be changed.
func stillAwaited(err error) (bool, error) {
	var closed *retrain.StateError
	if errors.As(err, &closed) || errors.Is(err, retrain.ErrUnknownRequest) || errors.Is(err, retrain.ErrOtherVersion) {
		return false, nil
	}
	return err == nil, err
}
