package engine

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Clock returns the time of the newest published unit of a group, or zero if its telemetry has no clock.
func (d *Worker) Clock(g ingest.Group) time.Time {
	for _, s := range d.Policy.Summary().Groups {
		if s.Group == g && s.LastUnitTS != 0 {
			return time.Unix(0, s.LastUnitTS)
		}
	}
	return time.Time{}
}

// Clock returns the time of the newest published unit of a group of any policy, or zero if its telemetry has no
// clock.
func (p *Pipeline) Clock(g ingest.Group) time.Time {
	for _, set := range p.Present() {
		set.mu.Lock()
		r := set.byPolicy[g.Policy]
		set.mu.Unlock()
		if r != nil {
			return r.Clock(g)
		}
	}
	return time.Time{}
}
