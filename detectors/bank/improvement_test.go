package bank

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
)

// An alarm of an improvement turns into one of a deterioration if a later version is worse.
func TestImprovementIsMeasuredAcrossVersions(t *testing.T) {
	cfg := episodes(20_000)
	cfg.Direction = watch.Directions{"reward": watch.DirectionUp}
	p, a := newBank(cfg), newAgent(354)
	a.feed(p, 700)
	a.mean += .5
	better := a.feed(p, 150)
	a.mean, a.versions.Policy = -3, "p2"
	worse := a.feed(p, 300)
	is := func(found []finding.Finding) (improvement, told bool) {
		for _, f := range found {
			if f.Signal == "reward" && f.To == finding.Drift {
				improvement, told = f.Improvement, true
			}
		}
		return improvement, told
	}
	if improvement, told := is(better); !told || !improvement {
		t.Fatalf("alarm %t, improvement %t", told, improvement)
	}
	if improvement, told := is(worse); !told || improvement {
		t.Errorf("after the worse version: update %t, improvement %t", told, improvement)
	}
}
