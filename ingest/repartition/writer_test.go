package repartition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// rig is a Writer on a broker with one topic of telemetry.
type rig struct {
	t *testing.T
	*Writer
	broker  *ingesttest.Broker
	letters *ingesttest.Letters
}

const rigPartitions = 3

func newRig(t *testing.T) *rig {
	t.Helper()
	broker, err := ingesttest.Start(rigPartitions, "telemetry")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	r := &rig{t: t, broker: broker, letters: &ingesttest.Letters{}}
	cfg := ingest.DefaultKafkaConfig()
	cfg.Brokers, cfg.MaxMessage = broker.Addrs(), 100*ingest.KiB
	if r.Writer, err = Open(Options{
		Kafka: cfg, Topic: "joined", Sources: []string{"telemetry"}, Key: func(e *ingest.Event) string { return e.EpisodeID },
		DeadLetters: r.letters, Log: zerolog.Nop(), Registerer: prometheus.NewRegistry(),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// run runs the writer, and calls read with the states of all partitions.
func (r *rig) run(read func(states []ingest.State)) error {
	return r.Run(r.t.Context(), func(context.Context) error {
		r.Begin(rigPartitions)
		r.Confirm(time.Now())
		var states []ingest.State
		for p := range int32(rigPartitions) {
			s, err := r.Assign(p, nil)
			if err != nil {
				r.t.Fatal(err)
			}
			states = append(states, s)
		}
		read(states)
		return nil
	})
}

// written returns the messages of the topic by partition.
func (r *rig) written() (all [rigPartitions][]kafkalog.Record) {
	for p := range all {
		end, err := r.topic.End(r.t.Context(), p)
		if err == nil {
			err = r.topic.Read(r.t.Context(), p, 0, end, func(k kafkalog.Record) error {
				all[p] = append(all[p], k)
				return nil
			})
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return all
}

func events(partition int32, offset int64, episodes ...string) (batch []ingest.Event) {
	for i, id := range episodes {
		batch = append(batch, ingest.Event{
			Pos:    ingest.Position{Partition: ingest.PartitionOf(0, partition), Offset: offset, Record: int32(i)},
			Policy: "p", EpisodeID: id, HasReward: true, Reward: float64(i), Step: -1, Length: -1,
		})
	}
	return batch
}

func save(s ingest.State) error { return s.Snapshot(&bytes.Buffer{}) }

// All events of a key are sent to one partition. A save returns once all of them are in the topic.
func TestEventsGoToThePartitionOfTheirKey(t *testing.T) {
	r := newRig(t)
	err := r.run(func(states []ingest.State) {
		for p, s := range states {
			if err := s.(ingest.Processor).Process(t.Context(), events(int32(p), 7, "a", "b", "c", "d", "")); err != nil {
				t.Fatal(err)
			}
			if err := save(s); err != nil {
				t.Fatal(err)
			}
		}
		place := map[string]int{}
		for p, records := range r.written() {
			keyless := 0
			for _, k := range records {
				id := fmt.Sprint(strings.Count(string(k.Value), `"episode_id"`), string(k.Value))
				if strings.HasPrefix(id, "0") {
					keyless++
					continue
				}
				if at, known := place[id]; known && at != p {
					t.Errorf("%s is in the partitions %d and %d", id, at, p)
				}
				place[id] = p
			}
			if keyless != 1 {
				t.Errorf("%d events without a key are in partition %d", keyless, p)
			}
		}
		if len(place) != 4 {
			t.Errorf("events %v", place)
		}
		r.Ending()
	})
	if err != nil {
		t.Error(err)
	}
}

// A mark is written to all partitions once all sources have been read to their ends. It does not go beyond any of them.
func TestMarksTellOfAllSources(t *testing.T) {
	r := newRig(t)
	began := time.Now()
	err := r.run(func(states []ingest.State) {
		idle := func(n int, at time.Time) {
			if err := states[n].Idle(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
		idle(0, began)
		idle(1, began.Add(-time.Second))
		for _, s := range states {
			if err := save(s); err != nil {
				t.Fatal(err)
			}
		}
		for p, records := range r.written() {
			if len(records) > 0 {
				t.Errorf("partition %d has a mark before all sources were read to their ends", p)
			}
		}
		idle(2, began)
		if err := save(states[2]); err != nil {
			t.Fatal(err)
		}
		for p, records := range r.written() {
			if len(records) != 1 || string(records[0].Value) != "mark" {
				t.Errorf("partition %d has %d records", p, len(records))
			}
		}
		if !r.marked.Equal(began.Add(-time.Second)) {
			t.Errorf("the mark is of %s before the first end", began.Sub(r.marked))
		}
		r.Ending()
	})
	if err != nil {
		t.Error(err)
	}
}

// Events that are too large for the topic become dead letters with their position in the telemetry.
func TestEventsThatAreTooLargeBecomeDeadLetters(t *testing.T) {
	r := newRig(t)
	err := r.run(func(states []ingest.State) {
		large := events(1, 9, strings.Repeat("x", 200<<10), "b")
		if err := states[1].(ingest.Processor).Process(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		if err := save(states[1]); err != nil {
			t.Fatal(err)
		}
		r.Ending()
	})
	kept := r.letters.Kept()
	if err != nil || len(kept) != 1 || kept[0].Topic != "telemetry" || kept[0].Reason != ingest.ReasonTooLarge || kept[0].Pos.String() != "1/9" {
		t.Errorf("%v, letters %+v", err, kept)
	}
}

// If the brokers are unavailable at the end of a generation, only positions of events in the topic are saved.
func TestNothingIsSavedThatIsNotWritten(t *testing.T) {
	r := newRig(t)
	err := r.run(func(states []ingest.State) {
		defer func() { r.broker.Stop() }()
		r.broker.Fail(kmsg.Produce, kerr.NotLeaderForPartition, -1)
		if err := states[0].(ingest.Processor).Process(t.Context(), events(0, 1, "a")); err != nil {
			t.Fatal(err)
		}
		r.Ending()
		r.mu.Lock()
		r.overAt = r.overAt.Add(-ackedForSave) // instead of waiting
		r.mu.Unlock()
		if err := save(states[0]); !errors.Is(err, kafkalog.ErrNotWritten) {
			t.Errorf("a save returns %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// If a broker refuses records, the writer ends with the broker's error.
func TestARefusalEndsTheWriter(t *testing.T) {
	r := newRig(t)
	r.broker.Fail(kmsg.Produce, kerr.TopicAuthorizationFailed, -1)
	err := r.Run(t.Context(), func(ctx context.Context) error {
		r.Begin(1)
		s, err := r.Assign(0, nil)
		if err == nil {
			err = s.(ingest.Processor).Process(ctx, events(0, 1, "a"))
		}
		<-ctx.Done()
		r.Ending()
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "Topic Authorization Failed") || !strings.Contains(err.Error(), "joined") {
		t.Errorf("the error is %v", err)
	}
}

// A partition that was judged without a repartition topic continues at its position once a checkpoint has its reading.
// The data beside its checkpoint is then removed.
func TestSourceGoesOnWhereAFeedEnded(t *testing.T) {
	r := newRig(t)
	var cleared []int32
	failing := errors.New("no disk")
	r.Clear = func(partition int32) error {
		cleared = append(cleared, partition)
		return failing
	}
	err := r.run(func(states []ingest.State) {
		feed := saved.Format[struct{}]{Version: 6}
		var b bytes.Buffer
		if err := feed.WriteFrame(&b, &struct{}{}); err != nil {
			t.Fatal(err)
		}
		s := states[2].(*source)
		reading := s.reading
		if err := s.Restore(&b); err != nil || s.reading != reading || !s.Renewed() {
			t.Errorf("restored with %v, reading %d, want %d", err, s.reading, reading)
		}
		if err := s.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		s.Saved()
		failing = nil
		s.Saved()
		s.Saved()
		if !slices.Equal(cleared, []int32{2, 2}) {
			t.Errorf("cleared %v", cleared)
		}
		again := states[1].(*source)
		if err := again.Restore(&b); err != nil || again.reading != reading || again.Renewed() {
			t.Errorf("restored with %v, reading %d, want %d", err, again.reading, reading)
		}
		r.Ending()
	})
	if err != nil {
		t.Error(err)
	}
}

// Events that may already be in the topic are not sent again with other settings. After an orderly stop there are none.
func TestAnotherWayIsTakenOnlyAfterAnOrderlyStop(t *testing.T) {
	for name, change := range map[string]func(*rig) error{
		"keys":  func(r *rig) error { r.Keys = "p=labels.other"; return nil },
		"topic": func(r *rig) error { r.Topic = "another"; return nil },
		"partitions": func(r *rig) error {
			return r.topic.Make(t.Context(), rigPartitions+1, map[string]string{"max.message.bytes": "1048588"})
		},
		"nothing": func(*rig) error { return nil },
	} {
		for _, orderly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", name, orderly), func(t *testing.T) {
				var b bytes.Buffer
				before := newRig(t)
				if err := before.run(func(states []ingest.State) {
					s := states[0].(*source)
					if s.Shrunk() {
						t.Error("it is to be saved in the midst of its generation")
					}
					if orderly {
						before.Ending()
						if !s.Shrunk() {
							t.Error("it is not saved at the end of its generation")
						}
					}
					if err := s.Snapshot(&b); err != nil {
						t.Fatal(err)
					}
					if s.Shrunk() {
						t.Error("it is saved again and again")
					}
					if !orderly {
						before.Ending()
					}
				}); err != nil {
					t.Fatal(err)
				}
				r := newRig(t)
				if err := change(r); err != nil {
					t.Fatal(err)
				}
				refused := !orderly && name != "nothing"
				err := r.run(func(states []ingest.State) {
					defer r.Ending()
					s := states[0].(*source)
					if err := s.Restore(&b); err != nil {
						t.Fatal(err)
					}
					if s.Renewed() != orderly {
						t.Errorf("it is to be saved before anything is sent on: %t", s.Renewed())
					}
					if !orderly {
						return
					}
					if err := save(s); err != nil || s.whole {
						t.Errorf("whole %t, %v", s.whole, err)
					}
				})
				if errors.Is(err, ErrOtherWay) != refused || !refused && err != nil {
					t.Errorf("the error is %v", err)
				}
				if refused && !strings.Contains(err.Error(), "telemetry/0 was repartitioned to 3 partitions of joined") {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

// After a refused change of the settings, nothing is sent or saved.
func TestARefusedWayIsNotTaken(t *testing.T) {
	r := newRig(t)
	err := r.run(func(states []ingest.State) {
		defer r.Ending()
		var b bytes.Buffer
		if err := sourceFormat.WriteFrame(&b, &sourceState{Reading: 7, Way: way{"joined", 2, ""}}); err != nil {
			t.Fatal(err)
		}
		if err := states[0].Restore(&b); err != nil {
			t.Fatal(err)
		}
		if err := states[0].(ingest.Processor).Process(t.Context(), events(0, 7, "a", "b", "c")); err != nil {
			t.Fatal(err)
		}
		if err := save(states[0]); !errors.Is(err, ErrOtherWay) {
			t.Errorf("it is saved: %v", err)
		}
		if err := save(states[1]); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, ErrOtherWay) {
		t.Errorf("the error is %v", err)
	}
	for p, records := range r.written() {
		if len(records) > 0 {
			t.Errorf("partition %d has %d records", p, len(records))
		}
	}
}

// If the topic gets more partitions, the service ends once the sent events are saved.
func TestATopicThatGrowsEndsTheWriterInOrder(t *testing.T) {
	r := newRig(t)
	err := r.Run(t.Context(), func(ctx context.Context) error {
		r.Begin(1)
		s, err := r.Assign(0, nil)
		if err != nil {
			return err
		}
		if err := s.(ingest.Processor).Process(ctx, events(0, 1, "a")); err != nil {
			return err
		}
		grow := kmsg.NewPtrCreatePartitionsRequest()
		grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "joined", Count: rigPartitions + 1}}
		if _, err := grow.RequestWith(ctx, r.broker.Client()); err != nil {
			return err
		}
		<-ctx.Done()
		r.Ending()
		if err := save(s); err != nil || !s.(*source).whole {
			t.Errorf("whole %t, %v", s.(*source).whole, err)
		}
		return nil
	})
	if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "joined now has 4 partitions instead of 3") {
		t.Errorf("the error is %v", err)
	}
}

// A missing topic is created like the telemetry's. An existing one keeps its partitions. A topic that would lose
// telemetry is an error that says how to fix it.
func TestTopicsThatAreUnfit(t *testing.T) {
	for name, c := range map[string]struct {
		partitions int
		settings   map[string]string
		err        string
	}{
		"missing":    {},
		"fit":        {rigPartitions, map[string]string{"max.message.bytes": "1048588"}, ""},
		"fewer":      {rigPartitions - 1, map[string]string{"max.message.bytes": "1048588"}, ""},
		"more":       {rigPartitions + 1, map[string]string{"max.message.bytes": "1048588"}, ""},
		"compacting": {rigPartitions, map[string]string{"cleanup.policy": "compact"}, "--entity-name joined --add-config cleanup.policy=delete"},
		"small":      {rigPartitions, map[string]string{"max.message.bytes": "131072"}, "--add-config max.message.bytes=167936"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if c.partitions > 0 {
				if err := r.topic.Make(t.Context(), c.partitions, c.settings); err != nil {
					t.Fatal(err)
				}
			}
			n, err := r.prepare(t.Context())
			if (err != nil) != (c.err != "") || err != nil && (!errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if want := cmp.Or(c.partitions, rigPartitions); err == nil && n != want {
				t.Errorf("%d partitions, want %d", n, want)
			}
			if policy, err := r.topic.Setting(t.Context(), "cleanup.policy"); c.partitions == 0 && (err != nil || policy != "delete") {
				t.Errorf("cleanup.policy is %s, %v", policy, err)
			}
		})
	}
}

// If the topic may not be created, the error is returned immediately.
func TestTopicThatMayNotBeMade(t *testing.T) {
	r := newRig(t)
	r.broker.Fail(kmsg.CreateTopics, kerr.TopicAuthorizationFailed, -1)
	if _, err := r.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "Topic Authorization Failed") {
		t.Errorf("the error is %v", err)
	}
}
