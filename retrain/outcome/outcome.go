// Package outcome tracks a requested retraining to its outcome: it detects the new version in the telemetry, and
// compares its units with what the contract expects.
package outcome

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/expectation"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Verdict is the outcome of a retraining, judged by the telemetry of the new version.
type Verdict struct {
	State    ledger.State // StateMet, StateMissed or StateInconclusive
	Evidence string
	Observed sql.NullFloat64 // the statistic of the contract over the units of the new version, if the check estimates it
}

// Setback is a retraining that made things worse.
type Setback struct {
	Request  string // id of the missed request
	To       string // policy_version that was live before
	Evidence string // evidence that it made things worse
}

// Audience provides the retraining whose outcome is awaited, and receives outcomes. After a crash, the same calls
// may repeat. Calls that fail with ledger.ErrSuspended are repeated later.
type Audience interface {
	// Awaited returns the retraining of a policy whose outcome is awaited; false if there is none.
	Awaited(ctx context.Context, policy string) (ledger.Verification, bool)
	// Appeared reports the version that the telemetry shows to be new. It returns false if the request no longer waits
	// for it.
	Appeared(ctx context.Context, request, version string) (bool, error)
	// Concluded closes a request, and returns what follows.
	Concluded(ctx context.Context, request string, v Verdict) (Consequence, error)
	// Worsened reports that the new version of a missed request is worse than the one before, which may be unknown.
	Worsened(ctx context.Context, s Setback) error
}

// Consequence is what follows from an outcome.
type Consequence uint8

// The possible consequences.
const (
	NothingFollows Consequence = iota
	Promotes                   // the units of the new version become the baseline
	Compares                   // the new version is to be compared with the one before
)

// Bank is the part of a policy's bank that a follower uses.
type Bank interface {
	Summary() *finding.Summary
	Reference(group ingest.Group, signal string) bank.Reference
}

// Follower follows the retrainings of one policy. It is part of its worker's checkpoint, so that it has seen exactly
// the units that the bank has applied.
type Follower struct {
	Seen   []seenVersion // the newest keptVersions versions, by their first unit
	Open   *Retraining
	Missed *Retraining // a missed retraining that may still turn out to be worse than Previous; the next one may have begun

	policy   string
	bank     Bank
	audience Audience
	changed  bool      // since the last save
	now      time.Time // of the current unit
}

// seenVersion is a policy_version with the time when its first unit ended, or was judged if that was earlier or the
// unit has no clock.
type seenVersion struct {
	Version string
	At      time.Time
}

// keptVersions is how many versions a follower remembers. A forgotten version counts as new again.
const keptVersions = 64

// Retraining is a delivered retraining.
type Retraining struct {
	ledger.Verification
	Check *expectation.Check // of the units of Version; nil while there is none

	Before   *expectation.Check // of the same units against the level of the earlier ones; nil if those were too few
	Previous string             // policy_version of the unit before, "" if unknown

	News bool // whether the appearance of Version has yet to be reported

	kept bool          // whether a save contains Check: after a crash, its verdict is then found again and acted upon
	last *ingest.Group // the last group looked up, and whether its units count
	mine bool
}

// Part is the name of the checkpoint part that holds a follower.
const Part = "closing"

// New returns a follower of the retrainings of a policy, without any.
func New(policy string, b Bank) *Follower { return &Follower{policy: policy, bank: b} }

// Tell sets the audience for outcomes. Call it before the first unit; without an audience, Attend must not be called.
func (f *Follower) Tell(a Audience) { f.audience = a }

// At sets the current time: that of the current unit.
func (f *Follower) At(now time.Time) { f.now = now }

// Now returns the time last set by At.
func (f *Follower) Now() time.Time { return f.now }

// judges starts the check of the units of a version against the expectation.
func (a *Retraining) judges(version string, due time.Time) {
	e := a.Expected
	a.Version, a.Due = version, due
	a.Before, a.Previous, a.kept = nil, "", false
	a.Check = expectation.New(expectation.Condition{Statistic: e.Statistic, Comparison: e.Comparison, Value: e.Value, Over: e.Over})
}

// Counts reports whether the units of a group decide the outcome.
func (a *Retraining) Counts(g ingest.Group) bool {
	if a.last == nil || *a.last != g {
		a.last, a.mine = &g, len(a.Group) == 0 || maps.Equal(g.Map(), a.Group)
	}
	return a.mine
}

// note records a version seen at a time, and returns the time of its first unit.
func (f *Follower) note(version string, at time.Time) time.Time {
	i := slices.IndexFunc(f.Seen, func(s seenVersion) bool { return s.Version == version })
	if i >= 0 {
		return f.Seen[i].At
	}
	if len(f.Seen) == keptVersions {
		f.Seen = slices.Delete(f.Seen, 0, 1)
	}
	f.Seen, f.changed = append(f.Seen, seenVersion{version, at}), true
	return at
}

// timeOf returns when a unit ended. A unit judged late, as after an outage, may have ended long ago; a clock in the
// future is not credible.
func (f *Follower) timeOf(u *ingest.Unit) time.Time {
	if end := time.Unix(0, u.EndTS); u.EndTS != 0 && end.Before(f.now) {
		return end
	}
	return f.now
}

// Witness adds a unit that the bank is about to apply to the checks of the retrainings.
func (f *Follower) Witness(u *ingest.Unit) {
	version := u.Versions.Policy
	if version == "" {
		return
	}
	first, open := f.note(version, f.timeOf(u)), f.Open
	if open != nil && open.Version == "" && !open.Reported && open.Counts(u.Group) && !first.Before(open.Since) && !slices.Contains(open.Ordered, version) {
		// It was not reported, but no other version can be the new one.
		open.judges(version, f.now.Add(time.Duration(open.Expected.Within*float64(time.Second)))) // until the ledger has the time
		open.News = true
	}
	f.hold(open, u)
	f.hold(f.Missed, u)
}

// hold adds a unit to the checks of a retraining, if the unit is of its version.
func (f *Follower) hold(o *Retraining, u *ingest.Unit) {
	if o == nil || u.Versions.Policy != o.Version || !o.Counts(u.Group) {
		return
	}
	x := bank.Value(u, o.Expected.Signal)
	if math.IsNaN(x) {
		return
	}
	if o.Check.Units() == 0 {
		f.refer(o)
	}
	o.Check.Add(x)
	if o.Before != nil {
		o.Before.Add(x)
	}
	f.changed = true
}

// refer makes the checks allow for the known units before their first one.
func (f *Follower) refer(open *Retraining) {
	var recent []float64
	for _, g := range f.bank.Summary().Groups {
		if !open.Counts(g.Group) {
			continue
		}
		r := f.bank.Reference(g.Group, open.Expected.Signal)
		open.Check.Refer(r.Factor, r.Low, r.High)
		recent = append(recent, r.Recent...)
		if v := g.Versions.Policy; v != open.Version {
			open.Previous = v
		}
	}
	if n := len(open.Ordered); open.Previous == "" && n > 0 && open.Ordered[n-1] != open.Version { // its first units came before its job reported it
		open.Previous = open.Ordered[n-1]
	}
	open.Before = open.Check.Before(recent)
}

// Attend applies the ledger's state of the retraining of the policy. If the ledger no longer awaits an outcome, a
// check in progress continues: the follower may not have reached the deciding unit yet, and the consequences are
// still to come.
func (f *Follower) Attend(ctx context.Context) {
	v, found := f.audience.Awaited(ctx, f.policy)
	switch {
	case !found:
		if f.Open != nil && f.Open.Check == nil {
			f.Open, f.changed = nil, true
		}
		return
	case f.Open == nil || f.Open.Request != v.Request:
		f.Open, f.changed = &Retraining{Verification: v}, true
		f.Open.Version = ""
	}
	if v.Version != "" {
		f.Open.News = false // the ledger already has the version
	}
	switch o := f.Open; {
	case v.Version != "" && v.Version != o.Version:
		o.judges(v.Version, v.Due)
		f.changed = true
	case v.Version != "" && !v.Due.Equal(o.Due):
		o.Due, f.changed = v.Due, true
	}
}

// Conclude reports what the units have shown so far. It returns the retraining whose version becomes the baseline,
// or nil if there is none.
func (f *Follower) Conclude(ctx context.Context) (met *Retraining, err error) {
	if err := f.concludeMissed(ctx); err != nil {
		return nil, err
	}
	if awaited, err := f.appear(ctx); !awaited || err != nil {
		return nil, err
	}
	switch o := f.Open; o.Check.Verdict {
	case expectation.Met:
		return f.end(ctx, ledger.StateMet, "as expected: "+o.decided())
	case expectation.Missed:
		return f.end(ctx, ledger.StateMissed, "not as expected: "+o.decided())
	case expectation.Inconclusive:
		return f.end(ctx, ledger.StateInconclusive, fmt.Sprintf("inconclusive after all %d %s: %s", o.Expected.Over, o.Expected.Unit, o.evidence()))
	}
	return nil, nil
}

// appear reports a version that only the telemetry has shown so far. It returns whether a reported version is
// awaited.
func (f *Follower) appear(ctx context.Context) (bool, error) {
	o := f.Open
	if o == nil || o.Check == nil {
		return false, nil
	}
	if !o.News {
		return true, nil
	}
	awaited, err := f.audience.Appeared(ctx, o.Request, o.Version)
	if err != nil {
		return false, unlessSuspended(err)
	}
	o.News, f.changed = false, true
	if !awaited {
		f.Open = nil
	}
	return awaited, nil
}

// unlessSuspended drops ErrSuspended: a later unit or tick reports again.
func unlessSuspended(err error) error {
	if errors.Is(err, ledger.ErrSuspended) {
		return nil
	}
	return err
}

// concludeMissed reports whether the new version of a missed retraining is worse than the one before, once that is
// known.
func (f *Follower) concludeMissed(ctx context.Context) error {
	o := f.Missed
	if o == nil || o.Before != nil && o.Before.Verdict == expectation.Open {
		return nil
	}
	if o.worse() {
		err := f.audience.Worsened(ctx, Setback{
			Request: o.Request, To: o.Previous,
			Evidence: fmt.Sprintf("worse than the previous %s of %g: %s", o.Expected.Statistic, o.Before.Condition.Value, o.Before.Evidence(o.Expected.Signal, o.Expected.Unit)),
		})
		if err != nil {
			return unlessSuspended(err)
		}
	}
	f.Missed, f.changed = nil, true
	return nil
}

// worse reports whether the new version is known to be worse than the one before.
func (a *Retraining) worse() bool {
	return a != nil && a.Before != nil && a.Before.Verdict == expectation.Missed
}

// evidence describes what the units of the new version have shown.
func (a *Retraining) evidence() string {
	return a.Check.Evidence(a.Expected.Signal, a.Expected.Unit)
}

// decided is evidence with the reason why it needs fewer units than the contract names, if it does.
func (a *Retraining) decided() string {
	if a.Check.Units() >= a.Expected.Over {
		return a.evidence()
	}
	return fmt.Sprintf("%s. Decided early: the confidence interval was conclusive after %d of %d %s", a.evidence(), a.Check.Units(), a.Expected.Over, a.Expected.Unit)
}

// observed returns the statistic of the contract over the units of the new version.
func (a *Retraining) observed() sql.NullFloat64 {
	estimate, known := a.Check.Estimate()
	return sql.NullFloat64{Float64: estimate, Valid: known}
}

// ConcludeOverdue closes a retraining whose time is over, and ends a comparison whose time is over. It returns what
// Conclude returns.
func (f *Follower) ConcludeOverdue(ctx context.Context, now time.Time) (met *Retraining, err error) {
	if o := f.Missed; o != nil && !o.worse() && !o.Due.IsZero() && !now.Before(o.Due) {
		f.Missed, f.changed = nil, true
	}
	o := f.Open
	if o == nil || o.Check == nil || o.Check.Verdict != expectation.Open || o.Due.IsZero() || now.Before(o.Due) {
		return nil, nil
	}
	return f.end(ctx, ledger.StateInconclusive, fmt.Sprintf("timed out after %d of %d %s: %s",
		o.Check.Units(), o.Expected.Over, o.Expected.Unit, o.evidence()))
}

// end closes the request, and returns the retraining if its version becomes the baseline. It waits for the first
// save that contains the check: otherwise a crash would leave nothing to derive the consequences from, because a
// closed request is no longer awaited. It also waits until the previous outcome was reported, because this one may
// replace it.
func (f *Follower) end(ctx context.Context, state ledger.State, evidence string) (met *Retraining, err error) {
	o := f.Open
	if !o.kept || f.Missed.worse() {
		return nil, nil
	}
	follows, err := f.audience.Concluded(ctx, o.Request, Verdict{State: state, Evidence: evidence, Observed: o.observed()})
	if err != nil {
		return nil, unlessSuspended(err)
	}
	f.Open, f.changed = nil, true
	switch follows {
	case Promotes:
		return o, nil
	case Compares:
		f.Missed = o
		return nil, f.concludeMissed(ctx)
	}
	return nil, nil
}

// HasBaseline reports whether a group's baseline, or its warm-up, already belongs to the new version: the group has
// one of its own, or a person has started it since.
func (a *Retraining) HasBaseline(g *finding.GroupSummary) bool {
	l := &g.Lineage
	if a.Version == l.Version || a.Version == l.NextVersion {
		return true
	}
	return len(l.Past) > 0 && l.Past[len(l.Past)-1].EndedAt.After(a.Since)
}

// Changed reports whether anything has changed since the last save.
func (f *Follower) Changed() bool { return f.changed }

// Changes adds what has changed to the parts of the worker's checkpoint.
func (f *Follower) Changes(parts ingest.Parts) (err error) {
	if f.changed {
		parts[Part], err = format.Encode(f.wire())
	}
	return err
}

// Saved confirms that the last result of Changes is durable.
func (f *Follower) Saved() {
	f.changed = false
	if f.Open != nil {
		f.Open.kept = f.Open.Check != nil
	}
}

// Lost makes Changes return everything.
func (f *Follower) Lost() { f.changed = true }

// Resume reads its part of a checkpoint. A checkpoint of an earlier build lacks it. The versions of its groups then
// count as seen before, because otherwise they would count as new.
func (f *Follower) Resume(parts ingest.Parts, groups []finding.GroupSummary) error {
	if part, has := parts[Part]; has {
		wire, err := format.Decode(part)
		if err != nil {
			return fmt.Errorf("read the outcome of a retraining: %w", err)
		}
		f.live(wire)
		f.Saved()
		return nil
	}
	for i := range groups {
		if live := groups[i].Versions.Policy; live != "" {
			f.note(live, time.Time{})
		}
	}
	return nil
}
