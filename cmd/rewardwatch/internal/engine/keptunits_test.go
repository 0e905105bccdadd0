package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// keeping returns a service with the given save interval and room for kept units.
func keeping(t *testing.T, every time.Duration, most int64) *alone {
	t.Helper()
	m := newMemory()
	cfg := DefaultSettings()
	cfg.Checkpoint.Every = model.Duration(every)
	p := newAlone(t.Context(), &cfg, m, m, prometheus.NewRegistry())
	p.kept.most = most
	return p
}

// Units that have become safe leave the memory and the checkpoint of a partition in which nothing arrives any more,
// also after a restart.
func TestAnIdlePartitionLetsGoOfSafeUnits(t *testing.T) {
	t.Parallel()
	p := keeping(t, time.Hour, 1<<30)
	defer func() { _ = p.Stop() }()
	f := p.Feed(0)
	policies := someNames("policy-", 10)
	for i := range 50 {
		feedSummaries(t, f, int64(i*len(policies)), time.Minute, policies...)
	}
	var large bytes.Buffer
	if err := f.Snapshot(&large); err != nil {
		t.Fatal(err)
	}
	feed := func(f *PartitionFeed) {
		t.Helper()
		testkit.Eventually(t, "safe units", func() bool {
			p.saveWorkers(t, 1)
			return f.Shrunk()
		})
		testkit.Eventually(t, "all units to be safe", func() bool {
			p.saveWorkers(t, 1)
			_ = f.Shrunk()
			return len(f.Out.(*directPartition).Unsafe) == 0
		})
		var small bytes.Buffer
		if err := f.Snapshot(&small); err != nil {
			t.Fatal(err)
		}
		if f.Shrunk() {
			t.Error("what was saved would be saved again")
		}
		testkit.Eventually(t, "no unit to be counted", func() bool { // the last ones wait until the partition is read to its end
			if err := f.Idle(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			kept, waiting := p.kept.bytes()
			return kept == 0 && waiting == 0
		})
		if 4*small.Len() > large.Len() {
			t.Errorf("the checkpoint has %d bytes and had %d", small.Len(), large.Len())
		}
	}
	feed(f)
	p.Revoke(0)
	again := p.Feed(0)
	if err := again.Restore(bytes.NewReader(large.Bytes())); err != nil {
		t.Fatal(err)
	}
	feed(again)
}

// The total of what is kept for all partitions stays below its limit, since reading waits for policies to be saved, and
// these are saved early for it. All units are judged.
func TestKeptUnitsAreBoundedOverAllPartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const partitions, policies, rounds, most = 4, 20, 200, 1 << 20
	p := keeping(t, time.Hour, most)
	defer func() { _ = p.Stop() }()
	p.Begin(partitions)
	var feeds []*PartitionFeed
	for i := range int32(partitions) {
		feeds = append(feeds, p.Feed(i))
	}
	largest := int64(0)
	start := time.Now().Add(-time.Hour)
	done := make(chan error, partitions)
	for i, f := range feeds {
		go func() {
			for round := range rounds {
				var batch []ingest.Event
				for k := range policies {
					e := ingesttest.Episode(int32(i), int64(round*policies+k), fmt.Sprint("policy-", k), start.Add(time.Duration(round)*time.Second))
					batch = append(batch, e)
				}
				if err := f.Process(t.Context(), batch); err != nil {
					done <- err
					return
				}
			}
			done <- f.Idle(t.Context(), time.Now())
		}()
	}
	for ended := 0; ended < partitions; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			ended++
		case <-time.After(time.Millisecond):
			kept, _ := p.kept.bytes()
			largest = max(largest, kept)
		}
	}
	slack := int64(partitions * (crowdedEvery + policies) * 1024)
	if largest > 2*most+slack || largest < most/2 {
		t.Errorf("%d bytes were kept at most, the bound is %d", largest, most)
	}
	testkit.Eventually(t, "all units", func() bool { return p.judged() == partitions*policies*rounds })
}
