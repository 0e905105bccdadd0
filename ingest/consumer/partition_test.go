package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/segmentio/kafka-go"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		f    fetch.Found
		want fetch.Class
	}{
		{fetch.Found{}, fetch.Tombstone},
		{fetch.Found{Size: 10}, fetch.Telemetry},
		{fetch.Found{Size: 11}, fetch.TooLarge},
		{fetch.Found{Kind: fetch.KindRefused}, fetch.TooLarge},
		{fetch.Found{Kind: fetch.KindControl}, fetch.Control},
		{fetch.Found{Kind: fetch.KindAborted}, fetch.Aborted},
	} {
		if got := c.f.Classify(10); got != c.want {
			t.Errorf("%+v: %d, want %d", c.f, got, c.want)
		}
	}
}

func TestDisconnections(t *testing.T) {
	for _, c := range []struct {
		err  error
		want disconnection
	}{
		{fmt.Errorf("%w: %w", errDial, kafka.LeaderNotAvailable), lostDial},
		{kafka.NotLeaderForPartition, lostNotLeader},
		{kafka.OffsetOutOfRange, lostOutOfRange},
		{fmt.Errorf("x: %w", ErrOffsetPastEnd), lostMalformed},
		{kafka.UnknownTopicOrPartition, lostBroker},
		{io.ErrUnexpectedEOF, lostConnection},
		{&net.OpError{Op: "read", Err: net.ErrClosed}, lostConnection},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, lostTimeout},
		{fmt.Errorf("%w: x", fetch.ErrPanicked), lostPanic},
		{errors.New("unsupported magic byte"), lostMalformed},
	} {
		if got := disconnectionOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

func TestRecovered(t *testing.T) {
	err := fetch.Shielded(func() error { panic("markRead: negative count") }) // like kafka-go at a damaged batch
	if !errors.Is(err, fetch.ErrPanicked) {
		t.Errorf("error %v, want %v", err, fetch.ErrPanicked)
	}
}

func TestPositionAtAnyDamage(t *testing.T) {
	want := position{topic: "telemetry", partition: 7, next: 12, mark: mark{offset: 11, sum: 0xfeed}, eventTS: 99}
	whole := want.append(nil)
	got, snapshot, err := cutPosition(append(whole[:len(whole):len(whole)], "rest"...))
	if err != nil || got != want || string(snapshot) != "rest" {
		t.Fatalf("%+v, %q, %v, want %+v", got, snapshot, err, want)
	}
	for i := range whole {
		if _, _, err := cutPosition(whole[:i]); err == nil {
			t.Errorf("cut at byte %d: no error", i)
		}
	}
}

func FuzzCutPosition(f *testing.F) {
	f.Add(position{topic: "telemetry", next: 1}.append(nil))
	f.Add([]byte(partitionMagic))
	f.Add(appendPositions(nil, []position{{topic: "decisions", next: 3, mark: mark{offset: 2}}, {topic: "clicks", next: unknown, mark: mark{offset: unknown}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		at, snapshot, err := cutPositions(b)
		if err != nil {
			return
		}
		if again := append(appendPositions(nil, at), snapshot...); string(again) != string(b) {
			t.Errorf("%q was read and is written as %q", b, again)
		}
	})
}

func TestStallWatch(t *testing.T) {
	const limit = 30 * time.Second
	start := time.Unix(1_700_000_000, 0)
	type look struct {
		after        time.Duration
		next, end    int64
		disconnected bool
		busy         bool
		want         stallVerdict
	}
	for name, looks := range map[string][]look{
		"nothing to read": {{0, 5, 5, false, false, stallNone}, {time.Hour, 5, 5, false, false, stallNone}},
		"gets on":         {{0, 5, 9, false, false, stallNone}, {limit, 6, 9, false, false, stallNone}, {2 * limit, 7, 9, false, false, stallNone}},
		"cut, then ended": {
			{0, 5, 9, false, false, stallNone},
			{limit - 1, 5, 9, false, false, stallWait},
			{limit, 5, 9, false, false, stallCut},
			{2*limit - 1, 5, 9, false, false, stallWait},
			{2 * limit, 5, 9, false, false, stallEnd},
		},
		"a new connection in between is no progress": {
			{0, 5, 9, false, false, stallNone},
			{limit, 5, 9, false, false, stallCut},
			{limit + 1, 5, 9, true, false, stallNone},
			{2*limit + 1, 5, 9, false, false, stallEnd},
		},
		"the cut helped": {
			{0, 5, 9, false, false, stallNone},
			{limit, 5, 9, false, false, stallCut},
			{limit + 1, 9, 9, false, false, stallNone},
			{3 * limit, 9, 12, false, false, stallCut},
		},
		"processing is no stall":   {{0, 5, 9, false, false, stallNone}, {time.Hour, 5, 9, false, true, stallNone}},
		"connecting is no stall":   {{0, 5, 9, true, false, stallNone}, {time.Hour, 5, 9, true, false, stallNone}},
		"the end is not known yet": {{0, 5, unknown, false, false, stallNone}, {time.Hour, 5, unknown, false, false, stallNone}},
	} {
		w := stallWatch{next: unknown, since: start}
		for i, l := range looks {
			p := newProgress(start)
			p.next.Store(l.next)
			p.end.Store(l.end)
			p.busy.Store(l.busy)
			if got := w.look(start.Add(l.after), p, !l.disconnected, limit); got != l.want {
				t.Errorf("%s, look %d: %s, want %s", name, i, got, l.want)
			}
		}
	}
}

func TestLagSeconds(t *testing.T) {
	now := time.Unix(1_700_000_100, 0)
	for _, c := range []struct {
		next, end, ts int64
		want          float64
		known         bool
	}{
		{unknown, unknown, 0, 0, false},
		{5, 9, 0, 0, false},
		{9, 9, 0, 0, false},
		{9, 9, 1_700_000_000e9, 0, true},
		{5, 9, 1_700_000_000e9, 100, true},
		{5, 9, 1_700_000_200e9, 0, true},
		{5, unknown, 1_700_000_000e9, 0, false},
	} {
		p := newProgress(now)
		p.next.Store(c.next)
		p.end.Store(c.end)
		p.eventTS.Store(c.ts)
		if got, known := p.lagSeconds(now); got != c.want || known != c.known {
			t.Errorf("%+v: %g, %t", c, got, known)
		}
	}
}

// taker is a MessageProcessor that only inspects messages.
type taker struct {
	ingest.State
	bytes int
}

func (t *taker) ProcessMessages(_ context.Context, batch []ingest.Message) error {
	for i := range batch {
		t.bytes += len(batch[i].Value)
	}
	return nil
}

func TestMessagesUseTheirMemoryAgain(t *testing.T) {
	to := &taker{}
	i := &messageIntake{processor: to, limit: ingest.MiB}
	value := make([]byte, 300)
	round := func() {
		for offset := int64(0); !i.full(); offset++ {
			if err := i.add(&fetch.Found{Value: value, Size: int64(len(value))}, ingest.Position{Offset: offset}); err != nil {
				t.Fatal(err)
			}
		}
		if err := i.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, round); n > 0 {
		t.Errorf("%g allocations a batch", n)
	}
	if want := 11 * flushEvents * len(value); to.bytes != want {
		t.Errorf("%d bytes were handed on, want %d", to.bytes, want)
	}
	for range 3 { // large ones are flushed before there are many, and not kept
		if err := i.add(&fetch.Found{Value: make([]byte, 700<<10), Size: 700 << 10}, ingest.Position{}); err != nil {
			t.Fatal(err)
		}
	}
	if !i.full() {
		t.Errorf("%d bytes are gathered on", len(i.memory))
	}
	if err := i.Flush(t.Context()); err != nil || cap(i.memory) > 2*keptMessages {
		t.Errorf("%d bytes are kept, error %v", cap(i.memory), err)
	}
}

func TestBackoffIsBounded(t *testing.T) {
	for failures := 1; failures < 200; failures++ {
		if d := defaultTiming().backoff(failures); d < 50*time.Millisecond || d > 7500*time.Millisecond {
			t.Fatalf("failure %d: %v", failures, d)
		}
	}
}
