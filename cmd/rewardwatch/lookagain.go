package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// heldEvery is how often an incident is looked at again that the ledger alone holds back.
const heldEvery = time.Minute

// lookAgain remembers which open incidents are to be looked at again though nothing of them changes, by their group, which has one at
// most. It need not be saved: what a desk holds is looked at when it is restored.
type lookAgain struct {
	mu    sync.Mutex
	times map[ingest.Group]lookAt
}

// lookAt is a time by the clock of the group's telemetry, or of the world where that has none, or where byWorld is set.
type lookAt struct {
	when    time.Time
	byWorld bool
}

// after has an incident looked at again where what was decided of it says so, and takes it out else.
func (l *lookAgain) after(g ingest.Group, d retrain.Decision) {
	at := lookAt{when: d.Again}
	if d.Held() {
		at = lookAt{when: time.Now().Add(heldEvery), byWorld: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.when.IsZero() {
		delete(l.times, g)
		return
	}
	if l.times == nil {
		l.times = map[ingest.Group]lookAt{}
	}
	l.times[g] = at
}

// due reports whether the incident of a group is to be looked at again. clock gives the time of the group's telemetry, zero where that has
// no clock.
func (l *lookAgain) due(g ingest.Group, clock func() time.Time) bool {
	l.mu.Lock()
	at, waits := l.times[g]
	l.mu.Unlock()
	if !waits {
		return false
	}
	now := time.Now()
	if !at.byWorld {
		if of := clock(); !of.IsZero() {
			now = of
		}
	}
	return !now.Before(at.when)
}

// forget takes out what others judge from now on.
func (l *lookAgain) forget(policies []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.times, func(g ingest.Group, _ lookAt) bool { return slices.Contains(policies, g.Policy) })
}

// clock gives the time of the newest unit of a group that is shown; zero where its telemetry has no clock.
func (d *desk) clock(g ingest.Group) time.Time {
	for _, s := range d.policy.Summary().Groups {
		if s.Group == g && s.LastUnitTS != 0 {
			return time.Unix(0, s.LastUnitTS)
		}
	}
	return time.Time{}
}

// clock gives the same of a group of any policy.
func (p *pipeline) clock(g ingest.Group) time.Time {
	for _, set := range p.present() {
		set.mu.Lock()
		r := set.byPolicy[g.Policy]
		set.mu.Unlock()
		if r != nil {
			return r.clock(g)
		}
	}
	return time.Time{}
}
