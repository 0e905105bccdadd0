package bank

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A group that is evicted is in the checkpoint alone, but for what the policy as a whole, and those who look at it, need of
// it. Before anything happens to it, it has to come back: Absent says so, and Return does it. It then is to the bit
// what it was.

// away is what is kept of a group while it is evicted, beside its name and place. Its streams still count to the limit of streams.
type away struct {
	branches int       // see branchCount
	streams  int       // see streamCount
	gates    bool      // whether the checkpoint has the part of its gates
	silentAt time.Time // when nothing will have come for too long; zero where that is no fault, or is told already
}

// Keep has the bank tell which of its groups are in memory. It comes before the bank's first unit, and before Resume.
func (p *Policy) Keep(r *Residents) { p.residents = r }

// Evict lets go of the state of groups that both of the last two saves have as it is. It gives the number of them, and those
// which could go too once they are saved so. Groups with an open incident or a fault stay, as people look at these; so do
// all while a calibration is under way. A group that is silent may go.
func (p *Policy) Evict(groups []ingest.Group) (evicted int, unsaved []ingest.Group) {
	for _, key := range groups {
		g := p.byKey[key]
		switch {
		case g == nil || g.away != nil:
		case p.calibrating != nil || len(p.pending) > 0 || g.busy():
			p.residents.use(g.resident)
		case g.changed || g.saves < 2:
			unsaved = append(unsaved, key)
		default:
			p.put(g.stub())
			p.residents.leave(g.resident)
			evicted++
		}
	}
	p.residents.countEvicted(evicted)
	return evicted, unsaved
}

// Stay takes back that groups were chosen to leave: they could not be saved.
func (p *Policy) Stay(groups []ingest.Group) {
	for _, key := range groups {
		if g := p.byKey[key]; g != nil && g.away == nil {
			p.residents.keep(g.resident)
		}
	}
}

// busy reports whether the group has an open incident, or a fault other than silence.
func (g *group) busy() bool {
	if g.Incident || g.Unjudged != "" && g.Unjudged != FaultSilent {
		return true
	}
	return slices.ContainsFunc(g.Streams, func(s *stream) bool {
		return s.Alarmed || s.Fault.Rule != "" || s.State == TelemetryFault && g.Unjudged == ""
	})
}

// stub gives what is kept of a group that is evicted.
func (g *group) stub() *group {
	return &group{
		Key: g.Key, Number: g.Number, arrived: g.arrived, saves: g.saves, shown: g.summary(),
		away: &away{branches: g.branchCount(), streams: g.streamCount(), silentAt: g.silentAt(), gates: g.gatesSaved},
	}
}

// seat gives what is kept of a group that was just resumed: itself, where there is room in memory or people look at it.
func (p *Policy) seat(g *group) *group {
	g.saves = 1
	g.summary() // here, where all cores are at work
	if p.residents.full() && !g.busy() {
		p.residents.countEvicted(1)
		return g.stub()
	}
	g.resident = p.residents.enter(g.Key, g.weight())
	return g
}

// put makes a group the one with its number.
func (p *Policy) put(g *group) {
	i, _ := slices.BinarySearchFunc(p.groups, g.Number, func(other *group, n int) int { return cmp.Compare(other.Number, n) })
	p.groups[i], p.byKey[g.Key] = g, g
}

// Absent names the parts of the checkpoint that a group has to come back from; none where it is not evicted.
func (p *Policy) Absent(key ingest.Group) []string {
	if g := p.byKey[key]; g != nil && g.away != nil {
		parts := []string{g.part() + runningPart, g.part() + frozenPart}
		if g.away.gates {
			parts = append(parts, g.part()+gatesPart)
		}
		return parts
	}
	return nil
}

// part is how the names of the group's parts begin.
func (g *group) part() string { return groupPrefix + strconv.Itoa(g.Number) }

// Return brings an evicted group back from the parts that Absent has named. After an error it stays evicted.
func (p *Policy) Return(key ingest.Group, parts ingest.Parts) error {
	kept := p.byKey[key]
	g, err := p.resumeGroup(kept.part(), parts, kept.arrived)
	if err == nil && (g == nil || g.Key != key || g.Seen != kept.shown.Units) {
		err = errPartsDoNotMatch
	}
	if err != nil {
		return fmt.Errorf("read group %s: %w", key, err)
	}
	p.limit.add(-g.streamCount()) // they were counted all the time
	if g.saves, g.shown = kept.saves, kept.shown; kept.changed {
		g.changed, g.saved = true, nil
	}
	g.resident = p.residents.enter(key, g.weight())
	p.residents.countEvicted(-1)
	p.put(g)
	return nil
}

// streamCount is how many streams of the group count to the limit of streams.
func (g *group) streamCount() int {
	if g.away != nil {
		return g.away.streams
	}
	n := len(g.Streams)
	if next := g.Line.Versions.Next; next != nil {
		n += len(next.Streams)
	}
	return n
}

// weight is how much memory the group takes, in bytes.
func (g *group) weight() int64 { return int64(memoryPerByte * float64(g.runningBytes+g.frozenBytes)) }

// silentAt is when nothing will have come for too long; zero where that will be no fault, or has been told.
func (g *group) silentAt() time.Time {
	if g.Baseline.ID == "" || g.arrived.IsZero() || g.Unjudged != "" {
		return time.Time{}
	}
	return g.arrived.Add(g.Warmup.longestSilence())
}

// Silent gives the evicted groups that have gone silent, which Tick reports once they are back.
func (p *Policy) Silent(now time.Time) []ingest.Group {
	return p.evictedWhere(func(g *group) bool { return !g.away.silentAt.IsZero() && !now.Before(g.away.silentAt) })
}

// Missing gives the evicted groups that Changes needs, since what was saved of them is not to be relied on.
func (p *Policy) Missing() []ingest.Group {
	return p.evictedWhere(func(g *group) bool { return g.changed })
}

func (p *Policy) evictedWhere(is func(*group) bool) (out []ingest.Group) {
	for _, g := range p.groups {
		if g.away != nil && is(g) {
			out = append(out, g.Key)
		}
	}
	return out
}
