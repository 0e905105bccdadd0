package order

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// How long the units of a policy wait if the policy spans several partitions. WatermarkDelay is the wait for units from
// partitions that have been read to their ends, because producers may need that long to deliver. SendDelay is the wait
// for units from partitions that may have been added since the brokers were last asked. It is shorter, because a
// producer chooses a partition when it sends, so a partition that it did not know before only receives later events.
// markPatience is the wait for a partition that is silent while others are not. ClockTolerance is how far in the future
// a credible time may be.
const (
	WatermarkDelay = 2 * time.Second
	SendDelay      = 50 * time.Millisecond
	markPatience   = 30 * time.Second
	ClockTolerance = time.Minute
)

// LongestPulse is the maximum time by which one sign of life advances Watermarks.heard.
const LongestPulse = time.Second

// Moment is a position in the order of units: an event time in Unix nanoseconds and, for units that end at that time,
// ingest.Unit.Run.
type Moment struct {
	TS, Run int64
}

func (m Moment) compare(o Moment) int {
	return cmp.Or(cmp.Compare(m.TS, o.TS), cmp.Compare(m.Run, o.Run))
}

// Before reports whether m is earlier than o.
func (m Moment) Before(o Moment) bool { return m.compare(o) < 0 }

// EndOfTime is after all other moments.
var EndOfTime = Moment{TS: math.MaxInt64}

func earlier(a, b Moment) Moment {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b Moment) Moment {
	if a.Before(b) {
		return b
	}
	return a
}

// runLength is the number of records with the same event time that share a moment, within which agent and episode
// determine the order. If the time in a topic stands still, for example because all records have the same ts, the
// moment advances once per runLength records.
const runLength = 1000

// Believed returns the latest credible time of a record, in Unix nanoseconds.
func Believed(now time.Time) int64 { return now.Add(ClockTolerance).UnixNano() }

// EventClock tracks how far a partition has been read in event time: the latest credible time so far, and the number of
// records since.
type EventClock struct {
	TS, Records int64
	Before      Moment // last moment at the previous latest time
}

// Read advances the clock by a record. ts is the time of the record, or 0 if it has none. It returns whether the time
// is credible, which means not later than believed.
func (c *EventClock) Read(ts, believed int64) bool {
	if ts > c.TS && ts <= believed {
		c.Before = c.Now()
		c.TS, c.Records = ts, 0
		return true
	}
	c.Records++
	return ts != 0 && ts <= believed
}

// Now returns the moment before which all units of the partition are known.
func (c *EventClock) Now() Moment { return Moment{TS: c.TS, Run: c.Records / runLength} }

// Run returns the value of ingest.Unit.Run for a unit that is produced now. It depends only on the records of the
// partition.
func (c *EventClock) Run(endTS int64) int64 {
	switch endTS {
	case c.TS:
		return c.Now().Run
	case c.Before.TS: // an episode that ends with the step after its last one
		return c.Before.Run
	}
	return 0
}

// Watermarks tracks how far each partition of the telemetry topic has been read in event time. It is safe for
// concurrent use.
type Watermarks struct {
	mu    sync.Mutex
	marks map[int32]*Watermark
	limit Moment // before which no partition can have unknown units; EndOfTime before the first Confirm
	told  bool   // whether the marks come from the units topic, whose writers already observe the limit
	// heard is the total time during which there were signs of life from partitions, at most LongestPulse for each sign.
	// It stands still while nothing can be read, because the brokers are unavailable or the process is suspended.
	// Otherwise, the first data after such a pause would not wait for the rest.
	heard time.Duration
	last  time.Time // latest time of a sign of life
	// over is closed at the end of the generation. From then on, no more units are delivered, and the mark no longer
	// moves. Otherwise, units of one partition would overtake those of another that remain for the next generation.
	over   chan struct{}
	ended  atomic.Bool // whether over is closed, or about to be
	closed Moment      // mark at the end of the generation
}

// Watermark describes how far one partition has been read.
type Watermark struct {
	At       Moment        // moment before which all units have been delivered
	End      time.Time     // time up to which everything has been read; zero if there is more to read
	heard    time.Duration // Watermarks.heard at its last sign of life
	assigned bool          // to this instance in this generation, or read in the units topic
	revoked  bool          // no longer read; the others still wait for the units that it had delivered
}

// NewWatermarks returns watermarks without partitions.
func NewWatermarks() *Watermarks {
	return &Watermarks{marks: map[int32]*Watermark{}, limit: EndOfTime, over: make(chan struct{})}
}

// Begin starts a generation on a topic with the given number of partitions. Units wait for all of them, including
// unassigned ones. After an instance dies, the group continues without its partitions until it notices, and may assign
// them to this instance only then.
func (w *Watermarks) Begin(partitions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.marks)
	if w.Ending() {
		w.over = make(chan struct{})
		w.ended.Store(false)
	}
	w.grow(partitions)
}

// grow adds marks for new partitions, up to the given number.
func (w *Watermarks) grow(partitions int) {
	for p := int32(len(w.marks)); p < int32(partitions); p++ {
		w.marks[p] = &Watermark{heard: w.heard}
	}
}

// Confirm reports that, at the given time, the topic had no more partitions than Begin was called with.
func (w *Watermarks) Confirm(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	latest := int64(0)
	for _, m := range w.marks {
		latest = max(latest, m.At.TS)
	}
	w.limit = ConfirmedLimit(w.limit, at, latest)
}

// ConfirmedLimit returns the new limit, once all partitions are known to have existed at the given time. Partitions
// added later have no units that ended before that time minus SendDelay. If the clocks of agents are ahead, the latest
// time read so far minus WatermarkDelay applies instead, because the clocks need not all be ahead by the same amount.
func ConfirmedLimit(before Moment, at time.Time, latest int64) Moment {
	limit := later(Moment{TS: at.Add(-SendDelay).UnixNano()}, Moment{TS: latest - WatermarkDelay.Nanoseconds()})
	if before == EndOfTime {
		return limit
	}
	return later(before, limit)
}

// Assign reports that a partition is read here, and has been read up to a moment. Until it has been read to its end,
// later units of other partitions wait for it.
func (w *Watermarks) Assign(partition int32, at Moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks[partition] = &Watermark{At: at, heard: w.heard, assigned: true}
}

// Revoke keeps the mark until the next generation begins. Otherwise, units of the other partitions would overtake the
// waiting units of this one, which are dropped until it is read again.
func (w *Watermarks) Revoke(partition int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.End, m.revoked = time.Time{}, true
	}
}

// End ends the generation. It is also called when the service stops.
func (w *Watermarks) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Ending() {
		w.closed = w.lowest()
		w.ended.Store(true) // before those who wait for the end continue, or they would find that it has not come
		close(w.over)
	}
}

// Ended returns a channel that is closed when the generation ends.
func (w *Watermarks) Ended() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// WhileOpen returns a context that also ends with the generation.
func (w *Watermarks) WhileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	over := w.Ended()
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

// Ending reports whether the generation has ended and no other one has begun.
func (w *Watermarks) Ending() bool { return w.ended.Load() }

// Advance reports that all units of a partition before at have been passed to their workers. A non-zero end means that,
// at that time, the partition had been read to its end.
func (w *Watermarks) Advance(partition int32, at Moment, end, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		m.At, m.End = later(m.At, at), end
		w.hear(m, now)
	}
}

// Clock returns the time of the latest sign of life.
func (w *Watermarks) Clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// Take applies a mark of the units topic. It uses the clock of the mark.
func (w *Watermarks) Take(m *ingest.UnitMark) {
	w.mu.Lock()
	w.grow(int(m.Partitions))
	w.marks[m.Partition].assigned, w.told = true, true
	w.mu.Unlock()
	w.Advance(m.Partition, Moment{TS: m.TS, Run: m.Run}, FromUnixNano(m.End), FromUnixNano(m.At))
}

// State returns the watermarks for a checkpoint.
func (w *Watermarks) State() MarksState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := MarksState{Heard: w.heard, Last: UnixNano(w.last)}
	for p := range int32(len(w.marks)) {
		m := w.marks[p]
		s.Marks = append(s.Marks, MarkState{WireMoment(m.At), UnixNano(m.End), m.heard, m.assigned})
	}
	return s
}

// Restore restores a result of State.
func (w *Watermarks) Restore(s MarksState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard, w.last = s.Heard, FromUnixNano(s.Last)
	w.told = true
	for p, m := range s.Marks {
		w.marks[int32(p)] = &Watermark{At: Moment(m.At), End: FromUnixNano(m.End), heard: m.Heard, assigned: m.Marked}
	}
}

// UnixNano returns the Unix time in nanoseconds, or 0 for the zero time.
func UnixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// FromUnixNano is the inverse of UnixNano.
func FromUnixNano(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Alive reports that a partition is being read while its units wait for delivery.
func (w *Watermarks) Alive(partition int32, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.marks[partition]; m != nil {
		w.hear(m, now)
	}
}

// hear records a sign of life. It ignores a time before the latest one, because the clocks of several writers differ.
func (w *Watermarks) hear(m *Watermark, now time.Time) {
	if now.After(w.last) {
		w.heard += min(now.Sub(w.last), LongestPulse)
		w.last = now
	}
	m.heard = w.heard
}

// WaitsForOthers reports whether units of the partition wait for another partition that has been read less far. If no
// partition has been read less far, they wait for records after the current batch of their own partition.
func (w *Watermarks) WaitsForOthers(partition int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.marks[partition]
	return m != nil && w.lowest().Before(earlier(m.Read(), w.limit))
}

// HoldsUp reports whether units of other partitions wait for this one, because no partition has been read less far.
func (w *Watermarks) HoldsUp(partition int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.marks[partition]
	return m != nil && len(w.marks) > 1 && !w.lowest().Before(earlier(m.Read(), w.limit))
}

// Low returns the moment before which no unit of any partition is missing. A single partition only waits for partitions
// that may be added.
func (w *Watermarks) Low() Moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Ending() {
		return w.closed
	}
	return w.lowest()
}

// lowest is like Low, but ignores the end of the generation. The caller must hold the lock.
func (w *Watermarks) lowest() Moment {
	switch {
	case len(w.marks) == 0:
		return Moment{}
	case len(w.marks) == 1 && !w.told:
		return w.limit
	}
	low := w.limit
	for _, m := range w.marks {
		if w.heard-m.heard <= markPatience {
			low = earlier(low, m.Read())
		}
	}
	return low
}

// Read returns the moment before which all units of the partition have been delivered.
func (m Watermark) Read() Moment {
	if m.End.IsZero() {
		return m.At
	}
	return later(m.At, Moment{TS: m.End.Add(-WatermarkDelay).UnixNano()})
}

// Current reports whether every assigned partition has been read up to the present. Only then does silence mean that
// there are no events.
func (w *Watermarks) Current(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	assigned := 0
	for _, m := range w.marks {
		if !m.assigned {
			continue
		}
		if m.revoked || m.Read().TS < now.Add(-ClockTolerance).UnixNano() {
			return false
		}
		assigned++
	}
	return assigned > 0 && !w.Ending()
}
