package bank

import (
	"math"
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
	even    float64                // the share of each group that was known then
	among   int                    // numbers given to groups until then
	later   int                    // groups that drew on the reserve since
	numbers int                    // given to groups so far
	limit   *StreamLimit
	changed bool     // since the last save
	gone    []string // parts of the checkpoint that are not needed any more, since the last save

	background   bool // baselines are calibrated beside the owner
	calibrating  *calibrating
	pending      []pendingUnit // units that wait for the calibration
	calibrations *Calibrations
	residents    *Residents
	witness      func(*ingest.Unit) // nil where nobody asks

	summary atomic.Pointer[Summary]
}

// AppliedUnit is the last unit of a partition that a bank has applied.
type AppliedUnit struct {
	Pos     ingest.Position
	Ord     int32
	Reading int64 // see ingest.Unit
}

// Covers reports whether a unit of the same partition had been applied by then. One of another reading had not: its
// offsets may be those of other records.
func (a AppliedUnit) Covers(u *ingest.Unit) bool {
	return a.Reading == u.Reading && !u.After(a.Pos, a.Ord)
}

// NewPolicy makes the bank of a policy. The limit is shared by all banks.
func NewPolicy(name string, cfg Config, limit *StreamLimit) *Policy {
	p := &Policy{
		name: name, cfg: cfg, limit: limit, byKey: map[ingest.Group]*group{}, applied: map[int32]*AppliedUnit{},
		calibrations: NewCalibrations(), residents: NewResidents(math.MaxInt64),
	}
	p.Publish()
	return p
}

// Share lets the bank use what other banks have calibrated.
func (p *Policy) Share(c *Calibrations) { p.calibrations = c }

// Observe folds one unit in and returns the findings it leads to, in a fixed order. A unit that is not beyond what the
// bank has applied of its partition is ignored: it was read again after a restart. now is the wall clock, for silence
// and for the age of baselines; it has no influence on findings of drift. The unit's group must not be Absent.
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
	if u.Shadow && p.byKey[u.Group] == nil {
		return nil // there is nothing to hold it to, and it is no part of what will be
	}
	g := p.group(u.Group)
	if g == nil {
		return nil
	}
	if g.away != nil { // whoever hands on units asks Absent before: judged without its state, the group would begin anew unnoticed
		panic("bank: a unit of a group that was evicted and has not come back")
	}
	g.touch()
	p.residents.use(g.resident)
	if g.try(u); u.Shadow {
		return nil
	}
	if found, dealt := p.otherVersion(g, u, now); dealt {
		return found
	}
	found := g.observe(u, now, p.present)
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
// One in shadow is no part of it.
func (p *Policy) Learn(u *ingest.Unit) {
	if u.Shadow {
		return
	}
	g := p.group(u.Group)
	if g == nil || g.Warmup.Done || g.Warmup.Units >= g.cfg.Baseline.Units {
		return
	}
	g.touch()
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
			g.touch()
			g.freeze(true, g.Trail.last(), now, p.room(g))
			g.Newcomers.Steps, g.Blocks.Open = nil, nil // live agents begin anew
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
		before := g.Unjudged
		found = append(found, g.silence(now)...)
		if g.Unjudged != before {
			p.changed = true
			g.touch()
			p.residents.yield(g.resident)
		}
	}
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

// Has reports whether the bank has applied the unit for certain, so that it would ignore it.
func (p *Policy) Has(u *ingest.Unit) bool {
	a := p.applied[u.Pos.Partition]
	return a != nil && a.Covers(u) && p.calibrating == nil && len(p.pending) == 0
}

func (p *Policy) apply(u *ingest.Unit) bool {
	a := p.applied[u.Pos.Partition]
	if a == nil {
		a = &AppliedUnit{}
		p.applied[u.Pos.Partition] = a
	} else if a.Covers(u) {
		return false
	}
	a.Pos, a.Ord, a.Reading = u.Pos, u.Ord, u.Reading
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
		p.numbers++
		g.Number = p.numbers
		g.resident = p.residents.enter(key, unsavedWeight)
		p.byKey[key] = g
		p.groups = append(p.groups, g)
	}
	return g
}
