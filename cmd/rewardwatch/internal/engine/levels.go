package engine

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// BaselineLevel implements recipe.Levels with the accepted baselines.
func (p *Pipeline) BaselineLevel(policy string, group *ingest.Group, signal string) (finding.Distribution, error) {
	for _, s := range p.Summaries() {
		if s.Policy == policy {
			return levelIn(s, group, signal)
		}
	}
	return finding.Distribution{}, fmt.Errorf("policy %q has no baseline on this instance: none of its telemetry has been judged here", policy)
}

// levelIn looks up a signal in the baseline of a group. If group is nil, it uses the only group.
func levelIn(s *finding.Summary, group *ingest.Group, signal string) (finding.Distribution, error) {
	if group == nil && len(s.Groups) > 1 {
		return finding.Distribution{}, fmt.Errorf("policy %q has %d groups with separate baselines: request the retraining for an incident of one of them",
			s.Policy, len(s.Groups))
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if group != nil && g.Group != *group {
			continue
		}
		if g.Baseline.ID == "" || g.Baseline.Provisional {
			return finding.Distribution{}, fmt.Errorf("%s has no accepted baseline yet", g.Group)
		}
		at := slices.IndexFunc(g.Streams, func(s finding.StreamSummary) bool { return s.Signal == signal })
		if at < 0 || g.Streams[at].Baseline.Units == 0 {
			return finding.Distribution{}, fmt.Errorf("the baseline of %s has no %s", g.Group, signal)
		}
		return g.Streams[at].Baseline, nil
	}
	return finding.Distribution{}, fmt.Errorf("policy %q has no baseline yet", s.Policy)
}
