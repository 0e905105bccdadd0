package bank

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/blocks"
	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Join adds a decision to the unfinished block of its group, as Observe does with its unit, in a fraction of the time. If
// more follows from the decision, Join returns false and changes nothing. It does not call the function set by Applying.
func (p *Policy) Join(d *ingest.Decision, now time.Time) bool {
	g := p.find(d.Shape.Group)
	if g == nil || g.hold != nil || g.away != nil || p.blocked || p.pauses() || p.pending.Len() > 0 || p.adjusting != nil {
		return false
	}
	if p.applied.Has(d.Place()) || !blocks.Alike(g.joined, d.Shape) && !g.onlyJoins(d.Shape) || !g.Blocks.Join(d) {
		return false
	}
	p.applied.Apply(d.Place())
	p.received++
	p.judged, p.changed = p.received, true
	p.residents.Use(g.resident)
	g.touch()
	g.joined = d.Shape
	g.hear(now)
	return true
}

// onlyJoins reports whether decisions of a shape, and of those Alike, change nothing but the group's unfinished blocks.
func (g *group) onlyJoins(s *ingest.DecisionShape) bool {
	if !g.Blocks.Decisions || s.Shadow || s.End == ingest.EndOpen || g.Unjudged == fault.Silent || g.cfg.EachUnitCounts() {
		return false
	}
	if due, _ := g.due(); due || g.lateDue() != nil { // each unit tries to start the calibration
		return false
	}
	if s.Versions.Policy == "" || g.Baseline.ID == "" || g.Baseline.Provisional {
		return true
	}
	production, known := g.gates.ProductionOf(g.Baseline.ID)
	return known && production == s.Versions.Policy
}
