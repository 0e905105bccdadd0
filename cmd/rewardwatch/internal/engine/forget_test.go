package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/detectors/capacity"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// forgetful returns a service with room for a number of streams, on a disk that outlives it.
func forgetful(t *testing.T, disk *ingesttest.Segments, streams int, policies ...string) *alone {
	t.Helper()
	cfg := DefaultSettings()
	cfg.Limits.Streams, cfg.Checkpoint.Every = streams, 1<<60
	for _, match := range policies {
		cfg.Policies = append(cfg.Policies, PolicyConfig{Match: match, Config: watch.DefaultConfig()})
	}
	store := checkpoint.NewStore(disk, zerolog.Nop(), prometheus.NewRegistry())
	p := newAlone(t.Context(), &cfg, store, newMemory(), prometheus.NewRegistry())
	names, err := store.Names(BankPrefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.workers.Restore(t.Context(), names); err != nil {
		t.Fatal(err)
	}
	return p
}

// feedSummaries feeds one episode of each policy.
func feedSummaries(t *testing.T, f *PartitionFeed, offset int64, ago time.Duration, policies ...string) int64 {
	t.Helper()
	for _, policy := range policies {
		if err := f.Process(t.Context(), []ingest.Event{ingesttest.Episode(0, offset, policy, time.Now().Add(-ago))}); err != nil {
			t.Fatal(err)
		}
		offset++
	}
	return offset
}

func someNames(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

// A forgotten policy leaves nothing behind, frees its streams, and starts from scratch when units of it arrive.
func TestAForgottenPolicyStartsFromNothing(t *testing.T) {
	t.Parallel()
	disk := ingesttest.NewSegments()
	p := forgetful(t, disk, 3)
	f := p.Feed(0)
	next := feedSummaries(t, f, 0, time.Minute, "keep")
	testkit.Eventually(t, "the two streams of keep", func() bool { return p.judged() == 1 })
	next = feedSummaries(t, f, next, time.Minute, "drop", "drop")
	testkit.Eventually(t, "the last free stream", func() bool { return p.judged() == 3 })
	next = feedSummaries(t, f, next, time.Minute, "late")
	if len(p.All()) != 2 || p.tenants.Limits()[0].Refused() == 0 {
		t.Fatalf("%d policies, %d refused", len(p.All()), p.tenants.Limits()[0].Refused())
	}
	a := p.Telemetry
	by := alerts.Decision{Kind: alerts.Reset, By: "ann", Why: "a test", At: time.Now()}
	if err := a.ForgetPolicy(t.Context(), "nothing", by); !errors.Is(err, ErrUnknownPolicy) {
		t.Error("what is not known was forgotten")
	}
	if err := a.ForgetPolicy(t.Context(), "drop", by); err != nil {
		t.Fatal(err)
	}
	if names, _ := disk.Names(BankPrefix + "drop"); len(names) != 0 || len(p.All()) != 1 {
		t.Errorf("%v and %d policies are left", names, len(p.All()))
	}
	next = feedSummaries(t, f, next, time.Minute, "drop")
	testkit.Eventually(t, "a new beginning", func() bool { return len(p.All()) == 2 && p.All()[0].Policy.Summary().Groups != nil && p.judged() == 2 })
	if units := f.Out.(*directPartition).Unsafe; len(units) != 2 {
		t.Errorf("%d units are kept", len(units))
	}
	var state bytes.Buffer
	if err := f.Snapshot(&state); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	again := forgetful(t, disk, 3)
	defer func() { _ = again.Stop() }()
	g := again.Feed(0)
	if err := g.Restore(bytes.NewReader(state.Bytes())); err != nil {
		t.Fatal(err)
	}
	feedSummaries(t, g, next, time.Minute, "drop")
	testkit.Eventually(t, "all units after a restart", func() bool { return again.judged() == 3 })
}

// A delivery does not keep the routes to forgotten policies in memory.
func TestRoutesToForgottenPoliciesAreDropped(t *testing.T) {
	t.Parallel()
	p := forgetful(t, ingesttest.NewSegments(), 6)
	defer func() { _ = p.Stop() }()
	f := p.Feed(0)
	feedSummaries(t, f, 0, time.Minute, "keep", "drop", "keep")
	d := f.Out.(*directPartition).Delivery
	keep := d.Known["keep"]
	if d.recent != keep || keep.next != d.Known["drop"] || keep.next == nil {
		t.Fatalf("the last route is %+v", d.recent)
	}
	err := d.again(func() error {
		by := alerts.Decision{Kind: alerts.Reset, By: "ann", Why: "a test", At: time.Now()}
		for _, policy := range []string{"drop", "keep"} {
			if err := p.ForgetPolicy(t.Context(), policy, by); err != nil {
				t.Fatal(err)
			}
		}
		_, err := d.follow(t.Context(), "drop")
		return err
	})
	if !errors.Is(err, errForgotten) || keep.next != nil {
		t.Errorf("a route still leads to %+v, %v", keep.next, err)
	}
	if kept := d.Kept(); len(kept) != 0 || len(d.Known) != 0 || d.recent != nil {
		t.Errorf("%d units and %d routes are kept, the last one is %+v", len(kept), len(d.Known), d.recent)
	}
}

// A checkpoint that was emptied but not removed is that of a forgotten policy.
func TestForgettingThatWasCutShortIsFinished(t *testing.T) {
	disk := ingesttest.NewSegments()
	store := checkpoint.NewStore(disk, zerolog.Nop(), prometheus.NewRegistry())
	if err := store.Save(BankPrefix+"half", ingest.Parts{"policy": []byte("x")}, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Save(BankPrefix+"half", nil, []string{"policy"}); err != nil {
		t.Fatal(err)
	}
	p := forgetful(t, disk, 4)
	defer func() { _ = p.Stop() }()
	if names, _ := disk.Names(BankPrefix); len(names) != 0 || len(p.All()) != 0 {
		t.Errorf("%v and %d policies are left", names, len(p.All()))
	}
}

// Names that the configuration does not match use no streams and groups, in any number, and over a restart.
func TestUnmatchedNamesTakeNoRoom(t *testing.T) {
	t.Parallel()
	disk := ingesttest.NewSegments()
	p := forgetful(t, disk, 4, "checkout-*")
	f := p.Feed(0)
	next := feedSummaries(t, f, 0, time.Minute, someNames("stray-", 25_000)...)
	var state bytes.Buffer
	if err := f.Snapshot(&state); err != nil {
		t.Fatal(err)
	}
	if state.Len() > 2000 {
		t.Errorf("names that are not watched take %d bytes of the checkpoint", state.Len())
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	again := forgetful(t, disk, 4, "checkout-*")
	defer func() { _ = again.Stop() }()
	g := again.Feed(0)
	if err := g.Restore(&state); err != nil {
		t.Fatal(err)
	}
	feedSummaries(t, g, next, time.Minute, "checkout-ranker")
	testkit.Eventually(t, "a unit of the policy that is watched", func() bool { return again.judged() == 1 })
}

// If limits.streams is reached, policies without a unit for a day make room, with and without a restart; the others
// stay.
func TestPoliciesOfThePastMakeRoom(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			disk := ingesttest.NewSegments()
			p := forgetful(t, disk, 21)
			f := p.Feed(0)
			next := feedSummaries(t, f, 0, 48*time.Hour, someNames("once-", 10)...)
			testkit.Eventually(t, "units of ten policies", func() bool { return p.judged() == 10 })
			next = feedSummaries(t, f, next, time.Minute, "ranker")
			testkit.Eventually(t, "units", func() bool { return p.judged() == 11 })
			next = feedSummaries(t, f, next, time.Minute, "new")
			if p.tenants.Limits()[0].Refused() == 0 {
				t.Fatal("the limit is not reached")
			}
			now := time.Now()
			if restart {
				var state bytes.Buffer
				if err := f.Snapshot(&state); err != nil {
					t.Fatal(err)
				}
				if err := p.Stop(); err != nil {
					t.Fatal(err)
				}
				p = forgetful(t, disk, 21)
				f = p.Feed(0)
				if err := f.Restore(&state); err != nil {
					t.Fatal(err)
				}
			} else {
				now = now.Add(25 * time.Hour)
				feedSummaries(t, f, next, time.Minute, "ranker")
				next++
				testkit.Eventually(t, "a unit", func() bool { return p.judged() == 12 })
			}
			defer func() { _ = p.Stop() }()
			p.expire(t.Context(), p.tenants.Limits()[0], now)
			left := map[string]bool{}
			for _, r := range p.All() {
				left[r.Name] = true
			}
			if restart && (len(left) != 1 || !left["ranker"]) {
				t.Errorf("left are %v", left)
			}
			if !restart && len(left) > 1 {
				t.Errorf("left are %v", left)
			}
			feedSummaries(t, f, next, time.Minute, "new")
			testkit.Eventually(t, "the new one", func() bool { return len(p.All()) == len(left)+1 })
		})
	}
}

// openEpisodes returns the number of a feed's open episodes.
func (f *PartitionFeed) openEpisodes(t *testing.T) int {
	t.Helper()
	if err := f.Process(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return f.Episodes.Open()
}

// An order that arrives again, because the units topic is read again after a crash or lags in one of its partitions,
// does not affect episodes that were opened since.
func TestAnOrderToForgetIsCarriedOutOnce(t *testing.T) {
	p := newTestPipeline(t, newMemory())
	f := p.Feed(0)
	next := int64(0)
	wantOpen := func(want int, after string) {
		t.Helper()
		if open := f.openEpisodes(t); open != want {
			t.Errorf("after %s %d episodes are open, want %d", after, open, want)
		}
	}
	begin := func() {
		t.Helper()
		if err := f.Process(t.Context(), []ingest.Event{ingesttest.OpenStep(next, "drop")}); err != nil {
			t.Fatal(err)
		}
		next++
	}
	restart := func() {
		t.Helper()
		var state bytes.Buffer
		if err := f.Snapshot(&state); err != nil {
			t.Fatal(err)
		}
		f = p.Feed(0)
		if err := f.Restore(&state); err != nil {
			t.Fatal(err)
		}
	}
	// The clocks of the instances that receive orders may differ.
	first, second := time.Unix(1_800_000_000, 5), time.Unix(1_800_000_000, 1)
	begin()
	p.Forget("drop", first)
	wantOpen(0, "an order")
	begin()
	p.Forget("drop", first)
	wantOpen(1, "the same order")
	p.Forget("other", second)
	wantOpen(1, "an order for another policy")
	p.Forget("drop", second)
	restart() // with an order that waits for the next batch
	wantOpen(0, "a second order")
	begin()
	restart()
	p.Forget("drop", first)
	p.Forget("drop", second)
	wantOpen(1, "both orders once more")
	for i := range mostForgotten {
		p.Forget(fmt.Sprint("other-", i), first)
	}
	wantOpen(1, "many orders")
	if len(f.obeyed) != mostForgotten {
		t.Errorf("%d orders are remembered", len(f.obeyed))
	}
	f.Episodes.Close()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// An order that cannot be carried out does not affect the open episodes of the policy.
func TestOpenEpisodesAreDroppedOnceThePolicyIsForgotten(t *testing.T) {
	t.Parallel()
	n := &noting{memory: *newMemory()}
	cfg := DefaultSettings()
	p := newAlone(t.Context(), &cfg, &n.memory, n, prometheus.NewRegistry())
	f := p.Feed(0)
	next := feedSummaries(t, f, 0, time.Minute, "drop")
	testkit.Eventually(t, "units", func() bool { return p.judged() == 1 })
	if err := f.Process(t.Context(), []ingest.Event{ingesttest.OpenStep(next, "drop")}); err != nil {
		t.Fatal(err)
	}
	a := p.Telemetry
	by := alerts.Decision{Kind: alerts.Reset, By: "ann", Why: "a test", At: time.Now()}
	if err := a.ForgetPolicy(t.Context(), "drop", by); err == nil { // the store cannot forget
		t.Fatal("it is forgotten")
	}
	if open := f.openEpisodes(t); open != 1 {
		t.Errorf("after an order that failed %d episodes are open", open)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// Each counter of refusals because of limits.streams has its own count, so that none decreases between two scrapes.
func TestRefusalsOfAPolicyAreNoneOfTheLimit(t *testing.T) {
	const streams = 10
	limit := capacity.NewStreamLimit(streams)
	many, next := bank.NewPolicy("many", watch.DefaultConfig(), limit), int64(0)
	u := ingesttest.Unit("many", 0, 0, rand.New(rand.NewPCG(1, 1)))
	feed := func(env int) {
		next++
		u.Pos.Offset, u.First.Offset, u.Last.Offset = next, next, next
		u.Group = ingest.NewGroup("many", ingest.Label{Name: "env", Value: fmt.Sprint(env)})
		many.Observe(u, time.Time{})
	}
	for env := range streams {
		feed(env)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				feed(streams) // one more, which is refused
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	exhausted := refusals([]*capacity.StreamLimit{limit})["limit"]
	for limit.Crowded() < 100_000 {
		if n := exhausted(); n != 0 {
			t.Fatalf("%v were refused for the limit, which has room", n)
		}
	}
}
