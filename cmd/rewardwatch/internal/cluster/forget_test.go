package cluster

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine/enginetest"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// forgetOrder returns the record of an order.
func (r *unitsRig) forgetOrder(policy string) []byte {
	r.t.Helper()
	b, err := r.records.Forget(ingest.ForgetOrder{Policy: policy, By: "ann", Why: "a test", At: time.Now().UnixNano()})
	r.must(err)
	return b
}

// An order that arrives over the units topic is carried out where the policy is judged, and all instances drop its open
// episodes.
func TestForgetOrdersOverTheUnitsTopic(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	k := unitPartition("ranker", rigPartitions)
	r.feeds.Begin(1)
	f := r.feeds.Feed(0)
	r.must(f.Process(t.Context(), []ingest.Event{ingesttest.OpenStep(0, "ranker"), ingesttest.OpenStep(1, "other")}))
	mine, others := r.reader(int32(k)), r.reader(int32(1-k))
	if _, err := mine.Workers.Worker(t.Context(), "ranker"); err != nil {
		t.Fatal(err)
	}
	r.must(r.writer.forget(t.Context(), ingest.ForgetOrder{Policy: "ranker", By: "ann", Why: "a test", At: time.Now().UnixNano()}))
	r.must(others.ProcessMessages(t.Context(), r.topic.messages(1-k)))
	if open := openEpisodes(t, f); open != 1 || len(r.pipeline.All()) != 1 {
		t.Errorf("%d open episodes and %d policies are left", open, len(r.pipeline.All()))
	}
	r.must(f.Process(t.Context(), []ingest.Event{ingesttest.OpenStep(2, "ranker")}))
	r.must(mine.ProcessMessages(t.Context(), r.topic.messages(k)))
	if open := openEpisodes(t, f); open != 2 {
		t.Errorf("the order from a partition that lags leaves %d open episodes: it drops one that began after the order", open)
	}
	if len(r.pipeline.All()) != 0 || len(mine.forgetting) != 0 {
		t.Errorf("%d policies and %d orders are left", len(r.pipeline.All()), len(mine.forgetting))
	}
	r.must(mine.ProcessMessages(t.Context(), []ingest.Message{{Value: r.forgetOrder("ranker")}})) // again, as after a crash
	if len(mine.forgetting) != 0 {
		t.Error("an order for a policy that is not known stays")
	}
	r.feeds.Revoke(0)
}

// A rebalance does not wait for a worker that is to forget, and the order is carried out by the instance that judges
// the policy next.
func TestForgetOrdersOutliveAGeneration(t *testing.T) {
	r := newUnitsRig(t, enginetest.NewMemory())
	k := int32(unitPartition("ranker", rigPartitions))
	d := r.reader(k)
	worker, err := d.Workers.Worker(t.Context(), "ranker")
	r.must(err)
	busy, idle := make(chan struct{}), make(chan struct{})
	asked := make(chan error, 1)
	go func() {
		asked <- worker.Ask(t.Context(), func(ctx context.Context) error {
			close(busy)
			<-idle
			return worker.Observe(ctx, &ingest.Unit{Group: ingest.NewGroup("ranker"), HasReturn: true, Events: 1}, time.Now())
		})
	}()
	<-busy
	done := make(chan error, 1)
	go func() { done <- d.ProcessMessages(t.Context(), []ingest.Message{{Value: r.forgetOrder("ranker")}}) }()
	r.readers.Ending()
	r.must(<-done)
	var state bytes.Buffer
	r.must(d.Snapshot(&state))
	close(idle)
	r.must(<-asked)
	r.must(d.Workers.Leave(time.Minute))
	if names, err := r.store.Names(engine.BankPrefix); err != nil || len(names) != 1 {
		t.Fatalf("saved are %v, %v", names, err)
	}
	d = r.reader(k)
	if len(r.pipeline.All()) != 1 {
		t.Fatalf("%d policies are restored", len(r.pipeline.All()))
	}
	r.must(d.Restore(&state))
	names, err := r.store.Names(engine.BankPrefix)
	if err != nil || len(names) != 0 || len(r.pipeline.All()) != 0 || len(d.forgetting) != 0 {
		t.Errorf("left are %v, %v, %d policies, %d orders", names, err, len(r.pipeline.All()), len(d.forgetting))
	}
}

// openEpisodes returns the number of a feed's open episodes after it has dropped those of forgotten policies.
func openEpisodes(t *testing.T, f *engine.PartitionFeed) int {
	t.Helper()
	if err := f.Process(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return f.Episodes.Open()
}
