package words

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/progress"
)

// Progress describes the course of the return of a policy that learns, or returns "" if it is unknown.
func Progress(p *progress.Progress, unit finding.UnitName) string {
	if p == nil {
		return ""
	}
	of := fmt.Sprintf("the return changed by %s (99%% confidence interval: %s to %s) over the last %s %s", Short(p.Change), Short(p.Low),
		Short(p.High), Grouped(p.Units), unit.Many())
	if p.State == progress.Collapsed {
		of = fmt.Sprintf("mean return %s, best %s; %s", Short(p.Level), Short(p.Best), of)
	}
	return fmt.Sprintf("%s; %s", p.State, of)
}
