// Package pace spaces the saves of policies: seldom where they take long, and soon after one that failed.
package pace

import (
	"runtime"
	"sync/atomic"
	"time"
)

// How often policies are saved where saves take long: so seldom that they take at most a savesShare-th of the cores,
// but at least once in Longest, which bounds what a restart judges again.
const (
	savesShare = 40
	Longest    = 2 * time.Minute
)

// Pace adapts the interval between the saves of a policy to what the saves of all policies take. A save writes the
// whole state of each group that has judged a unit since the last one, so a large fleet that was saved at a fixed
// interval could spend most of its time on saves. It is safe for concurrent use.
type Pace struct {
	total atomic.Int64 // nanoseconds of the last save of each policy, together
}

// Total returns the durations of the last saves of all policies, together.
func (p *Pace) Total() time.Duration { return time.Duration(p.total.Load()) }

// Saves are those of one policy. One goroutine owns them.
type Saves struct {
	of       *Pace
	last     time.Duration // what the last save took
	failures int           // in a row
}

// Policy returns the saves of another policy, which has had none yet.
func (p *Pace) Policy() Saves { return Saves{of: p} }

// Last returns how long the last save took.
func (s *Saves) Last() time.Duration { return s.last }

// Ended notes a save that has begun then, and whether it failed.
func (s *Saves) Ended(begun time.Time, err error) {
	s.took(time.Since(begun))
	if s.failures++; err == nil {
		s.failures = 0
	}
}

// Gone removes a policy that is judged no more from the total.
func (s *Saves) Gone() { s.took(0) }

func (s *Saves) took(now time.Duration) {
	s.of.total.Add(int64(now - s.last))
	s.last = now
}

// After returns the interval to the next save: every, or more if saves take long.
func (s *Saves) After(every time.Duration) time.Duration {
	return afterFailures(every, paced(every, s.of.Total(), runtime.GOMAXPROCS(0)), s.failures)
}

func paced(every, total time.Duration, cores int) time.Duration {
	return max(every, min(total*savesShare/time.Duration(cores), Longest))
}

// afterFailures returns the interval after so many failures in a row: every after the first, twice as long after each
// further one, and at most the usual one. A disk that was full for a moment would otherwise leave a large fleet unsaved
// for twice as long.
func afterFailures(every, usual time.Duration, failures int) time.Duration {
	if failures == 0 {
		return usual
	}
	for ; failures > 1 && every < usual; failures-- {
		every *= 2
	}
	return min(every, usual)
}
