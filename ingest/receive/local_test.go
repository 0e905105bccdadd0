package receive

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

func newLocal(tb testing.TB, maxSize int64) (*Receiver, *locallog.Log) {
	tb.Helper()
	l, err := locallog.Open(locallog.Options{
		Name: "telemetry", Directory: tb.TempDir(), MaxSize: maxSize, SegmentSize: 64 << 20, Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, locallog.ErrClosed) {
			tb.Error(err)
		}
	})
	return New(Local{l}, telemetry.V1{}, byAgent, NewMetrics(prometheus.NewRegistry())), l
}

// body returns a batch of records from several agents.
func body(records int) string {
	var b strings.Builder
	for step := range records {
		b.WriteString(record(fmt.Sprint("agent-", step%10), step) + "\n")
	}
	return b.String()
}

// A batch is in the log in its order when it is confirmed, and its messages identify their batch.
func TestBatchIsInTheLocalLog(t *testing.T) {
	r, l := newLocal(t, 1<<30)
	sent := body(20_000)
	if result, err := r.Receive(t.Context(), Batch{ID: "batch-1", Body: strings.NewReader(sent)}); err != nil || result.Accepted != 20_000 {
		t.Fatal(result, err)
	}
	read := l.NewReader(0)
	defer read.Close()
	var got strings.Builder
	for at := 0; ; {
		records, err := read.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range records {
			if want := fmt.Sprint("batch-1/", at); len(m.Headers) != 1 || string(m.Headers[0].Value) != want {
				t.Errorf("message %d has headers %q", at, m.Headers)
			}
			got.Write(m.Value)
			at++
		}
	}
	if got.String() != sent {
		t.Errorf("%d bytes were written, want %d", got.Len(), len(sent))
	}
}

func TestFullLocalLogIsBusy(t *testing.T) {
	r, l := newLocal(t, 256<<10)
	batches := 0
	for {
		_, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(body(1000))})
		if errors.Is(err, ErrBusy) {
			break
		}
		if err != nil || errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		batches++
	}
	if _, next := l.Ends(); batches < 2 || next != int64(batches) || testutil.ToFloat64(r.metrics.batches.WithLabelValues("busy")) != 1 {
		t.Errorf("%d batches, and the log ends at %d", batches, next)
	}
	closed, l := newLocal(t, 1<<30)
	if err := l.Close(); err != nil { // the cleanup closes it again
		t.Fatal(err)
	}
	if _, err := closed.Receive(t.Context(), Batch{Body: strings.NewReader(body(1))}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}
