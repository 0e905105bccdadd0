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
	// markEvery is the minimum time between two marks.
	markEvery = 500 * time.Millisecond
	// ackedForSave is how long the end of a generation waits for the brokers to acknowledge forwarded records.
	ackedForSave = 5 * time.Second
	// room is the number of bytes by which an event may exceed max_message, because it is encoded again with a header.
	room = 64 << 10
)

// MetricEvents is the name of the metric for forwarded events.
const MetricEvents = "rewardwatch_repartitioned_events_total" // {by="key|partition"}

// Options configures a Writer.
type Options struct {
	Kafka       ingest.KafkaConfig
	Topic       string                       // to write to
	Sources     []string                     // telemetry topics by index
	Key         func(e *ingest.Event) string // returns the key that a decision and its feedback share; "" if there is none
	Keys        string                       // describes Key; if it changes, events have other keys
	Senders     func(name string) bool       // as in receive.Recent; may be nil
	Clear       func(partition int32) error  // removes the state from before a partition was repartitioned; may be nil
	DeadLetters deadletter.Keeper            // closed by the caller
	Log         zerolog.Logger
	Registerer  prometheus.Registerer
}

// Writer is the Handler of a consumer that reads all telemetry topics, merged by Kafka timestamp. Only one Writer may
// run at a time. It forwards each event to a partition of its topic. An event with a key goes to the partition of the
// key, any other event to the partition with the same number as its source, modulo the number of partitions.
type Writer struct {
	Options
	topic   *kafkalog.Log
	sources []*kafkalog.Log // to determine their numbers of partitions
	byKey   prometheus.Counter
	others  prometheus.Counter
	refusal zerolog.Logger // logs a few messages per minute

	queues []*kafkalog.Queue // by partition of the topic; set before the first generation
	ctx    context.Context   // of the queues
	abort  context.CancelFunc
	stop   func() // stops the reading of the telemetry
	wg     sync.WaitGroup

	mu        sync.Mutex
	over      chan struct{} // closed when the generation ends
	overAt    time.Time     // when the generation ended; zero before
	assigned  map[int32]*source
	confirmed time.Time // last time at which there were no other partitions
	marked    time.Time // time of the last mark
	markedAt  time.Time // when it was written
	failed    error     // why the brokers permanently refuse a record
	unfit     error     // why nothing more may be forwarded
}

// Open returns a Writer. It reads the certificates and secrets named in the configuration, but does not connect.
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

// Run creates or checks the topic, and then calls read, which must read the telemetry into the Writer until its context
// ends. The error is ErrUnfit if the topic is not suitable. If the brokers permanently refuse a record, Run returns
// their error.
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
	w.abort() // records that are not written are not in a checkpoint either
	w.wg.Wait()
	return errors.Join(w.failure(), err)
}

// start begins writing. Reading stops if the brokers permanently refuse a record, or if the topic gets more partitions.
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

// end stops the reading of the telemetry for a reason. Records that are already in the queues are still written and
// saved.
func (w *Writer) end(why error) {
	w.mu.Lock()
	w.unfit = why
	w.mu.Unlock()
	w.stop()
}

// way returns the current way of events.
func (w *Writer) way() way { return way{w.Topic, len(w.queues), w.Keys} }

// refuseWay stops the reading, because events that an interrupted process has forwarded would be forwarded again to
// other partitions. Readers recognize repeated events only in the same partition.
func (w *Writer) refuseWay(s *source, before way) error {
	err := fmt.Errorf("%w: %s was repartitioned %s, but the configuration now says %s. The last shutdown was not clean, so events after the last checkpoint may already be in the topic. Start and stop the service once with the previous setting, or move the checkpoints partition-%s-* aside: reading then continues at the committed offsets of group %s, and those events are counted twice",
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

// Revoke implements ingest.Handler. The next generation starts without any partition.
func (w *Writer) Revoke(int32) {}

// patience returns how long a save may still wait for the brokers after the generation has ended.
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

// due returns the time of a mark that must be written now, or the zero time. At the time of the mark, all telemetry
// partitions were known and had been read to their ends.
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

// reached records that a source has been read to its end, and writes a mark if one is due.
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
