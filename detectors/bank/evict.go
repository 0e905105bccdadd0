package bank

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// An evicted group only exists in the checkpoint, except for what the policy as a whole and its readers need. It must
// be restored before anything else happens to it: Absent reports that, and Return restores it. The restored state is
// bit-for-bit identical.

// away is the part of an evicted group that stays in memory, in addition to its name and number. Its streams still
// count towards the limit of streams.
type away struct {
	Branches int       // see branchCount
	streams  int       // see streamCount
	gates    bool      // whether the checkpoint has a part for its gates
	silentAt time.Time // when the group will have been silent for too long; zero if that is not a fault or has been reported
}

// The memory of a group: a constant, plus a factor per byte of its parts of the checkpoint. The factor is 1.3 with an
// accepted baseline, and 1.7 to 2.3 during warm-up, because lists then have spare capacity.
const (
	memoryOfGroup     = 12 << 10
	memoryPerByte     = 1.3
	memoryPerWarmByte = 1.9
)

// unsavedWeight is the assumed memory of a group that was never saved, in bytes.
const unsavedWeight = 64 << 10

// Keep makes the bank register with r which of its groups are in memory. Call it before the bank's first unit and
// before Resume.
func (p *Policy) Keep(r *capacity.Residents) { p.residents = r }

// Evict drops the state of those groups that are unchanged since the last save. It returns their number, and the groups
// that could be evicted after a save. If that save turns out to be damaged, the one before it and the units since then
// replace it, as for groups in memory. Groups with an open incident or a fault are not evicted, since users look at
// them; a silent group may be. Groups that wait for a calibration are not evicted, and no group is while the bank
// pauses.
func (p *Policy) Evict(groups []ingest.Group) (evicted int, unsaved []ingest.Group) {
	for _, key := range groups {
		g := p.byKey[key]
		switch {
		case g == nil || g.away != nil:
		case g.hold != nil || p.pending.Len() > 0 || g.busy():
			p.residents.Use(g.resident)
		case g.changed:
			unsaved = append(unsaved, key)
		default:
			p.put(g.stub())
			p.offer(p.byKey[key])
			p.residents.Leave(g.resident)
			evicted++
		}
	}
	p.residents.CountEvicted(evicted)
	return evicted, unsaved
}

// Stay cancels the selection of groups for eviction, because they could not be saved.
func (p *Policy) Stay(groups []ingest.Group) {
	for _, key := range groups {
		if g := p.byKey[key]; g != nil && g.away == nil {
			p.residents.Keep(g.resident)
		}
	}
}

// busy reports whether the group has an open incident, or a fault other than silence.
func (g *group) busy() bool {
	if g.Incident || g.Unjudged != "" && g.Unjudged != fault.Silent {
		return true
	}
	return slices.ContainsFunc(g.Streams, func(s *stream.Stream) bool {
		return s.Alarmed || s.Fault.Rule != "" || s.State == finding.TelemetryFault && g.Unjudged == ""
	})
}

// stub returns the part of a group that stays in memory when it is evicted.
func (g *group) stub() *group {
	return &group{
		Key: g.Key, Number: g.Number, arrived: g.arrived, came: g.came, used: g.used, shown: g.summary(),
		runningBytes: g.runningBytes, frozenBytes: g.frozenBytes,
		away: &away{Branches: g.branchCount(), streams: g.streamCount(), silentAt: g.silentAt(), gates: g.gatesSaved},
	}
}

// seat returns what stays in memory of a group that was just resumed: the group itself if there is room or users look
// at it, otherwise its stub.
func (p *Policy) seat(g *group) *group {
	g.summary() // here, where all cores are in use
	if p.residents.Full() && !g.busy() {
		p.residents.CountEvicted(1)
		return g.stub()
	}
	g.resident = p.residents.Enter(g.Key, g.weight())
	return g
}

// put registers a group under its number.
func (p *Policy) put(g *group) {
	i, _ := slices.BinarySearchFunc(p.groups, g.Number, func(other *group, n int) int { return cmp.Compare(other.Number, n) })
	p.groups[i], p.byKey[g.Key], p.recent = g, g, nil
}

// Absent returns the names of the checkpoint's parts that a group must be restored from; none if it is not evicted.
func (p *Policy) Absent(key ingest.Group) []string {
	if g := p.find(key); g != nil && g.away != nil {
		parts := []string{g.part() + runningPart, g.part() + frozenPart}
		if g.away.gates {
			parts = append(parts, g.part()+gatesPart)
		}
		return parts
	}
	return nil
}

// Knows reports whether the bank has a group, evicted or not.
func (p *Policy) Knows(key ingest.Group) bool { return p.find(key) != nil }

// part returns the prefix of the names of the group's parts.
func (g *group) part() string { return groupPrefix + strconv.Itoa(g.Number) }

// Return restores an evicted group from the parts named by Absent. After an error, the group stays evicted.
func (p *Policy) Return(key ingest.Group, parts ingest.Parts) error {
	kept := p.byKey[key]
	g, err := p.resumeGroup(kept.part(), parts, kept.arrived)
	if err == nil && (g == nil || g.Key != key || g.Seen != kept.shown.Units) {
		err = stream.ErrPartsDoNotMatch
	}
	if err != nil {
		return fmt.Errorf("read group %s: %w", key, err)
	}
	p.limit.Add(-g.streamCount()) // they have been counted all along
	g.came, g.used = kept.came, kept.used
	if g.shown = kept.shown; kept.changed {
		g.changed, g.saved = true, nil
	}
	g.resident = p.residents.Enter(key, g.weight())
	p.residents.CountEvicted(-1)
	p.put(g)
	p.offer(g)
	return nil
}

// streamCount returns the number of streams of the group that count towards the limit of streams.
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

// weight returns the memory of the group in bytes; for an evicted group, as if it had an accepted baseline.
func (g *group) weight() int64 {
	perByte := memoryPerByte
	if g.away == nil && (!g.Warmup.Done || g.Line.Versions.Next != nil) {
		perByte = memoryPerWarmByte
	}
	return memoryOfGroup + int64(perByte*float64(g.runningBytes+g.frozenBytes))
}

// Weight returns the memory that an evicted or unknown group will need, in bytes.
func (p *Policy) Weight(key ingest.Group) int64 {
	if g := p.byKey[key]; g != nil {
		return g.weight()
	}
	return unsavedWeight
}

// silentAt returns when the group will have been silent for too long; zero if that is not a fault or has been reported.
func (g *group) silentAt() time.Time {
	if g.Baseline.ID == "" || g.arrived.IsZero() || g.Unjudged != "" {
		return time.Time{}
	}
	return g.arrived.Add(g.Warmup.LongestSilence())
}

// Silent returns the evicted groups that have become silent. Tick reports them after they are restored.
func (p *Policy) Silent(now time.Time) []ingest.Group {
	return p.evictedWhere(func(g *group) bool { return !g.away.silentAt.IsZero() && !now.Before(g.away.silentAt) })
}

// Missing returns the evicted groups that must be restored before Changes, since their saved state is not reliable.
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
