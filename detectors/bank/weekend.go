package bank

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/baseline"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/season"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// tryWeekend puts the incident that an alert opens on trial until the weekend is over, if the accepted baseline lacks a
// weekend and the change may have begun on one. The fresh units of the trial are those of working days.
func (g *group) tryWeekend(a *stream.Alert, at finding.UnitRef) {
	if !g.Warmup.Done || !slices.Contains(g.Promise.Caveats, baseline.CaveatWeekend) {
		return
	}
	if _, end := baseline.WeekendBounds(a.To.TS, season.Zone(g.cfg.Zone)); end != 0 {
		g.Probation = probation{On: true, Since: at.Ordinal, Round: end, Weekend: true}
	}
}
