//go:build e2e

package e2e

import (
	"math"
	"sync"
	"time"
)

// lateUnits is the metric of units that were judged out of order since the process was started.
const lateUnits = "rewardwatch_units_late_total"

// life is a process of the service from its start to its end. It is scraped repeatedly, since its counters are lost
// when it is killed.
type life struct {
	service *service
	over    chan struct{}
	looking sync.WaitGroup

	mu   sync.Mutex
	late float64
}

func (s *service) watch() *life {
	l := &life{service: s, over: make(chan struct{})}
	l.looking.Go(func() {
		pulse := time.NewTicker(time.Second)
		defer pulse.Stop()
		for {
			select {
			case <-l.over:
				return
			case <-pulse.C:
				l.look()
			}
		}
	})
	return l
}

// look records what the process shows, if it responds.
func (l *life) look() {
	if late, err := l.service.largest(lateUnits, nil); err == nil {
		l.mu.Lock()
		l.late = math.Max(l.late, late)
		l.mu.Unlock()
	}
}

// end returns what was recorded last.
func (l *life) end() (late float64) {
	close(l.over)
	l.looking.Wait()
	return l.seen()
}

func (l *life) seen() (late float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.late
}
