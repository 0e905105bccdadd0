package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine/enginetest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// topicInMemory is a units topic whose brokers can be unavailable.
type topicInMemory struct {
	mu      sync.Mutex
	away    chan struct{} // closed when they are available again; nil while they are available
	records map[int][]kafkalog.Record
}

func (l *topicInMemory) Append(ctx context.Context, partition int, records ...kafkalog.Record) error {
	l.mu.Lock()
	away := l.away
	l.mu.Unlock()
	if away != nil {
		select {
		case <-away:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range records {
		records[i].Offset = int64(len(l.records[partition])) // like a Log
		l.records[partition] = append(l.records[partition], records[i])
	}
	return nil
}

func (l *topicInMemory) End(_ context.Context, partition int) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.records[partition])), nil
}

func (l *topicInMemory) ReadOn(_ context.Context, partition int, from, _ int64, visit func(kafkalog.Record) error) (int64, error) {
	l.mu.Lock()
	records := slices.Clone(l.records[partition])
	l.mu.Unlock()
	for _, r := range records[from:] {
		if err := visit(r); err != nil {
			return 0, err
		}
	}
	return int64(len(records)), nil
}

// messages returns the content of a partition, in the form in which it is read.
func (l *topicInMemory) messages(partition int) (out []ingest.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.records[partition] {
		out = append(out, ingest.Message{Pos: ingest.Position{Partition: ingest.Partition(partition), Offset: int64(i)}, Value: r.Value})
	}
	return out
}

// unitsRig is a cluster of one instance without Kafka.
type unitsRig struct {
	t        *testing.T
	pipeline *engine.Pipeline
	records  *ingest.UnitRecords
	topic    *topicInMemory
	writer   *unitWriter
	feeds    *engine.Telemetry
	readers  *unitReaders
	store    *checkpoint.Store
}

const rigPartitions = 2

func newUnitsRig(t *testing.T, a engine.Audience) *unitsRig {
	t.Helper()
	records, err := ingest.NewUnitRecords()
	if err != nil {
		t.Fatal(err)
	}
	cfg := engine.DefaultSettings()
	p := engine.NewPipeline(t.Context(), &cfg, nil, nil, a, zerolog.Nop(), prometheus.NewRegistry())
	r := &unitsRig{
		t: t, pipeline: p, records: records, topic: &topicInMemory{records: map[int][]kafkalog.Record{}},
		store: checkpoint.NewStore(ingesttest.NewSegments(), zerolog.Nop(), prometheus.NewRegistry()),
	}
	r.writer = newUnitWriter(p, records, r.topic)
	r.writer.start(rigPartitions)
	r.feeds = engine.NewTelemetry(p, r.writer)
	r.readers = newUnitReaders(p, records, r.writer.width, r.feeds.Forget)
	t.Cleanup(func() {
		r.writer.close()
		_ = p.Stop()
	})
	return r
}

func (r *unitsRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// reader takes over a partition of the units topic, and feeds all of its content to the reader.
func (r *unitsRig) reader(partition int32) *unitReader {
	r.t.Helper()
	r.readers.Begin(rigPartitions)
	state, err := r.readers.Assign(partition, r.store)
	r.must(err)
	return state.(*unitReader)
}

func (r *unitsRig) judged() int64 { return enginetest.Judged(r.pipeline) }

func episodeAt(offset int64) ingest.Event {
	return ingesttest.Episode(0, offset, "ranker", time.Now().Add(-time.Hour+time.Duration(offset)*time.Second))
}

// Units that arrive again, because their partition of the telemetry was read again after a crash, are judged once.
// Those of another reading of the partition are different units.
func TestUnitsThatComeAgainAreLeftOut(t *testing.T) {
	t.Parallel()
	r := newUnitsRig(t, enginetest.NewMemory())
	k := int32(unitPartition("ranker", rigPartitions))
	r.feeds.Begin(1)
	write := func(f *engine.PartitionFeed, from, to int64) {
		for i := from; i < to; i++ {
			r.must(f.Process(t.Context(), []ingest.Event{episodeAt(i)}))
		}
		_, err := f.Out.Keep()
		r.must(err)
		r.markOf(0, 1, time.Now()) // as for a partition that has been read to its end
	}
	f := r.feeds.Feed(0)
	var saved bytes.Buffer
	write(f, 0, 10)
	r.must(f.Snapshot(&saved))
	write(f, 10, 20)
	r.feeds.Ending()
	r.feeds.Revoke(0) // without a save, as in a crash
	r.feeds.Begin(1)
	f = r.feeds.Feed(0)
	r.must(f.Restore(&saved))
	write(f, 10, 30)
	d := r.reader(k)
	r.must(d.ProcessMessages(t.Context(), r.topic.messages(int(k))))
	r.must(d.ProcessMessages(t.Context(), r.topic.messages(int(k)))) // as after an older checkpoint
	testkit.Eventually(t, "30 units", func() bool { return r.judged() == 30 })

	var state bytes.Buffer
	r.must(d.Snapshot(&state))
	r.readers.Ending()
	r.readers.Revoke(k)
	if n := len(r.pipeline.All()); n != 0 || r.judged() != 0 {
		t.Errorf("%d policies are still there after they were taken away", n)
	}
	d = r.reader(k)
	r.must(d.Restore(&state))
	r.must(d.ProcessMessages(t.Context(), r.topic.messages(int(k))))
	if got := r.judged(); got != 30 {
		t.Errorf("%d units after a restore, want 30", got)
	}
	f = r.feeds.Feed(0) // without a checkpoint
	write(f, 0, 5)
	r.must(d.ProcessMessages(t.Context(), r.topic.messages(int(k))))
	testkit.Eventually(t, "five more units", func() bool { return r.judged() == 35 })
	if late := testutil.ToFloat64(r.pipeline.Metrics.Late); late > 5 { // except for those of the other reading
		t.Errorf("%v units came too late to be put in order", late)
	}
	r.readers.Ending()
	r.readers.Revoke(k)
}

// Marks are written to every partition of the units topic, after the preceding units, and rarely enough.
func TestMarksAreWrittenBehindTheirUnits(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	r.feeds.Begin(3)
	f := r.feeds.Feed(1)
	now := time.Now()
	p := f.Out.(*writtenPartition)
	r.must(f.Process(t.Context(), []ingest.Event{ingesttest.Episode(1, 1, "ranker", now.Add(-time.Second))}))
	for at := time.Duration(0); at < 10*time.Second; at += 50 * time.Millisecond {
		r.must(p.Mark(t.Context(), order.Moment{TS: now.UnixNano()}, now.Add(at), now.Add(at))) // nothing new
	}
	for at := 10 * time.Second; at < 20*time.Second; at += 50 * time.Millisecond {
		r.must(p.Mark(t.Context(), order.Moment{TS: now.Add(at).UnixNano()}, time.Time{}, now.Add(at)))
	}
	_, err := f.Out.Keep()
	r.must(err)
	for k := range rigPartitions {
		units, marks := 0, 0
		for _, m := range r.topic.messages(k) {
			unit, mark, err := r.records.Read(m.Value)
			r.must(err)
			switch {
			case mark == nil:
				units++
				if unit.Group.Policy != "ranker" || marks != 1 {
					t.Errorf("unit %v behind %d marks", unit, marks)
				}
			case mark.Partition != 1 || mark.Partitions != 3:
				t.Errorf("mark %+v", mark)
			default:
				marks++
			}
		}
		if want := map[bool]int{true: 1}[k == unitPartition("ranker", rigPartitions)]; units != want || marks < 45 || marks > 55 {
			t.Errorf("partition %d holds %d units and %d marks, want %d and about 50", k, units, marks, want)
		}
	}
}

// While the brokers are unavailable, the telemetry waits. The end of a generation is not delayed, nothing that is not
// written is saved, and what was written is complete up to some unit.
func TestBrokersThatAreAwayHoldUpTheTelemetryOnly(t *testing.T) {
	t.Parallel()
	r := newUnitsRig(t, enginetest.NewMemory())
	r.topic.away = make(chan struct{})
	r.feeds.Begin(1)
	f := r.feeds.Feed(0)
	done := make(chan error, 1)
	go func() {
		for i := range int64(40_000) {
			if err := f.Process(context.WithoutCancel(t.Context()), []ingest.Event{episodeAt(i)}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		t.Fatalf("the telemetry did not wait: %v", err)
	case <-time.After(time.Second):
	}
	began := time.Now()
	r.feeds.Ending()
	r.must(<-done)
	if err := f.Snapshot(&bytes.Buffer{}); !errors.Is(err, kafkalog.ErrNotWritten) {
		t.Errorf("a snapshot of what is not written gives %v", err)
	}
	if took := time.Since(began); took > ackedForSave+time.Minute { // the brokers remain unavailable
		t.Errorf("the generation ended after %s", took)
	}
	close(r.topic.away)
	k := unitPartition("ranker", rigPartitions)
	written := func() error {
		return r.writer.queues[k].Await(t.Context(), nil, 0, f.Out.(*writtenPartition).put[k])
	}
	r.must(written())
	r.must(f.Process(t.Context(), []ingest.Event{episodeAt(40_000)})) // after what was not written
	r.feeds.Revoke(0)
	r.must(written())
	next := int64(0)
	for _, m := range r.topic.messages(unitPartition("ranker", rigPartitions)) {
		unit, _, err := r.records.Read(m.Value)
		r.must(err)
		if unit != nil {
			if unit.Pos.Offset != next {
				t.Fatalf("unit %d comes after unit %d", unit.Pos.Offset, next-1)
			}
			next++
		}
	}
	if next < 1000 || next == 40_000 {
		t.Errorf("%d units are written", next)
	}
}

// A damaged record is counted and skipped. A record of another version ends the service, and so does a units topic that
// has grown, before or while it is read.
func TestUnitsThatCannotBeRead(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	d := r.reader(0)
	r.must(d.ProcessMessages(t.Context(), []ingest.Message{{Value: []byte("nonsense")}}))
	if got := testutil.ToFloat64(r.pipeline.Metrics.Dropped.WithLabelValues("damaged")); got != 1 {
		t.Errorf("%v damaged records are counted", got)
	}
	var state bytes.Buffer
	r.must(d.Snapshot(&state))
	d.partitions = 3
	if err := d.Restore(&state); err == nil || !strings.Contains(err.Error(), "now has 3 partitions instead of 2") {
		t.Errorf("a checkpoint of fewer partitions gives %v", err)
	}
	r.readers.Begin(3)
	if _, err := r.readers.Assign(1, r.store); err == nil || !strings.Contains(err.Error(), "cluster.units_topic") {
		t.Errorf("a topic that has grown gives %v", err)
	}
	r.readers.Ending()
	r.readers.Revoke(0)
}

// stuck are effects that block until their context ends, as if the ledger could not be reached.
type stuck struct {
	enginetest.Memory
	entered chan struct{}
	once    sync.Once
}

func (s *stuck) Changed(ctx context.Context, _ []alerts.Change) error {
	s.once.Do(func() { close(s.entered) })
	<-ctx.Done()
	return context.Cause(ctx)
}

// driftUntilStuck feeds a policy that drifts, in a goroutine, until its worker cannot continue and the queue to it is
// full.
func driftUntilStuck(t *testing.T, s *stuck, process func(i int64, e ingest.Event) error) (stopped <-chan error, stop func()) {
	t.Helper()
	done, end := make(chan error, 1), make(chan struct{})
	go func() {
		for i := int64(0); ; i++ {
			select {
			case <-end:
				done <- nil
				return
			default:
			}
			e := episodeAt(i)
			e.Return = float64(i*7919%13) - 6
			if i >= 520 {
				e.Return -= 40
			}
			if err := process(i, e); err != nil {
				done <- err
				return
			}
		}
	}()
	select {
	case <-s.entered:
	case err := <-done:
		t.Fatal(err)
	case <-time.After(10 * time.Minute):
		t.Fatal("nothing drifted")
	}
	time.Sleep(300 * time.Millisecond) // so that the queue fills
	return done, func() { close(end) }
}

// A rebalance does not wait for a worker that waits for its ledger, and what the worker was given is kept for the next
// reader of the partition.
func TestRebalanceDoesNotWaitForAWorker(t *testing.T) {
	s := &stuck{Memory: *enginetest.NewMemory(), entered: make(chan struct{})}
	cfg := engine.DefaultSettings()
	p := enginetest.NewAlone(t.Context(), &cfg, &s.Memory, s, prometheus.NewRegistry())
	p.Begin(1)
	f := p.Feed(0)
	var read int64
	done, stop := driftUntilStuck(t, s, func(i int64, e ingest.Event) error {
		read = i + 1
		return f.Process(t.Context(), []ingest.Event{e})
	})
	began := time.Now()
	p.Ending()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	p.Revoke(0)
	if took := time.Since(began); took > 8*time.Second { // leavePatience is 10 s
		t.Errorf("the partition was let go of after %s", took)
	}
	kept, _ := f.Out.Keep()
	if int64(len(kept.Units)) != read {
		t.Errorf("%d of %d units are kept", len(kept.Units), read)
	}
	p.Workers.Abandon(engine.ErrGivenUp)
	if err := p.Stop(); !errors.Is(err, engine.ErrGivenUp) {
		t.Errorf("the worker ended with %v", err)
	}
}

// Workers that are taken away get a moment to end. After that, they must not report or save anything.
func TestWorkersThatDoNotEndAreLeft(t *testing.T) {
	s := &stuck{Memory: *enginetest.NewMemory(), entered: make(chan struct{})}
	r := newUnitsRig(t, s)
	k := int32(unitPartition("ranker", rigPartitions))
	d := r.reader(k)
	take := func(records ...[]byte) error {
		for _, b := range records {
			if err := d.ProcessMessages(t.Context(), []ingest.Message{{Value: b}}); err != nil {
				return err
			}
		}
		return nil
	}
	now := time.Now().UnixNano()
	mark, err := r.records.Mark(ingest.UnitMark{Partitions: 1, End: now, At: now})
	r.must(err)
	r.must(take(mark))
	done, stop := driftUntilStuck(t, s, func(i int64, e ingest.Event) error {
		u, err := r.records.Unit(&ingest.Unit{
			Group: ingest.NewGroup("ranker"), Agent: "a", Episode: fmt.Sprint(i), EndTS: e.TS, Pos: e.Pos, First: e.Pos, Last: e.Pos,
			Length: 10, HasReturn: true, Return: e.Return, Events: 1,
		})
		if err != nil {
			return err
		}
		return take(u)
	})
	r.readers.Ending()
	stop()
	r.must(<-done)
	saves, began := r.pipeline.Metrics.Saved, time.Now()
	before := testutil.ToFloat64(saves)
	if err := d.Workers.Leave(200 * time.Millisecond); !errors.Is(err, engine.ErrGivenUp) {
		t.Errorf("the workers ended with %v", err)
	}
	if took := time.Since(began); took > 8*time.Second { // leavePatience is 10 s
		t.Errorf("the workers were left after %s", took)
	}
	d.Workers.Wg.Wait() // it ends as soon as it can
	if after := testutil.ToFloat64(saves); after != before || len(r.pipeline.All()) != 0 {
		t.Errorf("%v saves after it was told to give up, %d policies", after-before, len(r.pipeline.All()))
	}
}

// A person's order is also given up if its worker must no longer report it.
func TestOrderGivesUpWithItsWorker(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	d := r.reader(0)
	worker, err := d.Workers.Worker(t.Context(), "ranker")
	r.must(err)
	began, answer := make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- worker.Ask(t.Context(), func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	<-began
	if err := d.Workers.Leave(50 * time.Millisecond); !errors.Is(err, engine.ErrGivenUp) {
		t.Errorf("the workers ended with %v", err)
	}
	if err := <-answer; !errors.Is(err, engine.ErrGivenUp) {
		t.Errorf("the order ended with %v", err)
	}
	d.Workers.Wg.Wait()
}

// markOf writes a mark of a telemetry partition, one of the given number of partitions, that another instance reads.
func (r *unitsRig) markOf(partition, partitions int32, ts time.Time) {
	r.t.Helper()
	m, err := r.records.Mark(ingest.UnitMark{Partition: partition, Partitions: partitions, TS: ts.UnixNano(), At: time.Now().UnixNano()})
	r.must(err)
	for k := range rigPartitions {
		r.must(r.topic.Append(r.t.Context(), k, kafkalog.Record{Value: m}))
	}
}

// written returns the number of a policy's units in the topic.
func (r *unitsRig) written(policy string) (n int) {
	r.t.Helper()
	for _, m := range r.topic.messages(unitPartition(policy, rigPartitions)) {
		u, _, err := r.records.Read(m.Value)
		r.must(err)
		if u != nil {
			n++
		}
	}
	return n
}

// Writers limit the units that readers keep in memory until a slower partition has been read as far. This also holds if
// the writing instance judges nothing, and if its workers only know an older position of all partitions.
func TestWritersWaitForPartitionsThatAreBehind(t *testing.T) {
	for name, judges := range map[string]bool{"without workers": false, "with workers that lag": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newUnitsRig(t, enginetest.NewMemory())
			start := time.Now().Add(-10 * time.Hour)
			at := func(i int64) time.Time { return start.Add(time.Duration(i) * time.Second) }
			var d *unitReader
			if judges {
				d = r.reader(0)
				r.markOf(0, 2, at(0)) // of the same partition, by its previous owner
				r.markOf(1, 2, at(100))
				r.must(d.ProcessMessages(t.Context(), r.topic.messages(0)))
			}
			r.feeds.Begin(2)
			f := r.feeds.Feed(0)
			done := make(chan error, 1)
			const units = 2 * engine.FeedBacklog
			go func() {
				for i := range int64(units) {
					if err := f.Process(t.Context(), []ingest.Event{ingesttest.Episode(0, i, "ranker", at(i))}); err != nil {
						done <- err
						return
					}
				}
				_, err := f.Out.Keep()
				done <- err
			}()
			testkit.Eventually(t, "as many units as may wait", func() bool { return r.written("ranker") >= engine.FeedBacklog })
			for range 15 {
				r.markOf(1, 2, at(100))
				time.Sleep(100 * time.Millisecond)
			}
			if n := r.written("ranker"); n > engine.FeedBacklog+100 {
				t.Errorf("%d units are written, of which more than %d wait", n, engine.FeedBacklog)
			}
			testkit.Eventually(t, "the rest", func() bool {
				r.markOf(1, 2, time.Now())
				if judges {
					r.must(d.ProcessMessages(t.Context(), r.topic.messages(0)))
				}
				return r.written("ranker") == units
			})
			r.must(<-done)
		})
	}
}

// While the memory limit is exceeded, units are read slowly, but not if many of them wait for later ones.
func TestUnitsThatWaitForMarksAreNotSlowed(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	k := int32(unitPartition("ranker", rigPartitions))
	d := r.reader(k)
	start, next := time.Now().Add(-10*time.Hour), int64(0)
	read := func(units int) time.Duration {
		began := time.Now()
		for range units {
			ts := start.Add(time.Duration(next) * time.Second)
			b, err := r.records.Unit(&ingest.Unit{
				Group: ingest.NewGroup("ranker"), Agent: "a", Episode: fmt.Sprint(next), EndTS: ts.UnixNano(), Length: 1, Events: 1,
				Pos: ingest.Position{Offset: next},
			})
			r.must(err)
			r.must(d.ProcessMessages(t.Context(), []ingest.Message{{Value: b}}))
			next++
		}
		return time.Since(began)
	}
	mark := func(partition int32, ts time.Time) {
		m, err := r.records.Mark(ingest.UnitMark{Partition: partition, Partitions: 2, TS: ts.UnixNano(), At: time.Now().UnixNano()})
		r.must(err)
		r.must(d.ProcessMessages(t.Context(), []ingest.Message{{Value: m}}))
	}
	mark(0, start)
	mark(1, start)
	read(engine.FeedBacklog + 1)
	r.pipeline.Memory.Passed.Store(true)
	if took := read(5 * engine.SlowUnits); took > engine.WorkerPulse {
		t.Errorf("%d units took %s while others wait", 5*engine.SlowUnits, took)
	}
	mark(0, time.Now())
	mark(1, time.Now())
	testkit.Eventually(t, "all to be judged", func() bool { return d.Waiting() == 0 })
	if took := read(2 * engine.SlowUnits); took < 2*engine.WorkerPulse {
		t.Errorf("%d units took %s", 2*engine.SlowUnits, took)
	}
}

// pinnedRig returns a rig that reads units. It has a policy whose baseline is in offsets that no longer exist, one
// whose baseline cannot be read while the brokers are unavailable, and others.
func pinnedRig(t *testing.T, away func() bool) (r *unitsRig, read func(d *unitReader, policy string, offset int64)) {
	t.Helper()
	r = newUnitsRig(t, enginetest.NewMemory())
	pinned := func(policy string, first int64) engine.PolicyConfig {
		entry := engine.PolicyConfig{Match: policy, Config: watch.DefaultConfig()}
		entry.Baseline = watch.BaselineConfig{From: watch.FromPinned, Units: 500, Offsets: []ingest.Range{{First: first, Last: first + 9}}}
		return entry
	}
	r.pipeline.Cfg.Policies = []engine.PolicyConfig{pinned("gone", 0), pinned("away", 10), {Match: "*", Config: watch.DefaultConfig()}}
	r.pipeline.Recorded = engine.NewRecordings(r.pipeline.Cfg, func(ctx context.Context, of ingest.Range, p ingest.Processor) error {
		switch {
		case of.First == 0:
			return recording.ErrRangeGone
		case away():
			return errors.New("no broker answers")
		}
		return p.Process(ctx, []ingest.Event{ingesttest.Episode(0, of.First, "away", time.Now().Add(-time.Hour))})
	})
	return r, func(d *unitReader, policy string, offset int64) {
		t.Helper()
		b, err := r.records.Unit(&ingest.Unit{
			Group: ingest.NewGroup(policy), Agent: "a", Episode: fmt.Sprint(offset), Length: 1, HasReturn: true, Events: 1,
			Pos: ingest.Position{Offset: offset},
		})
		r.must(err)
		r.must(d.ProcessMessages(t.Context(), []ingest.Message{{Value: b}}))
	}
}

// A baseline whose offsets no longer exist only stops its own policy, with a message; for one that temporarily cannot
// be read, the policy waits.
func TestPinnedBaselinesInACluster(t *testing.T) {
	t.Parallel()
	failures := 1
	r, read := pinnedRig(t, func() bool {
		failures--
		return failures >= 0
	})
	d := r.reader(0)
	now := time.Now().UnixNano()
	d.Workers.Marks.Take(&ingest.UnitMark{Partitions: 1, End: now, At: now})
	for i, policy := range []string{"gone", "other", "gone", "away", "other"} {
		read(d, policy, int64(i))
	}
	testkit.Eventually(t, "the policies with a baseline to be judged", func() bool {
		return slices.EqualFunc(r.pipeline.All(), []string{"away", "other"}, func(d *engine.RunningWorker, want string) bool { return d.Name == want }) &&
			d.Waiting() == 0
	})
	if got := testutil.ToFloat64(r.pipeline.Metrics.Dropped.WithLabelValues("no_baseline")); got != 2 {
		t.Errorf("%v units are counted as not judged", got)
	}
}

// A rebalance does not wait for a baseline, and the units that wait for it are kept for the next reader of the
// partition.
func TestRebalanceDoesNotWaitForABaseline(t *testing.T) {
	t.Parallel()
	var back atomic.Bool
	r, read := pinnedRig(t, func() bool { return !back.Load() })
	d := r.reader(0)
	read(d, "other", 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(d, "away", 1)
	}()
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	r.readers.Ending()
	<-done
	var state bytes.Buffer
	r.must(d.Snapshot(&state))
	r.readers.Revoke(0)
	if took := time.Since(began); took > 8*time.Second { // leavePatience is 10 s
		t.Errorf("the partition was let go of after %s", took)
	}
	back.Store(true)
	d = r.reader(0)
	r.must(d.Restore(&state))
	if d.Known["away"] == nil || d.Known["other"] == nil || len(d.Unsafe) < 2 {
		t.Errorf("of 2 units %d are kept, for %v", len(d.Unsafe), d.Known)
	}
}

// Written marks do not go beyond the limit either, for any partition.
func TestMarksKeepToTheLimit(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	start := time.Unix(1_000_000, 0)
	end := start.Add(time.Hour).UnixNano()
	read := ingest.UnitMark{TS: start.UnixNano(), Run: 3, End: end}
	if got := r.writer.within(read); got != read {
		t.Errorf("before anything is confirmed the mark is %+v", got)
	}
	r.writer.Confirm(start)
	limit := start.Add(-order.SendDelay)
	want := ingest.UnitMark{TS: limit.UnixNano(), End: limit.Add(order.WatermarkDelay).UnixNano()}
	if got := r.writer.within(read); got != want {
		t.Errorf("the mark is %+v, want %+v", got, want)
	}
	earlier := ingest.UnitMark{TS: start.Add(-time.Minute).UnixNano(), Run: 7}
	if got := r.writer.within(earlier); got != earlier {
		t.Errorf("a mark before the limit is %+v", got)
	}
}
