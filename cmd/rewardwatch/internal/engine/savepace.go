package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

// How often policies are saved where saves take long: so seldom that they take at most a savesShare-th of the cores,
// but at least once in longestUnsaved, which bounds what a restart judges again.
const (
	savesShare     = 10
	longestUnsaved = 2 * time.Minute
)

// savePace adapts the interval between the saves of a policy to what the saves of all policies take. A save writes the
// whole state of each group that has judged a unit since the last one, so a large fleet that was saved at a fixed
// interval could spend most of its time on saves. It is safe for concurrent use.
type savePace struct {
	total atomic.Int64 // nanoseconds of the last save of each policy, together
}

// took replaces the duration of a policy's last save.
func (p *savePace) took(before, now time.Duration) { p.total.Add(int64(now - before)) }

// ended notes how long a save of a policy took that has begun then; last is the duration of the one before.
func (p *savePace) ended(last *time.Duration, begun time.Time) {
	took := time.Since(begun)
	p.took(*last, took)
	*last = took
}

// after returns the interval between two saves of a policy: every, or more if saves take long.
func (p *savePace) after(every time.Duration) time.Duration {
	return pacedSave(every, time.Duration(p.total.Load()), runtime.GOMAXPROCS(0))
}

func pacedSave(every, total time.Duration, cores int) time.Duration {
	return max(every, min(total*savesShare/time.Duration(cores), longestUnsaved))
}
