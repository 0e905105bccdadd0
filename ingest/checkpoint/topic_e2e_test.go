//go:build e2e

package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/deploy/deploytest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/kafkalog"
)

// TestE2ETopicOnApacheKafka runs the tests of the topic on a real broker, including a test that needs one.
func TestE2ETopicOnApacheKafka(t *testing.T) {
	brokers := startKafka(t)
	testTopic(t, brokers)
	t.Run("IsCompacted", func(t *testing.T) { testTopicIsCompacted(t, brokers) })
}

// startKafka starts a broker in a new directory.
func startKafka(t testing.TB) (brokers []string) {
	t.Helper()
	ports := deploytest.FreePorts(t, 2)
	deploytest.StartKafka(t, "../..", ports[0], ports[1])
	return []string{"127.0.0.1:" + ports[0]}
}

// quick returns settings with which the broker compacts records after a short time. It does not create segments of less
// than 1 MiB.
func quick() map[string]string {
	s := settings()
	s["segment.bytes"], s["segment.ms"], s["min.cleanable.dirty.ratio"], s["max.compaction.lag.ms"] = "1048576", "1000", "0.01", "1000"
	return s
}

// A log that the broker has compacted has the same content as before, for the next owner and for the one that wrote it.
func testTopicIsCompacted(t *testing.T, brokers []string) {
	c := newCluster(t, brokers, 3) // it exists
	c.make(t, "compacted", 1, quick())
	l := c.log(t, "compacted")
	count := func() (n int) {
		_, err := l.ReadOn(t.Context(), 0, 0, 0, func(r kafkalog.Record) error {
			if len(r.Value) > 0 { // tombstones remain for a day
				n++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	instance := c.instance(t, "compacted")
	s := instance.take(t, 0)
	want := ingest.Parts{}
	for i := range 200 {
		part := fmt.Sprint("part-", i%5)
		want[part] = bytes.Repeat([]byte{byte(i)}, 50_000)
		mustSave(t, s.Store, "bank-a", ingest.Parts{part: want[part]})
		if err := s.Append(t.Context(), fmt.Sprint("key-", i%3), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	before := count()
	for deadline := time.Now().Add(2 * time.Minute); count() > before/2; {
		if time.Now().After(deadline) {
			t.Fatalf("of %d records %d are left after two minutes", before, count())
		}
		time.Sleep(time.Second)
		mustSave(t, s.Store, "bank-b", parts("x", "so that the segment ends"))
	}
	mustSave(t, s.Store, "bank-a", nil)
	wantLoad(t, s.Store, "bank-a", want)
	for range 2 {
		next := c.instance(t, "compacted").take(t, 0)
		wantLoad(t, next.Store, "bank-a", want)
		notes := map[string]bool{}
		next.Read(func(key string, value []byte) { notes[key+" "+string(value)] = true })
		if len(notes) != 3 || !notes["key-0 198"] || !notes["key-1 199"] || !notes["key-2 197"] {
			t.Errorf("notes %v", notes)
		}
		if err := s.Save("bank-a", parts("x", "lost"), nil); !errors.Is(err, ingest.ErrFenced) {
			t.Errorf("the owner of old gets %v", err)
		}
		s = next
		mustSave(t, s.Store, "bank-b", parts("x", "y"))
	}
	t.Logf("of %d records %d are left", before, count())
}

// BenchmarkTopicPut measures saves of one segment: alone on a partition of the topic, and while another instance writes
// as much to it, which must be read.
func BenchmarkTopicPut(b *testing.B) {
	c := newCluster(b, startKafka(b), 1)
	for _, size := range []int{10_000, 1_000_000} {
		for _, shared := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dkB/shared=%t", size/1000, shared), func(b *testing.B) {
				instance := c.instance(b, fmt.Sprintf("put-%d-%t-%d", size, shared, time.Now().UnixNano()))
				held := instance.take(b, 0).held
				other := instance.take(b, 1).held
				segment := randomBytes(size)
				generation := uint64(0)
				for b.Loop() {
					generation++
					if shared {
						b.StopTimer()
						mustPut(b, other, "bank-a", generation, segment)
						b.StartTimer()
					}
					mustPut(b, held, "bank-a", generation, segment)
				}
			})
		}
	}
}

// BenchmarkTopicTakeOver takes over a partition of 100 MB, of which 5 MB are live, in 50 checkpoints, and loads them.
func BenchmarkTopicTakeOver(b *testing.B) {
	c := newCluster(b, startKafka(b), 1)
	s := c.instance(b, "taken").take(b, 0)
	const names, size, rounds = 50, 100_000, 20
	for round := range rounds {
		for i := range names {
			data := randomBytes(size)
			data[0] = byte(round)
			mustSave(b, s.Store, fmt.Sprint("bank-", i), ingest.Parts{"x": data})
		}
	}
	for b.Loop() {
		next := c.instance(b, "taken").take(b, 0)
		for i := range names {
			if p, err := next.Load(fmt.Sprint("bank-", i)); err != nil || len(p["x"]) != size || p["x"][0] != rounds-1 {
				b.Fatal(len(p), err)
			}
		}
	}
}
