// Package pace spaces the saves and publications of policies: rarely where they take a long time, and soon after one
// that failed.
package pace

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Saves take at most a savesShare-th of the cores, but there is at least one in Longest, which bounds what a restart
// judges again. Publications take at most a showsShare-th, but what is shown is never older than longestShown.
const (
	savesShare   = 40
	Longest      = 2 * time.Minute
	showsShare   = 50
	longestShown = 30 * time.Second
)

// Pace adapts the interval between the turns of a policy to what the turns of all policies take. A turn costs by the
// groups that have judged a unit since the last one, so a large fleet that had its turns at a fixed interval could spend
// most of its time on them. It is safe for concurrent use.
type Pace struct {
	share   int // turns take at most one part of so many of the cores
	longest time.Duration
	total   atomic.Int64 // nanoseconds of the last turn of each policy, together
}

// OfSaves returns the pace of saves.
func OfSaves() *Pace { return &Pace{share: savesShare, longest: Longest} }

// OfShows returns the pace at which the state of policies is published.
func OfShows() *Pace { return &Pace{share: showsShare, longest: longestShown} }

// Total returns the durations of the last turns of all policies, together.
func (p *Pace) Total() time.Duration { return time.Duration(p.total.Load()) }

// Turns are those of one policy. One goroutine owns them.
type Turns struct {
	of       *Pace
	last     time.Duration // what the last turn took
	failures int           // in a row
}

// Policy returns the turns of another policy, which has had none yet.
func (p *Pace) Policy() Turns { return Turns{of: p} }

// Last returns how long the last turn took.
func (s *Turns) Last() time.Duration { return s.last }

// Ended notes a turn that has begun then, and whether it failed.
func (s *Turns) Ended(begun time.Time, err error) {
	s.took(time.Since(begun))
	if s.failures++; err == nil {
		s.failures = 0
	}
}

// Gone removes a policy that is judged no more from the total.
func (s *Turns) Gone() { s.took(0) }

func (s *Turns) took(now time.Duration) {
	s.of.total.Add(int64(now - s.last))
	s.last = now
}

// After returns the interval to the next turn: every, or more if turns take a long time.
func (s *Turns) After(every time.Duration) time.Duration {
	return afterFailures(every, s.of.paced(every, s.of.Total(), runtime.GOMAXPROCS(0)), s.failures)
}

func (p *Pace) paced(every, total time.Duration, cores int) time.Duration {
	return max(every, min(total*time.Duration(p.share)/time.Duration(cores), p.longest))
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
