package receive

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// topicDouble stores appended messages by partition.
type topicDouble struct {
	mu      sync.Mutex
	records [4][]kafkalog.Record
	down    error
}

func (d *topicDouble) Partitions(context.Context) (int, error) { return len(d.records), nil }

func (d *topicDouble) Append(_ context.Context, partition int, records ...kafkalog.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down != nil && partition == 1 {
		return d.down
	}
	d.records[partition] = append(d.records[partition], records...)
	return nil
}

// lines returns the records of all messages, by partition and in order.
func (d *topicDouble) lines() (out [4][]string) {
	for p, records := range d.records {
		for _, r := range records {
			out[p] = append(out[p], strings.Split(strings.TrimSuffix(string(r.Value), "\n"), "\n")...)
		}
	}
	return out
}

func byAgent(e *ingest.Event) string { return e.AgentID }

func newReceiver() (*Receiver, *topicDouble) {
	topic := &topicDouble{}
	return New(topic, telemetry.V1{}, byAgent, NewMetrics(prometheus.NewRegistry())), topic
}

func record(agent string, step int) string {
	return fmt.Sprintf(`{"policy":"p","agent_id":%q,"step":%d,"reward":1}`, agent, step)
}

func TestRecordsOfAnAgentStayTogetherAndInOrder(t *testing.T) {
	r, topic := newReceiver()
	var body strings.Builder
	for step := range 50 {
		for agent := range 10 {
			body.WriteString(record(fmt.Sprint("agent-", agent), step) + "\n")
		}
	}
	result, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(body.String())})
	if err != nil || result.Accepted != 500 || result.Refused != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	found := 0
	for partition, lines := range topic.lines() {
		next := map[string]int{}
		for _, line := range lines {
			agent := strings.Split(line, `"`)[7]
			if want := record(agent, next[agent]); line != want || kafkalog.PartitionOf([]byte(agent), 4) != partition {
				t.Fatalf("partition %d has %s, want %s", partition, line, want)
			}
			next[agent]++
			found++
		}
	}
	if found != 500 {
		t.Errorf("%d records were written", found)
	}
}

func TestBodies(t *testing.T) {
	a, b := record("a", 0), record("b", 1)
	pretty := "[\n  " + strings.ReplaceAll(a, ",", ",\n  ") + ",\n" + b + "]\n"
	zipped := func(text string) string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		return out.String()
	}
	zstandard := func(text string) string {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(w.EncodeAll([]byte(text), nil))
	}
	for name, c := range map[string]struct {
		encoding, body string
		accepted       int
		err            error
	}{
		"lines":                  {"", a + "\n\n" + b, 2, nil},
		"array":                  {"", pretty, 2, nil},
		"gzip":                   {"gzip", zipped(a + "\n" + b), 2, nil},
		"zstd":                   {"zstd", zstandard(pretty), 2, nil},
		"nothing":                {"", " \n", 0, ErrBadBatch},
		"empty array":            {"", "[]", 0, ErrBadBatch},
		"array that breaks off":  {"", "[" + a + ",", 0, ErrBadBatch},
		"array with a bad value": {"", "[" + a + ",}]", 0, ErrBadBatch},
		"not gzip":               {"gzip", a, 0, ErrBadBatch},
		"gzip that breaks off":   {"gzip", zipped(a)[:30], 0, ErrBadBatch},
		"not zstd":               {"zstd", a, 0, ErrBadBatch},
		"another encoding":       {"br", a, 0, ErrBadBatch},
		"a bomb":                 {"gzip", zipped(strings.Repeat(" ", MaxBody+1)), 0, ErrTooLarge},
		"too much":               {"", strings.Repeat(a+"\n", MaxBody/len(a)+1), 0, ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r, topic := newReceiver()
			result, err := r.Receive(t.Context(), Batch{Encoding: c.encoding, Body: strings.NewReader(c.body)})
			if !errors.Is(err, c.err) || result.Accepted != c.accepted {
				t.Fatalf("%+v, %v", result, err)
			}
			var all []string
			for _, lines := range topic.lines() {
				all = append(all, lines...)
			}
			if c.err == nil && (len(all) != 2 || len(all[0]) != len(a) || len(all[1]) != len(b)) || c.err != nil && len(all) > 0 {
				t.Errorf("written: %q", all)
			}
			if r.inFlight.all != 0 {
				t.Errorf("%d bytes stay reserved", r.inFlight.all)
			}
		})
	}
}

// A batch with an unknown encoding neither waits for others nor is read.
func TestUnknownEncodingsAreRefusedAtOnce(t *testing.T) {
	r, _ := newReceiver()
	for range maxUnpacked {
		r.unpacks <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // those who wait are told ErrBusy
	body := strings.NewReader(record("a", 0))
	unread := body.Len()
	if _, err := r.Receive(ctx, Batch{Encoding: "br", Body: body}); !errors.Is(err, ErrBadBatch) || body.Len() != unread {
		t.Errorf("%v after %d bytes", err, unread-body.Len())
	}
}

func TestBadRecordsAreNamed(t *testing.T) {
	r, topic := newReceiver()
	result, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(record("a", 0) + "\n{\"reward\":1}\n{\n" + record("a", 1))})
	if err != nil || result.Accepted != 2 || result.Refused != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	var got []string
	for _, f := range result.Refusals {
		got = append(got, fmt.Sprint(f.Index, " ", f.Error.Reason, " ", f.Error.Column))
	}
	if want := []string{"1 missing_policy 0", "2 invalid_json 2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
	if testutil.ToFloat64(r.metrics.records.WithLabelValues("refused")) != 2 || len(topic.lines()[kafkalog.PartitionOf([]byte("a"), 4)]) != 2 {
		t.Error("the other records were not written")
	}
	many, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(strings.Repeat("{}\n", 1000))})
	if err != nil || many.Refused != 1000 || len(many.Refusals) != MaxRefused {
		t.Errorf("%d refused, %d listed, %v", many.Refused, len(many.Refusals), err)
	}
}

// A sender that is restricted to some policies cannot send others, neither in their own record nor among others in one
// record.
func TestPoliciesOfOthersAreRefused(t *testing.T) {
	r, topic := newReceiver()
	body := record("a", 0) + "\n" + strings.Replace(record("a", 1), `"policy":"`, `"policy":"other-`, 1)
	result, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(body), Takes: func(policy string) bool { return !strings.HasPrefix(policy, "other-") }})
	if err != nil || result.Accepted != 1 || result.Refused != 1 || result.Refusals[0].Index != 1 || result.Refusals[0].Error.Reason != ingest.ReasonOtherTenant {
		t.Fatalf("%+v, %v", result, err)
	}
	written := 0
	for _, lines := range topic.lines() {
		written += len(lines)
	}
	if written != 1 {
		t.Errorf("%d records were written", written)
	}
}

// A batch that is sent again results in the same messages with the same IDs.
func TestRepeatedBatchIsTheSame(t *testing.T) {
	var body strings.Builder
	for step := range 20_000 {
		body.WriteString(record(fmt.Sprint("agent-", step%7), step) + "\n")
	}
	send := func() [4][]kafkalog.Record {
		r, topic := newReceiver()
		if _, err := r.Receive(t.Context(), Batch{ID: "batch-9", Body: strings.NewReader(body.String())}); err != nil {
			t.Fatal(err)
		}
		return topic.records
	}
	first, second := send(), send()
	if !reflect.DeepEqual(first, second) {
		t.Error("the messages differ")
	}
	for partition, records := range first {
		for i, m := range records {
			if len(m.Value) > maxMessage || len(m.Headers) != 1 || m.Headers[0].Key != RequestHeader || string(m.Headers[0].Value) != fmt.Sprint("batch-9/", i) {
				t.Errorf("message %d of partition %d: %d bytes, %q", i, partition, len(m.Value), m.Headers)
			}
		}
	}
}

func TestUnavailableTopicIsTold(t *testing.T) {
	r, topic := newReceiver()
	topic.down = errors.New("no leader")
	var body strings.Builder
	for agent := range 20 {
		body.WriteString(record(fmt.Sprint("agent-", agent), 0) + "\n")
	}
	if _, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(body.String())}); !errors.Is(err, ErrUnavailable) || !errors.Is(err, topic.down) {
		t.Errorf("the error is %v", err)
	}
	if testutil.ToFloat64(r.metrics.batches.WithLabelValues("unavailable")) != 1 {
		t.Error("it was not counted")
	}
}

// stalled is a body that waits and then breaks off.
type stalled struct {
	first  io.Reader
	reads  chan struct{} // closed when first has been read
	goOn   chan struct{}
	closed sync.Once
}

func (s *stalled) Read(b []byte) (int, error) {
	n, err := s.first.Read(b)
	if errors.Is(err, io.EOF) {
		s.closed.Do(func() { close(s.reads) })
		<-s.goOn
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// While other batches use up the memory, a batch is refused without being read.
func TestTooMuchAtOnceIsRefused(t *testing.T) {
	r, _ := newReceiver()
	line := record("a", 0) + "\n"
	goOn := make(chan struct{})
	var wg sync.WaitGroup
	const large = MaxBody - 1<<20
	for range maxInFlight / large {
		s := &stalled{first: strings.NewReader(strings.Repeat(line, large/len(line))), reads: make(chan struct{}), goOn: goOn}
		wg.Go(func() {
			if _, err := r.Receive(t.Context(), Batch{Body: s}); !errors.Is(err, ErrBadBatch) {
				t.Errorf("the error is %v, want %v", err, ErrBadBatch)
			}
		})
		<-s.reads
	}
	if _, err := r.Receive(t.Context(), Batch{Body: strings.NewReader(strings.Repeat(line, large/len(line)))}); !errors.Is(err, ErrBusy) {
		t.Errorf("the error is %v, want %v", err, ErrBusy)
	}
	close(goOn)
	wg.Wait()
	if r.inFlight.all != 0 || len(r.inFlight.of) != 0 {
		t.Errorf("%+v stays reserved", r.inFlight)
	}
}

// A tenant that sends slowly as much as it may does not keep others from sending.
func TestTenantsShareWhatIsReceived(t *testing.T) {
	r, _ := newReceiver()
	line := record("a", 0) + "\n"
	goOn := make(chan struct{})
	var wg sync.WaitGroup
	const size = 8 << 20
	slow := func(tenant string) {
		s := &stalled{first: strings.NewReader(strings.Repeat(line, size/len(line))), reads: make(chan struct{}), goOn: goOn}
		wg.Go(func() { _, _ = r.Receive(t.Context(), Batch{Tenant: tenant, Body: s}) })
		<-s.reads
	}
	quick := func(tenant string) error {
		_, err := r.Receive(t.Context(), Batch{Tenant: tenant, Body: strings.NewReader(line)})
		return err
	}
	for range maxOfTenant / size {
		slow("noisy")
	}
	large := strings.NewReader(strings.Repeat(line, size/len(line)))
	if _, err := r.Receive(t.Context(), Batch{Tenant: "noisy", Body: large}); !errors.Is(err, ErrBusy) {
		t.Errorf("more of the same tenant: %v", err)
	}
	for _, tenant := range []string{"quiet", ""} {
		if err := quick(tenant); err != nil {
			t.Errorf("another sender, of %q: %v", tenant, err)
		}
	}
	for range maxOfTenant / size {
		slow("") // the platform has no limit of its own
	}
	close(goOn)
	wg.Wait()
	if err := quick("noisy"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A client that sends only the beginning of a batch must not occupy the memory for decompressing it: it may have more
// than a thousand requests open, each of which would take 8 MiB.
func TestSlowBatchesTakeNoMemoryForDecompressing(t *testing.T) {
	const clients = 64
	// A frame with a window of 8 MiB, and a block of 16 spaces that is not the last.
	begun := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3, 16<<3 | 2, 0, 0, ' '}
	r, _ := newReceiver()
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var open []*io.PipeWriter
	var answered sync.WaitGroup
	for range clients {
		body, client := io.Pipe()
		open = append(open, client)
		answered.Go(func() {
			if _, err := r.Receive(t.Context(), Batch{Encoding: "zstd", Body: body}); !errors.Is(err, ErrBadBatch) {
				t.Errorf("a batch that was cut off: %v", err)
			}
		})
		if _, err := client.Write(begun); err != nil { // returns when it has been read
			t.Fatal(err)
		}
	}
	for _, client := range open { // nothing: the readers of all have begun to wait for more
		if _, err := client.Write(nil); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := (int64(during.HeapAlloc) - int64(before.HeapAlloc)) / clients; grown > 1<<20 {
		t.Errorf("%d slow batches take %d KiB each", clients, grown>>10)
	}
	for _, client := range open {
		_ = client.Close()
	}
	answered.Wait()
}
