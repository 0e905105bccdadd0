package app

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// heldEvery is the interval at which the service reconsiders an incident that waits only because of the ledger.
const heldEvery = time.Minute

// lookAgain remembers which incidents to reconsider even if they do not change: open incidents by group, each of which
// has at most one, and incidents, open or closed, that arrived while the ledger was suspended. It need not be saved,
// since restoring a worker reconsiders its incidents.
type lookAgain struct {
	mu    sync.Mutex
	times map[ingest.Group]lookAt
	owed  map[string]map[string]bool // incident ids, by policy
	backs map[string]int             // by policy, how often the ledger had come back when its incidents were last reconsidered for that reason
}

// lookAt is a time by the clock of the group's telemetry. It is wall-clock time if byWorld is set or the telemetry
// has no clock.
type lookAt struct {
	when    time.Time
	byWorld bool
}

// after schedules the next look at a group's incident if the decision asks for one, and cancels it otherwise.
func (l *lookAgain) after(g ingest.Group, d ledger.Decision) {
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

// owe marks an incident to be considered once the ledger is available again.
func (l *lookAgain) owe(policy, incident string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed == nil {
		l.owed = map[string]map[string]bool{}
	}
	if l.owed[policy] == nil {
		l.owed[policy] = map[string]bool{}
	}
	l.owed[policy][incident] = true
}

// back reports whether the ledger has come back since the last call for the policy, and returns the incidents that
// are owed. If it has, all open incidents are reconsidered as well, since the ledger may have been restored from an
// older copy.
func (l *lookAgain) back(policy string, times int) (again bool, owed map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backs[policy] == times {
		return false, nil
	}
	if l.backs == nil {
		l.backs = map[string]int{}
	}
	l.backs[policy], owed = times, l.owed[policy]
	delete(l.owed, policy)
	return true, owed
}

// due reports whether to reconsider the incident of a group. clock returns the time of the group's telemetry, zero if
// it has no clock.
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

// forget drops the policies that other instances judge from now on.
func (l *lookAgain) forget(policies []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.times, func(g ingest.Group, _ lookAt) bool { return slices.Contains(policies, g.Policy) })
	for _, policy := range policies {
		delete(l.owed, policy)
		delete(l.backs, policy)
	}
}
