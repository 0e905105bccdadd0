package main

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How units of a policy that lies in several partitions wait for each other: watermarkDelay for those of partitions that
// have been read to their ends, markPatience for a partition from which nothing is heard while others are, and
// clockTolerance is how far ahead of the present a time may be and still be believed.
const (
	watermarkDelay = 2 * time.Second
	markPatience   = 30 * time.Second
	clockTolerance = time.Minute
)

// moment is a place in the order of units: an event time in Unix nanoseconds, and among units of one time ingest.Unit.Run.
type moment struct {
	TS, Run int64
}

func (m moment) compare(o moment) int {
	return cmp.Or(cmp.Compare(m.TS, o.TS), cmp.Compare(m.Run, o.Run))
}

func (m moment) before(o moment) bool { return m.compare(o) < 0 }

// endOfTime is after everything.
var endOfTime = moment{TS: math.MaxInt64}

func earlier(a, b moment) moment {
	if b.before(a) {
		return b
	}
	return a
}

func later(a, b moment) moment {
	if a.before(b) {
		return b
	}
	return a
}

// runLength is how many records of one event time share a moment: among their units agent and episode decide. Those of a
// topic that stands still in time, as one whose records all have the same ts, get on by so many records at a time.
const runLength = 1000

// eventClock is how far a partition has been read in event time: the largest time read that can be believed, and how
// many records since it came to be that.
type eventClock struct {
	TS, Records int64
	Before      moment // of the last unit that could end at the largest time before
}

// read takes in the time of a record, 0 where it has none, and reports whether it can be believed.
func (c *eventClock) read(ts, believed int64) bool {
	if ts > c.TS && ts <= believed {
		c.Before = c.now()
		c.TS, c.Records = ts, 0
		return true
	}
	c.Records++
	return ts != 0 && ts <= believed
}

// now is the moment up to which, and without it, all units of the partition are known.
func (c *eventClock) now() moment { return moment{c.TS, c.Records / runLength} }

// run gives ingest.Unit.Run of a unit that is known now. It depends on nothing but the records of the partition.
func (c *eventClock) run(endTS int64) int64 {
	switch endTS {
	case c.TS:
		return c.now().Run
	case c.Before.TS: // as of an episode that ends with the step after its last
		return c.Before.Run
	}
	return 0
}

// watermarks says how far each partition of the telemetry topic has been read, in event time. It is shared by all
// goroutines.
type watermarks struct {
	mu    sync.Mutex
	marks map[int32]*watermark
	// heard is for how long partitions have been heard of, at most a pulse at a time: it stands still while nothing can
	// be read, be it that the brokers are away or that the process is stopped, or what came first after it would not
	// wait for the rest.
	heard time.Duration
	last  time.Time // something was heard
	// over says that the generation ends: no more units are handed on, and the mark stays where it was, or units of one
	// partition would overtake those of another that are left to the next generation.
	over   chan struct{} // closed then
	closed moment        // the mark then
}

type watermark struct {
	at       moment        // up to which all units have been handed on
	end      time.Time     // up to which everything has been read; zero where more is known to be there
	heard    time.Duration // when something was last heard of it
	assigned bool          // to this instance, in this generation, or read in the units topic
	revoked  bool          // it is not read any more; the others still wait for what it had handed on
}

func newWatermarks() *watermarks {
	return &watermarks{marks: map[int32]*watermark{}, over: make(chan struct{})}
}

// begin starts a generation on a topic of so many partitions. Units wait for all of them, also for those that are not
// assigned: where an instance has died, the group goes on without its partitions until it notices, and would hand them
// to this one only then.
func (w *watermarks) begin(partitions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.marks)
	if w.isOver() {
		w.over = make(chan struct{})
	}
	w.grow(partitions)
}

// grow adds the partitions that there are beyond those that are known.
func (w *watermarks) grow(partitions int) {
	for p := int32(len(w.marks)); p < int32(partitions); p++ {
		w.marks[p] = &watermark{heard: w.heard}
	}
}

// assign says that a partition is read here, and has been up to a moment. Until it is read to its end, units of
// other partitions that ended later wait for it.
func (w *watermarks) assign(partition int32, at moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks[partition] = &watermark{at: at, heard: w.heard, assigned: true}
}

// revoke keeps the mark until the next generation begins, or units of the others would overtake those of this one that
// waited and are now forgotten until it is read again.
func (w *watermarks) revoke(partition int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.end, m.revoked = time.Time{}, true
	}
}

// end says that the generation ends, or that the service stops.
func (w *watermarks) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isOver() {
		w.closed = w.lowest()
		close(w.over)
	}
}

// isOver is ending for a caller that holds the lock.
func (w *watermarks) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// ended is closed when the generation is said to end.
func (w *watermarks) ended() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// whileOpen gives a context that ends with the generation.
func (w *watermarks) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	over := w.ended()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-over:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// ending reports whether the generation has been said to end, and no other one has begun.
func (w *watermarks) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isOver()
}

// advance says that all units of a partition before a moment have been handed to their desks, and where end is not
// zero, that there were no more in it at that time.
func (w *watermarks) advance(partition int32, at moment, end, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.at, m.end = later(m.at, at), end
		w.hear(m, now)
	}
}

// clock is the latest time at which something was heard.
func (w *watermarks) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// take takes in a mark of the units topic, by whose clock it is.
func (w *watermarks) take(m *ingest.UnitMark) {
	w.mu.Lock()
	w.grow(int(m.Partitions))
	w.marks[m.Partition].assigned = true
	w.mu.Unlock()
	w.advance(m.Partition, moment{m.TS, m.Run}, fromUnixNano(m.End), fromUnixNano(m.At))
}

// markState is a watermark, and marksState are all of them, for a checkpoint.
type (
	markState struct {
		At     moment
		End    int64 // Unix nanoseconds, 0 for none
		Heard  time.Duration
		Marked bool
	}
	marksState struct {
		Marks []markState // by partition
		Heard time.Duration
		Last  int64 // Unix nanoseconds, 0 for none
	}
)

func (w *watermarks) state() marksState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := marksState{Heard: w.heard, Last: unixNano(w.last)}
	for p := range int32(len(w.marks)) {
		m := w.marks[p]
		s.Marks = append(s.Marks, markState{m.at, unixNano(m.end), m.heard, m.assigned})
	}
	return s
}

func (w *watermarks) restore(s marksState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard, w.last = s.Heard, fromUnixNano(s.Last)
	for p, m := range s.Marks {
		w.marks[int32(p)] = &watermark{at: m.At, end: fromUnixNano(m.End), heard: m.Heard, assigned: m.Marked}
	}
}

// unixNano gives 0 for the zero time, and fromUnixNano the reverse.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromUnixNano(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// alive says that a partition is read, and that its units wait to be handed on.
func (w *watermarks) alive(partition int32, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		w.hear(m, now)
	}
}

// hear takes now for the present unless it was later before: clocks of several writers differ.
func (w *watermarks) hear(m *watermark, now time.Time) {
	if now.After(w.last) {
		w.heard += min(now.Sub(w.last), deskPulse)
		w.last = now
	}
	m.heard = w.heard
}

// waitsForOthers reports whether units of the partition wait for another one that has been read less far. Where it is
// the last itself, its units wait for what it has yet to say after the batch in hand.
func (w *watermarks) waitsForOthers(partition int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.marks[partition]
	return m != nil && w.lowest().before(m.read())
}

// low is the moment before which no unit of any partition is missing. With a single partition there is nothing to
// wait for.
func (w *watermarks) low() moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isOver() {
		return w.closed
	}
	return w.lowest()
}

// lowest is what low would be if nothing ended, for a caller that holds the lock.
func (w *watermarks) lowest() moment {
	switch len(w.marks) {
	case 0:
		return moment{}
	case 1:
		return endOfTime
	}
	low := endOfTime
	for _, m := range w.marks {
		if w.heard-m.heard <= markPatience {
			low = earlier(low, m.read())
		}
	}
	return low
}

// read is the moment before which all units of the partition have been handed on.
func (m watermark) read() moment {
	if m.end.IsZero() {
		return m.at
	}
	return later(m.at, moment{TS: m.end.Add(-watermarkDelay).UnixNano()})
}

// current reports whether every assigned partition has been read up to the present, so that silence means something.
func (w *watermarks) current(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	assigned := 0
	for _, m := range w.marks {
		if !m.assigned {
			continue
		}
		if m.revoked || m.read().TS < now.Add(-clockTolerance).UnixNano() {
			return false
		}
		assigned++
	}
	return assigned > 0 && !w.isOver()
}
