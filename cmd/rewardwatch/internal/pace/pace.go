// Package pace spaces the saves and publications of policies: they are rare if they take a long time, and soon follow
// one that has failed.
package pace

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Saves take at most one savesShare-th of the cores, but there is at least one every Longest, which bounds the units
// that a restart judges again. Publications take at most one showsShare-th, but the published state is never older than
// longestShown.
const (
	savesShare   = 40
	Longest      = 2 * time.Minute
	showsShare   = 50
	longestShown = 30 * time.Second
)

// Pace adapts the interval between the turns of a policy to the time that the turns of all policies take. The cost of a
// turn depends on the number of groups that have judged a unit since the last one. At a fixed interval, a large fleet
// could spend most of its time on turns. Pace is safe for concurrent use.
type Pace struct {
	share   int // turns take at most one share-th of the cores
	longest time.Duration
	total   atomic.Int64 // total duration of the last turn of each policy, in nanoseconds
}

// OfSaves returns the pace for saves.
func OfSaves() *Pace { return &Pace{share: savesShare, longest: Longest} }

// OfShows returns the pace for publishing the state of policies.
func OfShows() *Pace { return &Pace{share: showsShare, longest: longestShown} }

// Total returns the total duration of the last turns of all policies.
func (p *Pace) Total() time.Duration { return time.Duration(p.total.Load()) }

// Turns are the turns of one policy. One goroutine owns them.
type Turns struct {
	of       *Pace
	last     time.Duration // duration of the last turn
	failures int           // in a row
}

// Policy returns the turns of another policy, which has not had any yet.
func (p *Pace) Policy() Turns { return Turns{of: p} }

// Last returns the duration of the last turn.
func (s *Turns) Last() time.Duration { return s.last }

// Ended records a turn that began at begun, and whether it failed.
func (s *Turns) Ended(begun time.Time, err error) {
	s.took(time.Since(begun))
	if s.failures++; err == nil {
		s.failures = 0
	}
}

// Gone removes a policy that is no longer judged from the total.
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

// afterFailures returns the interval after a number of failures in a row: every after the first, doubled for each
// further failure, and at most the usual interval. Otherwise, a disk that was full for a moment could leave a large
// fleet unsaved for twice as long.
func afterFailures(every, usual time.Duration, failures int) time.Duration {
	if failures == 0 {
		return usual
	}
	for ; failures > 1 && every < usual; failures-- {
		every *= 2
	}
	return min(every, usual)
}
