package bank

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/battery"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/trail"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// keptBaselines is the maximum number of past baselines that a group remembers.
const keptBaselines = 50

// The errors of requests to a bank, for use with errors.Is.
var (
	ErrUnknownGroup = errors.New("group not found: no telemetry has been received for it")
	ErrNoBaseline   = errors.New("no baseline has been frozen yet")
)

// line holds the succession of baselines of a group. Exported fields are saved.
type line struct {
	Past     []finding.PastBaseline
	Before   []finding.QuantitySample // values of the last of Past
	Promoted string
	Versions succession
	Live     bool // the baseline is taken from live units regardless of the configuration, because a user requested a new one
}

// Restart ends the baseline of a group and begins a new warm-up with its next unit. It closes an open incident. It
// returns findings for the incident and for the streams whose state has changed; they refer to the last unit seen. why
// is recorded with the ended baseline. Restart returns ErrUnknownGroup if no unit of the group has been seen.
func (p *Policy) Restart(key ingest.Group, why string, now time.Time) ([]finding.Finding, error) {
	g := p.byKey[key]
	if g == nil {
		return nil, ErrUnknownGroup
	}
	next := g.afresh()
	next.Line.Live = true
	p.replace(g, next, why, now)
	return g.handOver(next), nil
}

// Promote accepts the provisional baseline of a group and ends its warm-up. why is recorded with the baseline. Promote
// leaves an accepted baseline unchanged. It returns ErrUnknownGroup or ErrNoBaseline if there is nothing to accept.
func (p *Policy) Promote(key ingest.Group, why string) error {
	g := p.byKey[key]
	switch {
	case g == nil:
		return ErrUnknownGroup
	case g.Baseline.ID == "":
		return ErrNoBaseline
	case !g.Baseline.Provisional:
		return nil
	}
	g.Baseline.Provisional, g.Line.Promoted = false, why
	if g.Promise.Confidence == finding.ConfidenceProvisional { // its promise was confirmed
		g.Promise.Confidence = g.reliance()
	}
	g.endWarmup()
	p.changed = true
	g.touch()
	return nil
}

// learns reports whether live units become the group's baseline.
func (g *group) learns() bool { return g.cfg.Baseline.From == watch.FromWarmup || g.Line.Live }

// afresh returns the group that replaces g when its baseline ends. It has the same streams, without baselines.
func (g *group) afresh() *group {
	next := newGroup(g.Key, g.cfg, g.limit, g.calibrations)
	for _, s := range g.Streams {
		fresh := &stream.Stream{Signal: s.Signal}
		for _, q := range s.Quantities {
			fresh.Quantities = append(fresh.Quantities, &stream.Quantity{Name: q.Name, Recent: q.Recent})
		}
		next.Streams = append(next.Streams, fresh)
	}
	next.LastActions, g.LastActions = g.LastActions, trail.Actions{}
	next.Newcomers = battery.Newcomers{Steps: g.Newcomers.Steps, Crowd: g.Newcomers.Crowd}
	g.limit.Add(len(next.Streams))
	return next
}

// replace puts next, which has its own baseline and streams, in place of g, whose baseline ends.
func (p *Policy) replace(g, next *group, why string, now time.Time) {
	next.inherit(g)
	next.Number, next.resident, next.limit = g.Number, g.resident, g.limit
	next.hold, g.hold = g.hold, nil
	next.Line.end(g, why, now)
	next.gates, next.gatesSaved = g.gates.End(why, g.cfg), g.gatesSaved
	p.put(next)
	g.dropNext()
	g.limit.Add(-len(g.Streams))
	p.changed = true
	next.touch() // even if it was restored with g and has not had a unit since
}

// inherit takes over the state that belongs to the group and not to its baseline.
func (g *group) inherit(before *group) {
	g.count(before)
	g.Versions, g.Share, g.History = before.Versions, before.Share, before.History
}

// count takes over the number of units and the references to them from other, which loses them.
func (g *group) count(other *group) {
	g.Seen, g.LastTS = other.Seen, other.LastTS
	g.Trail, other.Trail = other.Trail, trail.Trail{}
	g.Positive, g.Negative, g.Rewards = other.Positive, other.Negative, other.Rewards
	g.arrived, g.came, g.used = other.arrived, other.came, other.used
}

// end takes over the succession of a group and adds its baseline, if there is one, to the past baselines.
func (l *line) end(g *group, why string, now time.Time) {
	l.Past, l.Before = g.Line.Past, g.Line.Before
	l.Live = l.Live || g.Line.Live
	if g.Baseline.ID == "" {
		return
	}
	past := finding.PastBaseline{
		BaselineRef: g.Baseline, FrozenAt: g.FrozenAt, EndedAt: now, Promoted: g.Line.Promoted, Why: why,
	}
	l.Past = append(slices.Clone(l.Past[max(0, len(l.Past)-keptBaselines+1):]), past)
	l.Before = g.baselineSample()
}

func (g *group) baselineSample() []finding.QuantitySample { return g.frozen().sample() }

// handOver returns findings for the streams of g whose state has changed because next replaced g, and for the end of
// the incident of g. g must not be used afterwards.
func (g *group) handOver(next *group) []finding.Finding {
	at := next.Trail.Last()
	var found []finding.Finding
	for _, s := range g.Streams {
		from, after := s.State, &stream.Stream{Signal: s.Signal}
		if i, has := next.Find(s.Signal); has {
			after = next.Streams[i]
		}
		if s.State = after.State; s.State == from {
			continue
		}
		f := g.finding(finding.StreamChanged, s, from, at)
		f.Reason = ""
		if s.State == finding.WarmingUp {
			f.Reason = next.missing(after)
		}
		found = append(found, f)
	}
	for _, s := range next.Streams {
		if _, had := g.Find(s.Signal); !had && s.State != finding.WarmingUp {
			found = append(found, next.finding(finding.StreamChanged, s, finding.WarmingUp, at))
		}
	}
	slices.SortStableFunc(found, func(a, b finding.Finding) int { return strings.Compare(a.Signal, b.Signal) })
	if g.Incident {
		found = append(found, finding.Finding{Kind: finding.GroupQuiet, Group: g.Key, At: at})
	}
	return found
}

func (g *group) lineage() finding.Lineage {
	l := finding.Lineage{Past: g.Line.Past, Promoted: g.Line.Promoted}
	if !g.Warmup.Done && g.learns() {
		l.Collected, l.Wanted = g.Warmup.Units, g.cfg.Baseline.Units
	}
	if g.cfg.OnNewVersion == watch.OnNewVersionRebaseline {
		l.Version, l.Ignored = g.Line.Versions.Version, g.Line.Versions.Ignored
	}
	if next := g.Line.Versions.Next; next != nil {
		l.NextVersion, l.NextUnits, l.NextWanted = g.Line.Versions.NextVersion, next.Warmup.Units, g.cfg.Baseline.Units
	}
	return l
}
