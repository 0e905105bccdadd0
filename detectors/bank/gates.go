package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors/gate"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// try compares a unit of another version, or a shadow unit, with the accepted baseline.
func (g *group) try(u *ingest.Unit) {
	if u.Versions.Policy == "" || g.Baseline.ID == "" || g.Baseline.Provisional {
		return
	}
	g.gates.Try(u, gate.Standard{Baseline: g.Baseline.ID, Production: g.production(), Tests: &g.Battery, Config: g.cfg, OffPolicy: g.OffPolicy})
}

// production returns the policy_version of the baseline, which is that of its last unit.
func (g *group) production() string {
	if version, known := g.gates.ProductionOf(g.Baseline.ID); known {
		return version
	}
	if g.Line.Versions.Known {
		return g.Line.Versions.Version
	}
	return g.Versions.Policy.Value
}

// hasGates reports whether the checkpoint has a part for the gates. Once it has one, it keeps it.
func (g *group) hasGates() bool { return g.gatesSaved || !g.gates.Empty() }
