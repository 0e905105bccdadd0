package repartition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/deadletter"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
)

const (
	// markEvery is the least time between two marks.
	markEvery = 500 * time.Millisecond
	// ackedForSave is how long the end of a generation waits for the brokers to take what has been handed on.
	ackedForSave = 5 * time.Second
	// room is what an event may take beside max_message: it is encoded again, with a header.
	room = 64 << 10
)

// MetricEvents is the name of the metric of events sent on.
const MetricEvents = "rewardwatch_repartitioned_events_total" // {by="key|partition"}

// Options are the parts that a Writer works with.
type Options struct {
	Kafka       ingest.KafkaConfig
	Topic       string                       // to write to
	Sources     []string                     // the topics of the telemetry, by index
	Key         func(e *ingest.Event) string // that a decision and its feedback share; "" if the event has none
	Keys        string                       // says which Key that is: if it is another one, events have other keys
	Senders     func(name string) bool       // as in receive.Recent, may be nil
	Clear       func(partition int32) error  // removes what is left of the time before a partition was sent on, may be nil
	DeadLetters deadletter.Keeper            // closed by the caller
	Log         zerolog.Logger
	Registerer  prometheus.Registerer
}

// Writer is the Handler of a consumer that reads all topics of the telemetry, merged by Kafka's time: there may be only
// one at a time. It sends each event on to a partition of its topic: those with a key to the partition of the key, the
// others to that of the number of the partition that they come from.
type Writer struct {
	Options
	topic   *kafkalog.Log
	sources []*kafkalog.Log // to count their partitions
	byKey   prometheus.Counter
	others  prometheus.Counter
	refusal zerolog.Logger // logs a few times a minute

	queues []*kafkalog.Queue // by partition of the topic; set before the first generation
	ctx    context.Context   // of the queues
	abort  context.CancelFunc
	stop   func() // ends the reading of the telemetry
	wg     sync.WaitGroup

	mu        sync.Mutex
	over      chan struct{} // closed when the generation ends
	overAt    time.Time     // when that was, zero before
	assigned  map[int32]*source
	confirmed time.Time // when there were no other partitions
	marked    time.Time // the time of the last mark
	markedAt  time.Time // when it was written
	failed    error     // why the brokers refuse a record for good
	unfit     error     // why nothing more may be sent on
}

// Open reads the certificates and secrets that the configuration names. It does not connect.
func Open(o Options) (*Writer, error) {
	sent := promauto.With(o.Registerer).NewCounterVec(prometheus.CounterOpts{
		Name: MetricEvents,
		Help: "Events sent to ingest.kafka.repartition_topic, by how the partition was chosen: by key, or the same as the original.",
	}, []string{"by"})
	w := &Writer{
		Options: o, byKey: sent.WithLabelValues("key"), others: sent.WithLabelValues("partition"),
		refusal: o.Log.Sample(&zerolog.BurstSampler{Burst: 5, Period: time.Minute}), assigned: map[int32]*source{},
	}
	w.ctx, w.abort = context.WithCancel(context.Background())
	var err error
	if w.topic, err = kafkalog.Open(o.Kafka, o.Topic, o.Log); err != nil {
		return nil, err
	}
	for _, name := range o.Sources {
		source, err := kafkalog.Open(o.Kafka, name, o.Log)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		w.sources = append(w.sources, source)
	}
	return w, nil
}

// Close closes all connections. Call it after Run has returned.
func (w *Writer) Close() error {
	errs := []error{w.topic.Close()}
	for _, l := range w.sources {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Run makes or checks the topic, and then calls read, which reads the telemetry into the Writer until its context ends.
// The error is ErrUnfit if the topic is not fit, or that of the brokers if they refuse it.
func (w *Writer) Run(ctx context.Context, read func(context.Context) error) error {
	partitions, err := w.prepare(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	w.start(partitions)
	err = read(reading)
	w.abort() // what has not been written has not been saved
	w.wg.Wait()
	return errors.Join(w.failure(), err)
}

// start begins to write. If the brokers refuse a record for good, or the topic gets more partitions, reading ends.
func (w *Writer) start(partitions int) {
	w.queues = make([]*kafkalog.Queue, partitions)
	for k := range w.queues {
		w.queues[k] = kafkalog.NewQueue()
		w.wg.Go(func() {
			write := func(ctx context.Context, records ...kafkalog.Record) error { return w.topic.Append(ctx, k, records...) }
			if err := w.queues[k].Run(w.ctx, write); err != nil {
				w.mu.Lock()
				w.failed = fmt.Errorf("repartition telemetry by key: %w", err)
				w.mu.Unlock()
				w.stop()
			}
		})
	}
	w.wg.Go(w.watchPartitions)
}

// end ends the reading of the telemetry for a reason. What has been handed on is still written and saved.
func (w *Writer) end(why error) {
	w.mu.Lock()
	w.unfit = why
	w.mu.Unlock()
	w.stop()
}

// way returns the way of the events now.
func (w *Writer) way() way { return way{w.Topic, len(w.queues), w.Keys} }

// refuseWay ends the reading, as events that a killed process has sent on would be sent on again in another way: readers
// recognize them in the same partition only.
func (w *Writer) refuseWay(s *source, before way) error {
	err := fmt.Errorf("%w: %s was repartitioned %s, but the configuration now says %s. The last shutdown was not clean, so events after the last checkpoint may already be in the topic. Start and stop the service once with the previous setting, or move the checkpoints partition-%s-* aside: reading then continues at the committed offsets of group %s, and those events count twice",
		ErrOtherWay, s.names[0], before, w.way(), w.Sources[0], w.Kafka.Group)
	w.end(err)
	return err
}

func (w *Writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.failed, w.unfit)
}

// Begin implements ingest.Handler.
func (w *Writer) Begin(int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.overAt = make(chan struct{}), time.Time{}
	w.confirmed, w.marked = time.Time{}, time.Time{}
	clear(w.assigned)
}

// Confirm implements ingest.Handler.
func (w *Writer) Confirm(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.confirmed = at
}

// Assign implements ingest.Handler.
func (w *Writer) Assign(partition int32, _ ingest.CheckpointStore) (ingest.State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &source{writer: w, number: partition, over: w.over, put: make([]int64, len(w.queues)), reading: time.Now().UnixNano(), received: receive.Recent{Senders: w.Senders}}
	for _, topic := range w.Sources {
		s.names = append(s.names, sourceOf(topic, partition))
	}
	w.assigned[partition] = s
	return s, nil
}

// Ending implements ingest.Handler.
func (w *Writer) Ending() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overAt = time.Now()
	close(w.over)
}

// Revoke implements ingest.Handler. The next generation begins without any partition.
func (w *Writer) Revoke(int32) {}

// patience returns how long a save may wait for the brokers once the generation ends.
func (w *Writer) patience() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.failed != nil:
		return 0
	case w.overAt.IsZero():
		return ackedForSave
	}
	return max(0, time.Until(w.overAt.Add(ackedForSave)))
}

// due returns the time of a mark that is to be written now, zero for none: until then, all partitions of the telemetry
// are known, and each has been read to its end.
func (w *Writer) due(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.confirmed
	for _, s := range w.assigned {
		if s.ended.Before(at) {
			at = s.ended
		}
	}
	if !at.After(w.marked) || now.Sub(w.markedAt) < markEvery {
		return time.Time{}
	}
	w.marked, w.markedAt = at, now
	return at
}

// reached notes that a source has been read to its end, and writes a mark if one is due.
func (w *Writer) reached(s *source, at time.Time) error {
	w.mu.Lock()
	s.ended = at
	w.mu.Unlock()
	mark := w.due(time.Now())
	if mark.IsZero() {
		return nil
	}
	for k := range w.queues {
		r := kafkalog.Record{Value: []byte("mark"), Headers: []ingest.Header{markHeader(mark)}}
		if err := s.append(k, r); err != nil {
			return err
		}
	}
	return nil
}
