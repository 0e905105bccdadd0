package ingesttest

import (
	"runtime"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"golang.org/x/sys/unix"
)

// Side is a decoder with the messages that it reads in a comparison.
type Side struct {
	Name     string
	Decoder  ingest.Decoder
	Messages []ingest.Message
}

// InTurns lets two sides read their messages in turns, so that a busy machine slows both down. The messages of both
// must contain the same events. It reports the CPU time per event of each side in nanoseconds, and the ratio of the
// second to the first.
func InTurns(b *testing.B, first, second Side) {
	b.Helper()
	sides := [2]turns{{Side: first}, {Side: second}}
	refuse := func(e *ingest.RecordError, _ []byte) { b.Fatal(e) }
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 30 { // until the decoders have finished learning
		sides[0].read(refuse)
		sides[1].read(refuse)
	}
	sides[0].spent, sides[1].spent = 0, 0
	b.ReportAllocs()
	for b.Loop() {
		sides[0].read(refuse)
		sides[1].read(refuse)
	}
	for i := range sides {
		s := &sides[i]
		b.ReportMetric(float64(s.spent)/float64(b.N)/float64(len(s.Messages)), s.Name+"-ns/event")
	}
	b.ReportMetric(float64(sides[1].spent)/float64(sides[0].spent), "ratio")
}

// turns is a side with the CPU time that it has taken.
type turns struct {
	Side
	events []ingest.Event
	spent  int64 // CPU time in nanoseconds
}

// batch is the number of messages after which the memory of events is reused.
const batch = 200

func (s *turns) read(refuse func(*ingest.RecordError, []byte)) {
	start := processorTime()
	for i := range s.Messages {
		if i%batch == 0 {
			s.Decoder.Reset()
			s.events = s.events[:0]
		}
		s.events = s.Decoder.Decode(s.events, &s.Messages[i], refuse)
	}
	s.spent += processorTime() - start
}

// processorTime returns the CPU time of the current thread in nanoseconds.
func processorTime() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return time.Now().UnixNano()
	}
	return at.Nano()
}
