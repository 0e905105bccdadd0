package bank

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/held"
	"github.com/rewardwatch/rewardwatch/detectors/raters"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/versions"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	// rollbackUnits is the number of consecutive units of other versions than the judged one after which a retired
	// version counts as new again.
	rollbackUnits = 200
	// keptRetired is the maximum number of retired versions that are remembered.
	keptRetired = 16
)

// succession tracks the versions of a policy if each new one gets its own baseline. Exported fields are saved.
type succession struct {
	Known   bool   // whether Version is set
	Version string // policy_version of the baseline or, before the first baseline, of the warm-up
	Absent  int    // number of units since the last one of Version

	Next        *group // the version that warms up in parallel; nil if there is none
	NextVersion string
	NextSeen    int64 // ordinal of its last unit

	Retired []string // versions that were replaced by another one, oldest first
	Ignored int64    // number of units of retired versions, which are not judged
}

// lane is how a unit is handled, depending on its policy_version.
type lane uint8

const (
	laneJudged  lane = iota // compared with the current baseline
	laneWarmUp              // collected for the baseline of the next version
	laneIgnored             // belongs to a retired version
)

// adopt makes the first version seen the version of the baseline.
func (s *succession) adopt(version string) {
	if !s.Known {
		s.Known, s.Version = true, version
	}
}

// lane returns how a unit is handled, depending on its version. A unit without a version counts as one of the current
// version. While one version warms up, units of a third one are judged like those of the current version.
func (s *succession) lane(version string, ordinal int64) lane {
	s.adopt(version)
	if version == s.Version || version == "" {
		s.Absent = 0
		return laneJudged
	}
	s.Absent++
	if i := slices.Index(s.Retired, version); i >= 0 {
		if s.Absent <= rollbackUnits {
			return laneIgnored
		}
		s.Retired = slices.Delete(slices.Clone(s.Retired), i, i+1)
	}
	if version != s.NextVersion && s.NextVersion != "" && ordinal-s.NextSeen <= versions.OverlapUnits {
		return laneJudged
	}
	return laneWarmUp
}

func (g *group) lane(u *ingest.Unit) lane {
	if g.cfg.OnNewVersion != watch.OnNewVersionRebaseline || u.Shadow {
		return laneJudged
	}
	return g.Line.Versions.lane(u.Versions.Policy, g.Seen)
}

// otherVersion handles a unit that is not judged because of its version. It returns false if the unit is to be judged.
func (p *Policy) otherVersion(g *group, u *ingest.Unit, of lane, now time.Time) (found []finding.Finding, dealt bool) {
	switch of {
	case laneIgnored:
		return g.ignore(u, now), true
	case laneWarmUp:
		return p.warmUp(g, u, now), true
	}
	return nil, false
}

func (g *group) ignore(u *ingest.Unit, now time.Time) []finding.Finding {
	g.Trail.Add(g.ref(u), u) // each ordinal needs a unit
	g.Seen++
	g.Line.Versions.Ignored++
	g.LastTS = max(g.LastTS, u.EndTS)
	return g.heard(now)
}

// outlasts reports whether units are collected for the version that warms up despite an open incident. This is the case
// if no more units of the incident's own version arrive, so that the incident would never close.
func (s *succession) outlasts() bool { return s.Absent > versions.OverlapUnits }

// warmUp collects a unit for the baseline of the next version. That version replaces the current one once its baseline
// is accepted or, if the group has no baseline yet, with its first provisional one. The two groups count and remember
// their units together.
func (p *Policy) warmUp(g *group, u *ingest.Unit, now time.Time) []finding.Finding {
	found := g.heard(now)
	next := g.next(u.Versions.Policy)
	if u = next.unit(u); u == nil {
		return found
	}
	p.present(u)
	next.count(g)
	next.Newcomers.Early(u) // also counts its agent's steps
	next.gather(u, now, !g.Incident || g.Line.Versions.outlasts())
	g.count(next)
	due, accepted := next.due()
	if !due || !accepted && g.Baseline.ID != "" || accepted && (next.leaveEarly() || next.refuse()) {
		return found
	}
	return append(found, p.takeOver(g, accepted, now)...)
}

// next returns the group of the version that warms up. It starts a new group if that version has changed.
func (g *group) next(version string) *group {
	s := &g.Line.Versions
	if s.Next == nil || s.NextVersion != version {
		g.dropNext()
		s.Next, s.NextVersion = newGroup(g.Key, g.cfg, g.limit.Successor(), g.calibrations), version
		s.Next.History = g.History
	}
	s.NextSeen = g.Seen
	return s.Next
}

func (g *group) dropNext() {
	s := &g.Line.Versions
	if s.Next != nil {
		g.limit.Add(-len(s.Next.Streams))
	}
	s.Next, s.NextVersion = nil, ""
}

func (p *Policy) takeOver(g *group, accepted bool, now time.Time) []finding.Finding {
	s := &g.Line.Versions
	next, seen := s.Next, s.Next.Versions
	before := *g.summary()
	next.Line.Live = true
	next.Line.Versions = succession{
		Known: true, Version: s.NextVersion, Ignored: s.Ignored,
		Retired: append(slices.Clone(s.Retired[max(0, len(s.Retired)-keptRetired+1):]), s.Version),
	}
	s.Next = nil
	p.replace(g, next, fmt.Sprintf("policy_version %s now has its own baseline", next.Line.Versions.Version), now)
	next.takeRaters(g.Raters)
	next.Versions = seen // the version change does not explain findings against the version's own baseline
	later := p.awaited(next)
	found := p.calibrate(next, next.Warmup.Units, func() held.Freeze {
		p.grant(next)
		room := budget.Room{Branches: p.room(next), Later: later}
		return func() []finding.Finding {
			next.freeze(accepted, next.Trail.Last(), now, room)
			return g.handOver(next)
		}
	})
	if next.hold != nil {
		next.hold.shown = before
	}
	return found
}

// takeRaters takes over the raters of the preceding version, rescaled to the new baseline.
func (g *group) takeRaters(known raters.Raters) {
	g.Raters = known
	earned := g.meanOf("reward")
	if math.IsNaN(earned) {
		earned = g.meanOf("return")
	}
	for outcome, label := range g.cfg.Raters {
		known.Rebase(outcome, label, g.meanOf("outcome."+outcome), earned)
	}
}

// meanOf returns the mean of a signal over the units collected for the baseline; NaN if there is none.
func (g *group) meanOf(signal string) float64 {
	for _, s := range g.Streams {
		if q := s.Find(signals.MainQuantity(signal)); s.Signal == signal && q != nil {
			return stat.Mean(q.WarmValues(), nil)
		}
	}
	return math.NaN()
}

// gather adds a unit that is not judged. If collect is true, it also collects the unit for the next baseline.
func (g *group) gather(u *ingest.Unit, now time.Time, collect bool) {
	at := g.enter(u, now)
	values := g.Readings(u, nil)
	g.startStreams(u, values)
	rules := g.Faults(u)
	g.feed(values, rules, at.Ordinal)
	if collect {
		g.collect(u, values, rules)
	}
}
