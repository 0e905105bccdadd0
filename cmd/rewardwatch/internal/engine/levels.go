package engine

import (
	"fmt"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// BaselineLevel implements recipe.Levels with the accepted baselines.
func (p *Pipeline) BaselineLevel(policy string, group *ingest.Group, signal string) (finding.Distribution, error) {
	for _, s := range p.Summaries() {
		if s.Policy == policy {
			return s.Level(group, signal)
		}
	}
	return finding.Distribution{}, fmt.Errorf("policy %q has no baseline on this instance: its telemetry has not been judged here", policy)
}
