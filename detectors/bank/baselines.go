package bank

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// keptBaselines is how many past baselines a group remembers.
const keptBaselines = 50

// The errors of what a person asks of a bank, for errors.Is.
var (
	ErrUnknownGroup = errors.New("no such group has been seen")
	ErrNoBaseline   = errors.New("no baseline has been frozen yet")
)

// PastBaseline is a baseline that a group was held to before.
type PastBaseline struct {
	BaselineRef
	FrozenAt, EndedAt time.Time // by the wall clock
	Promoted          string    // who accepted it while it was provisional, and why; "" where nobody did
	Why               string    // it ended
}

// QuantitySample is the values that one quantity had in a baseline, sorted.
type QuantitySample struct {
	Signal, Quantity string
	Values           detectors.Floats
}

// Lineage says which baselines a group has had, and what is being collected for the next one.
type Lineage struct {
	Past      []PastBaseline // the oldest first, the newest keptBaselines of them
	Promoted  string         // who accepted the present baseline while it was provisional, and why
	Collected int            // units of the warm-up that goes on
	Wanted    int            // units at which it ends; 0 where none goes on

	// Version is the policy_version that the baseline is of, where a new one gets a baseline of its own: "" elsewhere.
	Version     string
	NextVersion string // that warms up beside it, "" where none does
	NextUnits   int    // what has been collected of it
	NextWanted  int
	Ignored     int64 // units of versions that another one has followed, which were not judged
}

// line is the succession of baselines of a group. Exported fields are its snapshot.
type line struct {
	Past     []PastBaseline
	Before   []QuantitySample // the values of the last of Past
	Promoted string
	Versions succession
	Live     bool // the baseline is taken from live units, whatever the configuration says: a person asked for a new one
}

// Restart ends the baseline of a group and begins a new warm-up with its next unit. The findings are those of streams
// whose state changed by it, and of the open incident, which it ends; their unit is the last one seen. why is kept with
// the ended baseline. It gives ErrUnknownGroup where no unit of the group has been seen.
func (p *Policy) Restart(key ingest.Group, why string, now time.Time) ([]Finding, error) {
	g := p.byKey[key]
	if g == nil {
		return nil, ErrUnknownGroup
	}
	next := g.afresh()
	next.Line.Live = true
	p.replace(g, next, why, now)
	return g.handOver(next), nil
}

// Promote accepts the provisional baseline of a group as it is: its warm-up ends. why is kept with it. A baseline that
// has been accepted stays as it is. It gives ErrUnknownGroup or ErrNoBaseline where there is nothing to accept.
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
	if g.Promise.Confidence == ConfidenceProvisional { // of a promise that was confirmed
		g.Promise.Confidence = g.reliance()
	}
	g.endWarmup()
	p.changed = true
	g.touch()
	return nil
}

// Sample gives the values of a baseline, sorted by signal; false where they are not known: those of a group's present
// baseline and of the one before are kept.
func (p *Policy) Sample(id string) ([]QuantitySample, bool) {
	for _, g := range p.groups {
		if id != "" && g.Baseline.ID == id {
			return g.baselineSample(), true
		}
		if past := g.Line.Past; len(past) > 0 && past[len(past)-1].ID == id {
			return slices.Clone(g.Line.Before), true
		}
	}
	return nil, false
}

// learns reports whether live units become the group's baseline.
func (g *group) learns() bool { return g.cfg.Baseline.From == FromWarmup || g.Line.Live }

// afresh makes the group that follows g when its baseline ends: the same streams, none of them judged.
func (g *group) afresh() *group {
	next := newGroup(g.Key, g.cfg, g.limit, g.calibrations)
	for _, s := range g.Streams {
		fresh := &stream{Signal: s.Signal}
		for _, q := range s.Quantities {
			fresh.Quantities = append(fresh.Quantities, &quantity{Name: q.Name, Recent: q.Recent})
		}
		next.Streams = append(next.Streams, fresh)
	}
	next.LastActions = g.LastActions
	next.Newcomers = newcomers{Steps: g.Newcomers.Steps, Crowd: g.Newcomers.Crowd}
	g.limit.add(len(next.Streams))
	return next
}

// replace puts next, which has a baseline and streams of its own, in the place of g, whose baseline ends.
func (p *Policy) replace(g, next *group, why string, now time.Time) {
	next.inherit(g)
	next.Number, next.resident = g.Number, g.resident
	next.Line.end(g, why, now)
	next.gates, next.gatesSaved = g.endGates(why), g.gatesSaved
	p.put(next)
	g.dropNext()
	g.limit.add(-len(g.Streams))
	p.changed = true
	next.touch() // also one that was restored with g and has had no unit since
}

// inherit takes over what is of the group and not of its baseline.
func (g *group) inherit(before *group) {
	g.count(before)
	g.Versions, g.Share = before.Versions, before.Share
}

// count takes over how many units there were, and which.
func (g *group) count(other *group) {
	g.Seen, g.LastTS, g.Trail = other.Seen, other.LastTS, other.Trail
	g.Positive, g.Negative, g.Rewards = other.Positive, other.Negative, other.Rewards
	g.arrived = other.arrived
}

// end takes over the succession of a group whose baseline ends. A group that had none adds none.
func (l *line) end(g *group, why string, now time.Time) {
	l.Past, l.Before = g.Line.Past, g.Line.Before
	l.Live = l.Live || g.Line.Live
	if g.Baseline.ID == "" {
		return
	}
	past := PastBaseline{
		BaselineRef: g.Baseline, FrozenAt: g.FrozenAt, EndedAt: now, Promoted: g.Line.Promoted, Why: why,
	}
	l.Past = append(slices.Clone(l.Past[max(0, len(l.Past)-keptBaselines+1):]), past)
	l.Before = g.baselineSample()
}

// baselineSample gives the values of the present baseline.
func (g *group) baselineSample() []QuantitySample {
	var out []QuantitySample
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			if q.Ranks != nil {
				out = append(out, QuantitySample{Signal: s.Signal, Quantity: q.Name, Values: q.Ranks.Sample()})
			}
		}
	}
	return out
}

// handOver reports the streams whose state another group, which has replaced g, changed, and that g's incident is over.
// Afterwards g is of no use.
func (g *group) handOver(next *group) []Finding {
	at := g.Trail.last()
	var found []Finding
	for _, s := range g.Streams {
		from, after := s.State, &stream{Signal: s.Signal}
		if i, has := next.find(s.Signal); has {
			after = next.Streams[i]
		}
		if s.State = after.State; s.State == from {
			continue
		}
		f := g.finding(StreamChanged, s, from, at)
		f.Reason = ""
		if s.State == WarmingUp {
			f.Reason = next.missing(after)
		}
		found = append(found, f)
	}
	for _, s := range next.Streams {
		if _, had := g.find(s.Signal); !had && s.State != WarmingUp {
			found = append(found, next.finding(StreamChanged, s, WarmingUp, at))
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return strings.Compare(a.Signal, b.Signal) })
	if g.Incident {
		found = append(found, Finding{Kind: GroupQuiet, Group: g.Key, At: at})
	}
	return found
}

// lineage is what is shown of the succession.
func (g *group) lineage() Lineage {
	l := Lineage{Past: g.Line.Past, Promoted: g.Line.Promoted}
	if !g.Warmup.Done && g.learns() {
		l.Collected, l.Wanted = g.Warmup.Units, g.cfg.Baseline.Units
	}
	if g.cfg.OnNewVersion == OnNewVersionRebaseline {
		l.Version, l.Ignored = g.Line.Versions.Version, g.Line.Versions.Ignored
	}
	if next := g.Line.Versions.Next; next != nil {
		l.NextVersion, l.NextUnits, l.NextWanted = g.Line.Versions.NextVersion, next.Warmup.Units, g.cfg.Baseline.Units
	}
	return l
}
