package bank

import (
	"fmt"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	// rollbackUnits is after how many units without one of the version that is judged a version which it followed counts
	// as new again.
	rollbackUnits = 200
	// keptRetired is how many versions that another one followed are remembered.
	keptRetired = 16
)

// succession follows the versions of a policy where a new one gets a baseline of its own. Exported fields are its
// snapshot.
type succession struct {
	Known   bool   // Version is set
	Version string // policy_version of the baseline, or of the warm-up for the first one
	Absent  int    // units since the last one of Version

	Next        *group // of the version that warms up beside this one; nil where none does
	NextVersion string
	NextSeen    int64 // ordinal of its last unit

	Retired []string // versions that were followed by another one, the oldest first
	Ignored int64    // units of theirs that were not judged
}

// lane says what becomes of a unit by its policy_version.
type lane uint8

const (
	laneJudged  lane = iota // it is held to the present baseline
	laneWarmUp              // it is collected for the baseline of the next version
	laneIgnored             // its version was followed by another one
)

// adopt takes the first version seen as that of the baseline.
func (s *succession) adopt(version string) {
	if !s.Known {
		s.Known, s.Version = true, version
	}
}

// lane decides by a unit's version. A unit without one is taken for one of the present version. While one version warms
// up, a third one is judged as the present one is.
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
	if version != s.NextVersion && s.NextVersion != "" && ordinal-s.NextSeen <= versionOverlap {
		return laneJudged
	}
	return laneWarmUp
}

// otherVersion deals with a unit that is not to be judged because of its version; false where it is.
func (p *Policy) otherVersion(g *group, u *ingest.Unit, now time.Time) (found []Finding, dealt bool) {
	if g.cfg.OnNewVersion != OnNewVersionRebaseline {
		return nil, false
	}
	switch g.Line.Versions.lane(u.Versions.Policy, g.Seen) {
	case laneIgnored:
		g.ignore(u, now)
		return nil, true
	case laneWarmUp:
		return p.warmUp(g, u, now), true
	}
	return nil, false
}

// ignore counts a unit of a version that was followed by another one.
func (g *group) ignore(u *ingest.Unit, now time.Time) {
	g.Trail.add(g.ref(u), u) // where each unit has its place by its ordinal
	g.Seen++
	g.Line.Versions.Ignored++
	g.LastTS = max(g.LastTS, u.EndTS)
	g.arrived = now
}

// outlasts reports whether an incident that is open is none of the version that warms up: units of the version that it
// was found in come no more, so that it would never close.
func (s *succession) outlasts() bool { return s.Absent > versionOverlap }

// warmUp collects a unit for the baseline of the next version, which takes over once it is accepted, or at once where
// there is no baseline yet. The two groups count and remember their units together.
func (p *Policy) warmUp(g *group, u *ingest.Unit, now time.Time) []Finding {
	next := g.next(u.Versions.Policy)
	if u = next.unit(u); u == nil {
		return nil
	}
	p.present(u)
	next.count(g)
	next.Newcomers.early(u) // which counts its agent's steps
	next.gather(u, now, !g.Incident || g.Line.Versions.outlasts())
	g.count(next)
	due, accepted := next.due()
	if !due || !accepted && g.Baseline.ID != "" || accepted && (next.leaveEarly() || next.refuse()) {
		return nil
	}
	return p.takeOver(g, accepted, now)
}

// next gives the group of the version that warms up, begun anew where it is another one than before.
func (g *group) next(version string) *group {
	s := &g.Line.Versions
	if s.Next == nil || s.NextVersion != version {
		g.dropNext()
		s.Next, s.NextVersion = newGroup(g.Key, g.cfg, g.limit, g.calibrations), version
	}
	s.NextSeen = g.Seen
	return s.Next
}

// dropNext gives up the version that warms up.
func (g *group) dropNext() {
	s := &g.Line.Versions
	if s.Next != nil {
		g.limit.add(-len(s.Next.Streams))
	}
	s.Next, s.NextVersion = nil, ""
}

// takeOver puts the next version and its baseline in the place of the present one.
func (p *Policy) takeOver(g *group, accepted bool, now time.Time) []Finding {
	s := &g.Line.Versions
	next, seen := s.Next, s.Next.Versions
	next.Line.Live = true
	next.Line.Versions = succession{
		Known: true, Version: s.NextVersion, Ignored: s.Ignored,
		Retired: append(slices.Clone(s.Retired[max(0, len(s.Retired)-keptRetired+1):]), s.Version),
	}
	s.Next = nil
	p.replace(g, next, fmt.Sprintf("policy_version %s has a baseline of its own", next.Line.Versions.Version), now)
	next.Versions = seen // that the version changed explains nothing that is found against its own baseline
	p.grant(next)
	room := p.room(next)
	return p.calibrate(func() []Finding {
		next.freeze(accepted, next.Trail.last(), now, room)
		return g.handOver(next)
	})
}

// gather folds in a unit that is not judged, and collects it for the next baseline where that is wanted.
func (g *group) gather(u *ingest.Unit, now time.Time, collect bool) {
	at := g.enter(u, now)
	values := g.readings(u, &g.scratch)
	g.startStreams(u, values)
	rules := g.faults(u)
	g.feed(values, rules, at.Ordinal)
	if collect {
		g.collect(u, values, rules)
	}
}
