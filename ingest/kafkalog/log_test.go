package kafkalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/fetch"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func startLog(t *testing.T, partitions int32, opts ...kfake.Opt) (*kfake.Cluster, *Log) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, "state")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers = c.ListenAddrs()
	l, err := Open(cfg, "state", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // before the cluster
	return c, l
}

func (l *Log) all(t *testing.T, partition int) (out []Record) {
	t.Helper()
	if _, err := l.ReadOn(t.Context(), partition, 0, 0, func(r Record) error {
		out = append(out, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLogGivesBackWhatWasAppended(t *testing.T) {
	_, l := startLog(t, 3)
	if n, err := l.Partitions(t.Context()); n != 3 || err != nil {
		t.Errorf("%d partitions, %v", n, err)
	}
	if got := l.all(t, 1); len(got) != 0 {
		t.Errorf("an empty partition gives %v", got)
	}
	records := []Record{
		{Key: []byte("a"), Value: []byte("one")},
		{Key: []byte("b"), Value: bytes.Repeat([]byte{7}, MaxRecord)}, // more than one request
		{Key: []byte("a")},
		{Key: []byte("c"), Value: []byte("two")},
	}
	if err := l.Append(t.Context(), 1, records...); err != nil {
		t.Fatal(err)
	}
	got := l.all(t, 1)
	same := slices.EqualFunc(got, records, func(a, b Record) bool {
		return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.Offset == b.Offset
	})
	if !same {
		t.Errorf("%d records come back otherwise than they were written", len(got))
	}
	if end, err := l.End(t.Context(), 1); end != int64(len(records)) || err != nil {
		t.Errorf("the end is %d, %v", end, err)
	}
	for i, r := range got {
		if r.Offset != int64(i) {
			t.Errorf("record %d has offset %d", i, r.Offset)
		}
	}
	if got := l.all(t, 2); len(got) != 0 {
		t.Errorf("another partition holds %v", got)
	}
}

// A failed request is repeated until it succeeds, in order.
func TestLogAppendsOverOutages(t *testing.T) {
	c, l := startLog(t, 1)
	var said bytes.Buffer
	l.outages = zerolog.New(&said)
	failures := 3
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if failures--; failures < 0 {
			return nil, nil, false
		}
		return nil, errors.New("cut"), true // the connection breaks
	})
	for i := range 3 {
		if err := l.Append(t.Context(), 0, Record{Key: []byte("k"), Value: fmt.Appendf(nil, "%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), `ms","message":"failed to write to a topic, retrying"`); n != 3 {
		t.Errorf("3 failures are logged %d times with a wait in words: %s", n, &said)
	}
	var values []string
	for _, r := range l.all(t, 0) {
		values = append(values, string(r.Value))
	}
	if !slices.Equal(values, []string{"0", "1", "2"}) {
		t.Errorf("values %v", values)
	}
}

// No attempt is started if a deadline would interrupt it, because it would be unknown whether the records were written.
func TestLogCutsNoAttemptShort(t *testing.T) {
	c, l := startLog(t, 1)
	if err := l.Append(t.Context(), 0, Record{Value: []byte("first")}); err != nil {
		t.Fatal(err)
	}
	var attempts atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		attempts.Add(1)
		return nil, errors.New("cut"), true
	})
	ctx, cancel := context.WithTimeout(t.Context(), fetch.OperationTimeout)
	defer cancel()
	began := time.Now()
	if err := l.Append(ctx, 0, Record{Value: []byte("second")}); err == nil || ctx.Err() != nil {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if n := attempts.Load(); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

func TestLogErrors(t *testing.T) {
	c, _ := startLog(t, 1)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers = c.ListenAddrs()
	l, err := Open(cfg, "none", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Partitions(t.Context()); !errors.Is(err, ingest.ErrNoTopic) {
		t.Errorf("partitions of no topic: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	if err := l.Append(ctx, 0, Record{Key: []byte("k")}); !errors.Is(err, context.Canceled) {
		t.Errorf("an append to no topic: %v", err)
	}
	_, l = startLog(t, 1)
	if err := l.Append(t.Context(), 0, Record{Key: []byte("k"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	if err := l.Read(t.Context(), 0, 0, 1, func(Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a reader that stops: %v", err)
	}
}

// Reading ends at the requested offset or at the end of the partition. The offsets that an append returns are those of
// its records.
func TestLogReadsOn(t *testing.T) {
	_, l := startLog(t, 1)
	if end, err := l.ReadOn(t.Context(), 0, 0, 0, nil); end != 0 || err != nil {
		t.Errorf("an empty partition ends at %d, %v", end, err)
	}
	var next int64
	for i := range 3 {
		records, err := l.AppendFresh(t.Context(), 0, func() []Record {
			return []Record{{Key: []byte("a")}, {Key: []byte("b")}, {Key: []byte("c"), Value: []byte("v")}}
		})
		if err != nil || records[2].Offset != int64(3*i+2) {
			t.Fatalf("offset %d, %v", records[2].Offset, err)
		}
		var seen []int64
		next, err = l.ReadOn(t.Context(), 0, next, next+1, func(r Record) error {
			seen = append(seen, r.Offset)
			return nil
		})
		if err != nil || next != int64(3*i+3) || !slices.Equal(seen, []int64{next - 3, next - 2, next - 1}) {
			t.Errorf("%d to %d, %v", seen, next, err)
		}
	}
	var seen []int64
	if err := l.Read(t.Context(), 0, 4, 6, func(r Record) error {
		seen = append(seen, r.Offset)
		return nil
	}); err != nil || !slices.Equal(seen, []int64{4, 5}) {
		t.Errorf("%d, %v", seen, err)
	}
	if _, err := l.ReadOn(t.Context(), 0, next, next+1, nil); !errors.Is(err, fetch.ErrBehind) {
		t.Errorf("a partition that has lost records gives %v", err)
	}
}

// A connection is kept between calls of Read. A broken one is replaced.
func TestLogKeepsItsConnection(t *testing.T) {
	c, l := startLog(t, 1)
	if err := l.Append(t.Context(), 0, Record{Key: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int64
	c.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		dialled.Add(1)
		return nil, nil, false
	})
	l.all(t, 0)
	first := dialled.Load()
	for range 5 {
		l.all(t, 0)
	}
	if n := dialled.Load(); first == 0 || n != first {
		t.Errorf("the leader was asked for %d times, and %d times after", first, n-first)
	}
	for _, conn := range l.idle {
		conn.Close()
	}
	if got := l.all(t, 0); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

func TestLogMakesItsTopic(t *testing.T) {
	c, _ := startLog(t, 1)
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers = c.ListenAddrs()
	l, err := Open(cfg, "made", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, partitions := range []int{3, 5} { // the second time it is there
		if err := l.Make(t.Context(), partitions, map[string]string{"cleanup.policy": "compact"}); err != nil {
			t.Fatal(err)
		}
		if n, err := l.Partitions(t.Context()); n != 3 || err != nil {
			t.Errorf("%d partitions, %v", n, err)
		}
		if policy, err := l.Setting(t.Context(), "cleanup.policy"); policy != "compact" || err != nil {
			t.Errorf("cleanup.policy is %q, %v", policy, err)
		}
	}
	other, err := Open(cfg, "none", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Setting(t.Context(), "cleanup.policy"); err == nil {
		t.Error("a topic that is not there has a setting")
	}
}
