package bank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A rising return or reward is an improvement, at the first finding and later. A falling one, one that only spreads,
// and one with another direction are not.
func TestSimImprovements(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	wider := func(c *courses) {
		c.edit = func(u *ingest.Unit) {
			u.Return, u.Reward.Mean = u.Return+2*(u.Return-480), u.Reward.Mean+2*(u.Reward.Mean-5)
		}
	}
	for name, c := range map[string]struct {
		directions watch.Directions
		change     func(*courses)
		want       bool
	}{
		"up":                 {nil, func(c *courses) { c.shift = .5 }, true},
		"down":               {nil, func(c *courses) { c.shift = -.5 }, false},
		"wider":              {nil, wider, false},
		"up, down is better": {watch.Directions{"re*": watch.DirectionDown}, func(c *courses) { c.shift = .5 }, false},
		"down is better":     {watch.Directions{"re*": watch.DirectionDown}, func(c *courses) { c.shift = -.5 }, true},
		"neither is better":  {watch.Directions{"re*": watch.DirectionNone}, func(c *courses) { c.shift = .5 }, false},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				courses := newCourses(900 + seed)
				p := courses.frozen(500, 20_000, stream.ProvingUnits)
				p.groups[0].cfg.Direction = c.directions
				c.change(courses)
				judged := 0
				for _, f := range courses.feed(p, 150) {
					if (f.Signal == "return" || f.Signal == "reward") && f.To == finding.Drift {
						judged++
						if f.Improvement != c.want {
							t.Errorf("at unit %d %s by %s: improvement %t", f.At.Ordinal, f.Signal, f.Effect.Words(finding.UnitName{}), f.Improvement)
						}
					}
				}
				if judged < 2 {
					t.Errorf("%d findings", judged)
				}
			})
		}
	}
}

// If the reward rises but the outcome that it represents does not, the outcome alarms, which is not an improvement.
func TestSimHackedRewardIsNoImprovement(t *testing.T) {
	for seed := range uint64(2) {
		c := newCourses(950 + seed)
		p := c.frozen(500, 20_000, stream.ProvingUnits)
		p.groups[0].cfg.Direction = watch.Directions{"outcome.*": watch.DirectionUp}
		c.edit = func(u *ingest.Unit) { u.Reward.Mean += .5 }
		worse := slices.ContainsFunc(c.feed(p, 100), func(f finding.Finding) bool {
			return f.Signal == "outcome.sales" && f.To == finding.Drift && !f.Improvement
		})
		if !worse {
			t.Errorf("seed %d: no alarm of the outcome that is none for the better", seed)
		}
	}
}
