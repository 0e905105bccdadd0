package bank

import (
	"encoding/gob"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Policy is the bank of one policy: the streams of all its groups, judged against one budget of false alarms. It is
// owned by one goroutine; Summary alone may be read by others.
type Policy struct {
	name    string
	cfg     Config
	groups  []*group // in order of first unit
	byKey   map[ingest.Group]*group
	applied map[int32]*AppliedUnit // by partition
	granted bool                   // the budget has been shared out
	later   int                    // groups that drew on the reserve since
	limit   *StreamLimit
	changed bool // since the last snapshot

	background   bool // baselines are calibrated beside the owner
	calibrating  *calibrating
	pending      []pendingUnit // units that wait for the calibration
	calibrations *Calibrations

	summary atomic.Pointer[Summary]
}

// AppliedUnit is the last unit of a partition that a bank has applied.
type AppliedUnit struct {
	Pos ingest.Position
	Ord int32
}

// Covers reports whether a unit of the same partition had been applied by then.
func (a AppliedUnit) Covers(u *ingest.Unit) bool { return !u.After(a.Pos, a.Ord) }

// NewPolicy makes the bank of a policy. The limit is shared by all banks.
func NewPolicy(name string, cfg Config, limit *StreamLimit) *Policy {
	p := &Policy{
		name: name, cfg: cfg, limit: limit, byKey: map[ingest.Group]*group{}, applied: map[int32]*AppliedUnit{},
		calibrations: NewCalibrations(),
	}
	p.Publish()
	return p
}

// Share lets the bank use what other banks have calibrated.
func (p *Policy) Share(c *Calibrations) { p.calibrations = c }

// Observe folds one unit in and returns the findings it leads to, in a fixed order. A unit that is not beyond what the
// bank has applied of its partition is ignored: it was read again after a restart. now is the wall clock, for silence
// and for the age of baselines; it has no influence on findings of drift.
func (p *Policy) Observe(u *ingest.Unit, now time.Time) []Finding {
	if p.calibrating == nil && len(p.pending) == 0 {
		return p.judge(u, now)
	}
	p.pending = append(p.pending, pendingUnit{u, now})
	return p.proceed(false)
}

func (p *Policy) judge(u *ingest.Unit, now time.Time) []Finding {
	if !p.apply(u) {
		return nil
	}
	g := p.group(u.Group)
	if g == nil {
		return nil
	}
	if found, dealt := p.otherVersion(g, u, now); dealt {
		return found
	}
	found := g.observe(u, now)
	if due, accepted := g.due(); due && g.learns() && (!accepted || !g.leaveEarly() && !g.refuse()) {
		p.grant(g)
		room := p.room(g)
		found = append(found, p.calibrate(func() []Finding { return g.freeze(accepted, g.Trail.last(), now, room) })...)
	} else if s := g.lateDue(); s != nil && !g.refuseLate(s) {
		share, room := p.laterShare(), p.room(g)-g.branchCount()
		found = append(found, p.calibrate(func() []Finding { return g.freezeLate(s, share, g.Trail.last(), room) })...)
	}
	return found
}

// Learn folds in a unit of recorded telemetry as part of a baseline from a file or from pinned offsets. It is not judged.
func (p *Policy) Learn(u *ingest.Unit) {
	g := p.group(u.Group)
	if g == nil || g.Warmup.Done || g.Warmup.Units >= g.cfg.Baseline.Units {
		return
	}
	if u = g.unit(u); u == nil {
		return
	}
	g.Line.Versions.adopt(u.Versions.Policy)
	g.Newcomers.early(u) // which counts its agent's steps
	g.gather(u, time.Time{}, true)
}

// Accept freezes what Learn has collected, as the accepted baseline of every group.
func (p *Policy) Accept(now time.Time) {
	for _, g := range p.groups {
		if !g.Warmup.Done && g.Warmup.Units > 0 {
			g.fitBlocks()
			g.Warmup.Trending = g.trending(g.Streams...)
			p.grant(g)
			p.changed = true
			g.freeze(true, g.Trail.last(), now, p.room(g))
			g.Newcomers.Steps = nil // live agents begin anew
			if g.cfg.Baseline.From == FromFile {
				g.Baseline.Offsets = nil // they are of the file
			}
		}
	}
}

// Tick reports groups that have gone silent. It is called while the service has read all there is, never while it lags.
func (p *Policy) Tick(now time.Time) []Finding {
	if p.calibrating != nil {
		return nil
	}
	var found []Finding
	for _, g := range p.groups {
		found = append(found, g.silence(now)...)
	}
	p.changed = p.changed || len(found) > 0
	return found
}

// Applied gives, by partition, the last unit that the bank has applied.
func (p *Policy) Applied() map[int32]AppliedUnit {
	out := make(map[int32]AppliedUnit, len(p.applied))
	for partition, a := range p.applied {
		out[partition] = *a
	}
	return out
}

// Forget makes the bank apply whatever comes from a partition next: the partition is read anew, and its offsets may
// be those of other records. Units of it that wait for a calibration are dropped: they come again.
func (p *Policy) Forget(partition int32) {
	p.pending = slices.DeleteFunc(p.pending, func(w pendingUnit) bool { return w.unit.Pos.Partition == partition })
	if p.applied[partition] != nil {
		delete(p.applied, partition)
		p.changed = true
	}
}

func (p *Policy) apply(u *ingest.Unit) bool {
	a := p.applied[u.Pos.Partition]
	if a == nil {
		a = &AppliedUnit{}
		p.applied[u.Pos.Partition] = a
	} else if a.Covers(u) {
		return false
	}
	a.Pos, a.Ord = u.Pos, u.Ord
	p.changed = true
	return true
}

// group finds a group, or starts it; nil where the limit of streams has been reached.
func (p *Policy) group(key ingest.Group) *group {
	g := p.byKey[key]
	if g == nil {
		if p.limit.Full() {
			return nil
		}
		g = newGroup(key, p.cfg, p.limit, p.calibrations)
		p.byKey[key] = g
		p.groups = append(p.groups, g)
	}
	return g
}

// Changed reports whether anything has changed since the bank was made, restored or last Saved.
func (p *Policy) Changed() bool { return p.changed }

// Saved says that the last Snapshot is durable.
func (p *Policy) Saved() { p.changed = false }

// snapshotVersion is the format of the snapshot. An older one is refused, with its number.
const snapshotVersion = 2

// policyState is the snapshot of a policy.
type policyState struct {
	Name    string
	Groups  []*group
	Applied map[int32]*AppliedUnit
	Granted bool
	Later   int
}

// Snapshot writes all state.
func (p *Policy) Snapshot(w io.Writer) error {
	enc := gob.NewEncoder(w)
	if err := enc.Encode(snapshotVersion); err != nil {
		return fmt.Errorf("write bank of policy %q: %w", p.name, err)
	}
	for _, g := range p.groups {
		g.shapes(func(t *shapeTest) { t.Held = t.ks.Window() })
		defer g.shapes(func(t *shapeTest) { t.Held = nil })
	}
	state := policyState{Name: p.name, Groups: p.groups, Applied: p.applied, Granted: p.granted, Later: p.later}
	if err := enc.Encode(state); err != nil {
		return fmt.Errorf("write bank of policy %q: %w", p.name, err)
	}
	return nil
}

// Restore reads what Snapshot wrote into a new bank. now restarts the clock of silence. Groups that were made with
// other group_by labels are left out: their units go to other groups from now on.
func (p *Policy) Restore(r io.Reader, now time.Time) error {
	dec := gob.NewDecoder(r)
	var version int
	if err := dec.Decode(&version); err != nil {
		return fmt.Errorf("read bank of policy %q: %w", p.name, err)
	}
	if version != snapshotVersion {
		return fmt.Errorf("read bank of policy %q: format %d, this version reads format %d", p.name, version, snapshotVersion)
	}
	var state policyState
	if err := dec.Decode(&state); err != nil {
		return fmt.Errorf("read bank of policy %q: %w", p.name, err)
	}
	p.granted, p.later = state.Granted, state.Later
	if state.Applied != nil {
		p.applied = state.Applied
	}
	for _, g := range state.Groups {
		if !p.cfg.groups(g.Key) {
			continue
		}
		g.restore(p.cfg, p.limit, p.calibrations, now)
		p.groups = append(p.groups, g)
		p.byKey[g.Key] = g
	}
	p.Publish()
	return nil
}

// restore makes what a snapshot leaves out.
func (g *group) restore(cfg Config, limit *StreamLimit, calibrations *Calibrations, now time.Time) {
	g.cfg, g.limit, g.calibrations, g.arrived = cfg, limit, calibrations, now
	limit.add(len(g.Streams))
	if cfg.OnNewVersion != OnNewVersionRebaseline {
		g.Line.Versions = succession{}
	}
	if next := g.Line.Versions.Next; next != nil {
		next.restore(cfg, limit, calibrations, now)
	}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			q.attach()
		}
	}
	if g.LikeActions != nil {
		g.LikeActions.Ranks.Prepare()
	}
	g.actionShares = newActionShares(g.Categories)
	g.shareScores()
}
