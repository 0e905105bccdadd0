// Package bank judges the units of a policy. It builds and freezes baselines, runs every detector of every stream, and
// only reports changes of state, as findings.
package bank

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/held"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/packed"
)

// Policy is the bank of one policy: the streams of all its groups, judged against one budget of false alarms. It is
// owned by one goroutine; other goroutines may only call Summary and Sample.
//
// The type is large because every request for a group of the policy passes through it, by key.
type Policy struct {
	name    string
	cfg     watch.Config
	groups  []*group // in order of first unit
	byKey   map[ingest.Group]*group
	recent  *group // the group that find returned last
	applied ingest.AppliedUnits
	granted bool    // whether the budget has been divided
	even    float64 // share of each group known at that time
	among   int     // number of groups known at that time
	later   int     // number of groups that have used the reserve since
	numbers int     // number of groups so far
	limit   *capacity.StreamLimit
	changed bool     // since the last save
	gone    []string // parts of the checkpoint that were removed since the last save

	told, uses map[int]int64 // results of lastUses, as last returned by Changes and as saved

	background   bool // whether baselines are calibrated in the background
	over         *held.Signal
	received     int64 // number of units so far
	judged       int64 // number of the unit being judged
	held         []*hold
	blocked      bool         // whether a freeze that is due must not begin yet
	counts       held.Counts  // since that freeze became due
	pending      packed.Queue // units not applied yet, because the bank pauses
	drains       bool
	oneByOne     bool
	waits        held.Count
	calibrations *budget.Calibrations
	residents    *capacity.Residents
	witness      func(*ingest.Unit) // may be nil
	applying     func(*ingest.Unit) // may be nil
	adjusting    func(*ingest.Unit) // may be nil

	summary atomic.Pointer[finding.Summary]
	samples samples // of baselines, for readers
}

// NewPolicy returns the bank of a policy. All banks must share the limit.
func NewPolicy(name string, cfg watch.Config, limit *capacity.StreamLimit) *Policy {
	p := &Policy{
		name: name, cfg: cfg, limit: limit.Part(), byKey: map[ingest.Group]*group{},
		calibrations: budget.NewCalibrations(), residents: capacity.NewResidents(math.MaxInt64), samples: samples{byGroup: map[ingest.Group]*groupSamples{}},
	}
	p.Publish()
	return p
}

// Share makes the bank share the calibrations of other banks.
func (p *Policy) Share(c *budget.Calibrations) { p.calibrations = c }

// Observe adds a unit and returns the resulting findings, in a fixed order. It ignores a unit that is not beyond the
// last one applied in its partition, as such a unit has been read again after a restart. now is the wall clock time,
// for silence and for the age of baselines; it does not affect findings of drift. The unit's group must not be Absent.
// From an episode without propensity and steps, the bank only keeps strings.
func (p *Policy) Observe(u *ingest.Unit, now time.Time) []finding.Finding {
	p.received++
	next := packed.Unit{Unit: u, Number: p.received, Now: now}
	if p.pending.Len() == 0 && !p.pauses() {
		return p.receive(next, false)
	}
	p.waits.Add(&p.pending, next)
	return nil
}

// judge judges a unit. While a freeze of another group waits to begin, it records how many branches the unit's group
// had before: that freeze must only use the branches that were left when it became due.
func (p *Policy) judge(of packed.Unit) []finding.Finding {
	p.judged = of.Number
	g := p.find(of.Group)
	if !p.blocked || g == nil {
		return p.judgeNow(of)
	}
	before := g.branchCount()
	p.counts.Changes(g.Number, of.Number, before)
	found := p.judgeNow(of)
	g = p.find(of.Group)
	if g.hold != nil && g.hold.Runs() { // its own freeze has begun, which changes its branches at this unit
		return found
	}
	if g.branchCount() == before {
		p.counts.Remains(g.Number)
	}
	return found
}

func (p *Policy) judgeNow(of packed.Unit) []finding.Finding {
	u, now := of.Unit, of.Now
	if u.Shadow && p.find(u.Group) == nil {
		return nil // there is nothing to compare it with, and baselines exclude shadow units
	}
	g := p.group(u.Group)
	if g == nil {
		return nil
	}
	if g.away != nil { // the caller checks Absent first: without its state, the group would silently restart
		panic("bank: unit of an evicted group that has not been reloaded")
	}
	g.touch()
	lane := g.lane(u)
	u = p.rated(g, u, lane)
	p.residents.Use(g.resident)
	if g.try(u); u.Shadow {
		return nil
	}
	if found, dealt := p.otherVersion(g, u, lane, now); dealt {
		return found
	}
	found := g.Observe(u, now, p.present)
	return append(found, p.calibrateDue(g, now)...)
}

// calibrateDue starts the calibration of the group's collected baseline, or of a signal that arrived later, if one is
// due.
func (p *Policy) calibrateDue(g *group, now time.Time) []finding.Finding {
	if due, accepted := g.due(); due && g.learns() && (!accepted || !g.leaveEarly() && !g.refuse()) {
		later := p.awaited(g)
		return p.calibrate(g, g.Warmup.Units, func() held.Freeze {
			p.grant(g)
			room := budget.Room{Branches: p.room(g), Later: later}
			return func() []finding.Finding { return g.freeze(accepted, g.Trail.Last(), now, room) }
		})
	}
	if s := g.lateDue(); s != nil && !g.refuseLate(s) {
		later := p.awaited(g)
		return p.calibrate(g, s.LateUnits, func() held.Freeze {
			share, room := p.laterShare(), budget.Room{Branches: p.room(g) - g.branchCount(), Later: later}
			return func() []finding.Finding { return g.freezeLate(s, share, g.Trail.Last(), room) }
		})
	}
	return nil
}

// Learn adds a unit of recorded telemetry to a baseline from a file or from pinned offsets. The unit is not judged.
// Learn ignores shadow units.
func (p *Policy) Learn(u *ingest.Unit) {
	if u.Shadow {
		return
	}
	g := p.group(u.Group)
	if g == nil || g.Warmup.Done || g.Warmup.Units >= g.cfg.Baseline.Units {
		return
	}
	g.touch()
	if u = g.unit(p.rated(g, u, laneJudged)); u == nil {
		return
	}
	g.Line.Versions.adopt(u.Versions.Policy)
	g.Newcomers.Early(u) // also counts its agent's steps
	g.gather(u, time.Time{}, true)
}

// Accept freezes the units that Learn has collected as the accepted baseline of every group.
func (p *Policy) Accept(now time.Time) {
	for _, g := range p.groups {
		if !g.Warmup.Done && g.Warmup.Units > 0 {
			g.fitBlocks()
			g.Warmup.Trending = g.warmupTrend()
			p.grant(g)
			p.changed = true
			g.touch()
			g.freeze(true, g.Trail.Last(), now, budget.Room{Branches: p.room(g), Later: p.awaited(g)})
			g.Newcomers.Steps = nil // live agents start from zero
			g.Blocks.Restart()
			if g.cfg.Baseline.From == watch.FromFile {
				g.Baseline.Offsets = nil // they refer to the file
			}
		}
	}
}

// Tick returns findings for groups that have become silent. Call it only while the service has read all telemetry,
// never while it lags.
func (p *Policy) Tick(now time.Time) []finding.Finding {
	if p.pending.Len() > 0 {
		return nil
	}
	var found []finding.Finding
	for _, g := range p.groups {
		if g.hold != nil {
			continue
		}
		before := g.Unjudged
		found = append(found, g.silence(now)...)
		if g.Unjudged != before {
			p.changed = true
			g.touch()
			p.residents.Yield(g.resident)
		}
	}
	return found
}

// Applied returns, by partition, the last unit that the bank has applied.
func (p *Policy) Applied() map[ingest.Partition]ingest.AppliedUnit { return p.applied.All() }

// Has reports whether the bank has definitely applied the unit, so that it would ignore it.
func (p *Policy) Has(u *ingest.Unit) bool { return p.applied.Has(ingest.AppliedUnitOf(u)) }

// find returns a group, or nil. It caches the last result, as successive units often belong to the same group.
func (p *Policy) find(key ingest.Group) *group {
	if p.recent == nil || p.recent.Key != key {
		p.recent = p.byKey[key]
	}
	return p.recent
}

// group returns a group. It adds the group if there is none; nil if the limit of streams has been reached.
func (p *Policy) group(key ingest.Group) *group {
	g := p.find(key)
	if g == nil {
		if p.limit.Full() {
			return nil
		}
		g = newGroup(key, &p.cfg, p.limit, p.calibrations)
		p.numbers++
		g.Number = p.numbers
		g.resident = p.residents.Enter(key, unsavedWeight)
		p.byKey[key] = g
		p.groups = append(p.groups, g)
	}
	return g
}
