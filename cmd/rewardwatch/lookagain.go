package main

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// lookAgain remembers which open incidents have not lasted yet for as long as their trigger wants, by their group, which has one at
// most. It need not be saved: what a desk holds is looked at when it is restored.
type lookAgain struct {
	mu    sync.Mutex
	times map[ingest.Group]time.Time // by the clock of the group's telemetry, or of the world where that has none
}

// at has an incident looked at again once its time has come; the zero time takes it out.
func (l *lookAgain) at(g ingest.Group, when time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if when.IsZero() {
		delete(l.times, g)
		return
	}
	if l.times == nil {
		l.times = map[ingest.Group]time.Time{}
	}
	l.times[g] = when
}

// due reports whether the incident of a group is to be looked at again. clock gives the time of the group's telemetry, zero where that has
// no clock.
func (l *lookAgain) due(g ingest.Group, clock func() time.Time) bool {
	l.mu.Lock()
	when, waits := l.times[g]
	l.mu.Unlock()
	if !waits {
		return false
	}
	now := clock()
	if now.IsZero() {
		now = time.Now()
	}
	return !now.Before(when)
}

// forget takes out what others judge from now on.
func (l *lookAgain) forget(policies []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.times, func(g ingest.Group, _ time.Time) bool { return slices.Contains(policies, g.Policy) })
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
