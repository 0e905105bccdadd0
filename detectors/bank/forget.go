package bank

import (
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Forget removes groups and their baselines, and frees their part of the limit of streams. A later unit of a removed
// group starts a new group. Call it only while no calibration is running.
func (p *Policy) Forget(groups []ingest.Group) {
	p.groups = slices.DeleteFunc(p.groups, func(g *group) bool {
		if !slices.Contains(groups, g.Key) {
			return false
		}
		p.release(g)
		delete(p.byKey, g.Key)
		p.recent = nil
		p.withhold(g.Key)
		p.gone = append(p.gone, g.part()+runningPart, g.part()+frozenPart, g.part()+gatesPart)
		p.changed = true
		return true
	})
}

// release frees a group's part of the resources that all banks share.
func (p *Policy) release(g *group) {
	p.limit.Add(-g.streamCount())
	if g.away != nil {
		p.residents.CountEvicted(-1)
	} else {
		p.residents.Leave(g.resident)
	}
}

// Unused returns the groups that have had no unit for the given time, which differs for groups with and without a
// baseline. It omits groups that users look at. If the last unit arrived before a restart, its time is that of its
// events or, if they have none, the saved hour.
func (p *Policy) Unused(now time.Time, withBaseline, without time.Duration) (out []ingest.Group) {
	if p.Calibrating() || p.pending.Len() > 0 {
		return nil
	}
	for _, g := range p.groups {
		longest := without
		if g.summary().Baseline.ID != "" {
			longest = withBaseline
		}
		if now.Sub(g.lastUsed()) >= longest && (g.away != nil || !g.busy()) {
			out = append(out, g.Key)
		}
	}
	return out
}

// lastUsed returns the time at which the last unit of the group arrived, as far as it is known.
func (g *group) lastUsed() time.Time {
	if g.came {
		return g.arrived
	}
	last := g.used
	if !g.clockless() {
		s := g.summary()
		if last = time.Unix(0, s.LastUnitTS); s.FrozenAt.After(last) { // the telemetry was already old when it was read
			last = s.FrozenAt
		}
	}
	if last.IsZero() || last.After(g.arrived) {
		return g.arrived
	}
	return last
}

// clockless reports whether no unit of the group has had a time.
func (g *group) clockless() bool {
	if g.away != nil {
		return g.shown.LastUnitTS == 0
	}
	return g.LastTS == 0
}

// lastUses returns, by group number, the hour in which groups without a clock were last used, in hours since 1970.
// Because of the coarse unit, it rarely needs to be saved.
func (p *Policy) lastUses() map[int]int64 {
	uses := map[int]int64{}
	for _, g := range p.groups {
		if !g.clockless() {
			continue
		}
		if used := g.lastUsed(); !used.IsZero() {
			uses[g.Number] = (used.Unix() - 1) / 3600 // the restored time is the end of the hour
		}
	}
	return uses
}
