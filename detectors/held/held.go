// Package held stores the units of a group that are waiting for the calibration of a baseline, and runs the
// calibration.
package held

import (
	"sync/atomic"

	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest/packed"
)

// Freeze creates a baseline of collected units, and returns the findings. It runs outside the goroutine that owns
// the bank.
type Freeze func() []finding.Finding

// Calibration is a freeze that is due, runs, or has ended, with the units that wait for it. It belongs to the
// goroutine that owns the bank.
type Calibration struct {
	At      int64 // number of the unit at which the freeze is due
	Waiting packed.Queue

	units int
	begin func() Freeze // nil if no freeze is due
	turn  *budget.Turn  // nil if no freeze has begun, or its result has been taken
	done  chan struct{} // closed when the freeze has ended
	found []finding.Finding
}

// Due sets a freeze of the given number of units that is due at unit number at. begin is called when the freeze may
// begin; it divides up what the groups of the policy have in common.
func (c *Calibration) Due(at int64, units int, begin func() Freeze) {
	c.At, c.units, c.begin = at, units, begin
}

// IsDue reports whether a freeze is due and has not begun.
func (c *Calibration) IsDue() bool { return c.begin != nil }

// Runs reports whether a freeze has begun and its result has not been taken.
func (c *Calibration) Runs() bool { return c.turn != nil }

// Signal reports that calibrations have ended. The zero value must not be used.
type Signal struct {
	over  atomic.Int64
	taken int64 // value of over at the last call of Any
	wake  chan struct{}
}

// NewSignal returns a Signal without calibrations.
func NewSignal() *Signal { return &Signal{wake: make(chan struct{}, 1)} }

// Wake returns a channel that receives a value when a calibration has ended.
func (s *Signal) Wake() <-chan struct{} { return s.wake }

// Any reports whether calibrations have ended since the last call. Only the goroutine that owns the bank may call
// it.
func (s *Signal) Any() bool {
	before := s.taken
	s.taken = s.over.Load()
	return s.taken != before
}

func (s *Signal) send() {
	s.over.Add(1)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Begin begins the freeze that is due, once it gets a core, and signals when it has ended.
func (c *Calibration) Begin(of *budget.Calibrations, owner any, signal *Signal) {
	freeze := c.begin()
	c.begin, c.turn, c.done = nil, of.Enter(owner, c.units), make(chan struct{})
	go func(turn *budget.Turn, done chan struct{}) {
		if turn.Wait() {
			c.found = freeze()
			turn.Leave()
		}
		close(done)
		signal.send()
	}(c.turn, c.done)
}

// Hurry prefers the running freeze to others. It returns a channel that is closed when the freeze has ended.
func (c *Calibration) Hurry() (over <-chan struct{}) {
	c.turn.Hurry()
	return c.done
}

// Take returns the result of a freeze; ok is false if none has ended.
func (c *Calibration) Take() (found []finding.Finding, ok bool) {
	if c.turn == nil {
		return nil, false
	}
	select {
	case <-c.done:
	default:
		return nil, false
	}
	found, c.turn, c.found = c.found, nil, nil
	return found, true
}

// GiveUp waits for a freeze that has a core, and cancels one that waits for a core.
func (c *Calibration) GiveUp() {
	if c.turn != nil {
		c.turn.GiveUp()
		<-c.done
	}
}

// Count counts the units in the queues of a bank.
type Count struct {
	Units int
	Bytes int64
	ends  []int64
}

// Add adds a unit to a queue.
func (c *Count) Add(to *packed.Queue, u packed.Unit) {
	before := to.Bytes()
	to.Add(u.Unit, u.Number, u.Now)
	c.Units, c.Bytes = c.Units+1, c.Bytes+to.Bytes()-before
}

// Next removes the oldest unit from a queue.
func (c *Count) Next(of *packed.Queue) packed.Unit {
	before := of.Bytes()
	u := of.Next()
	c.Units, c.Bytes = c.Units-1, c.Bytes+of.Bytes()-before
	return u
}

// Judged records that a unit that waited has been judged.
func (c *Count) Judged(u packed.Unit) { c.ends = append(c.ends, u.EndTS) }

// JudgedLate returns the ends of the units that Judged recorded since the last call, in Unix nanoseconds, 0 without
// a clock.
func (c *Count) JudgedLate() []int64 {
	ends := c.ends
	c.ends = nil
	return ends
}
