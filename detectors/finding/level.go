package finding

import (
	"fmt"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Level returns the values of a signal in the accepted baseline of a group. If group is nil, it uses the only group.
func (s *Summary) Level(group *ingest.Group, signal string) (Distribution, error) {
	if group == nil && len(s.Groups) > 1 {
		return Distribution{}, fmt.Errorf("policy %q has %d groups with separate baselines: request the retraining for an incident of one of them",
			s.Policy, len(s.Groups))
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if group != nil && g.Group != *group {
			continue
		}
		if g.Baseline.ID == "" || g.Baseline.Provisional {
			return Distribution{}, fmt.Errorf("%s has no accepted baseline yet", g.Group)
		}
		at := slices.IndexFunc(g.Streams, func(s StreamSummary) bool { return s.Signal == signal })
		if at < 0 || g.Streams[at].Baseline.Units == 0 {
			return Distribution{}, fmt.Errorf("the baseline of %s has no %s", g.Group, signal)
		}
		return g.Streams[at].Baseline, nil
	}
	return Distribution{}, fmt.Errorf("policy %q has no baseline yet", s.Policy)
}
