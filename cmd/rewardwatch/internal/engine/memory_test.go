package engine

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// The fleet that is compared with a memory limit: all groups see the same values, so that one calibration suffices for
// all, except for every few groups, which drift.
const (
	ceilingPolicies = 12
	ceilingGroups   = 8
	ceilingDrifting = 16
	ceilingBurst    = 30 // number of consecutive units of a group
)

// inUseNow returns the memory of the process after a garbage collection.
func inUseNow() int64 {
	runtime.GC()
	c := newCeiling(0, prometheus.NewRegistry())
	c.measure()
	return c.inUse()
}

// hold makes all workers wait between two units until they are released, so that nothing is being written or read.
func hold(t *testing.T, workers []*RunningWorker) (release func()) {
	t.Helper()
	held, done := make(chan error), make(chan struct{})
	for _, r := range workers {
		go func() {
			held <- r.Ask(context.Background(), func(context.Context) error {
				held <- nil
				<-done
				return nil
			})
		}()
		if err := <-held; err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		close(done)
		for range workers {
			if err := <-held; err != nil {
				t.Error(err)
			}
		}
	}
}

// ceilingRun is how a fleet was judged.
type ceilingRun struct {
	shown              map[string]string // by policy
	most               int64             // bytes in use after collecting the garbage
	evicted            int               // number of groups in the end
	evictions, returns float64
}

// underCeiling judges the fleet with a memory limit.
func underCeiling(t *testing.T, calibrations *budget.Calibrations, limit ingest.ByteSize, rounds int64) (out ceilingRun) {
	t.Helper()
	directory, err := checkpoint.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	cfg := DefaultSettings()
	cfg.Limits.Memory, cfg.Checkpoint.Every = limit, model.Duration(100*time.Millisecond)
	cfg.Policies = []PolicyConfig{{Match: "*", Config: watch.DefaultConfig()}}
	cfg.Policies[0].Baseline.Units = 100
	store := checkpoint.NewStore(directory, zerolog.Nop(), prometheus.NewRegistry())
	p := newAlone(context.Background(), &cfg, store, newMemory(), prometheus.NewRegistry())
	p.calibrations = calibrations
	defer p.Memory.Hold()()
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { p.WatchMemory(watching) })
	defer watch.Wait()
	defer stop()

	feed := p.Feed(0)
	units, handed := feed.Out.(*directPartition), int64(0)
	rngs := make([]*rand.Rand, ceilingPolicies*ceilingGroups)
	for i := range rngs {
		rngs[i] = rand.New(rand.NewPCG(1, 1))
	}
	for round := range rounds {
		for i, rng := range rngs {
			for k := range int64(ceilingBurst) {
				n := round*ceilingBurst + k
				u := ingesttest.Unit(fmt.Sprint("policy-", i/ceilingGroups), i%ceilingGroups, n, rng)
				u.Pos = ingest.Position{Offset: handed}
				u.First, u.Last, u.Agent = u.Pos, u.Pos, "agent"
				if i%ceilingDrifting == 0 && n >= 102 {
					u.Reward.Mean -= 2
					u.Return -= 2 * float64(u.Length)
				}
				if err := units.Hand(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				handed++
			}
			must(t, units.Flush(t.Context()))
			for units.Waiting() > 0 { // these use memory as well
				time.Sleep(time.Millisecond)
			}
			if i%ceilingGroups == 0 { // as the consumer does occasionally, so that safe units are dropped
				if err := feed.Snapshot(new(bytes.Buffer)); err != nil {
					t.Fatal(err)
				}
				release := hold(t, p.All())
				out.most = max(out.most, inUseNow())
				release()
			}
		}
	}
	for p.judged() < handed {
		time.Sleep(10 * time.Millisecond)
	}
	out.most = max(out.most, inUseNow())
	out.evicted = p.Memory.residents.Evicted()
	out.evictions, out.returns = testutil.ToFloat64(p.Memory.evictions), testutil.ToFloat64(p.Memory.returns)
	out.shown = shownIn(t, p.Pipeline)
	return out
}

// besideGroups is the memory of the process beyond that at the start and that of groups: units in transit, what is
// being written and read, and stacks.
const besideGroups = 20 << 20

// ownProcess is the environment variable of a test that runs in its own process.
const ownProcess = "REWARDWATCH_TEST_OWN_PROCESS"

// With a limit that has room for a tenth of the groups, all findings are those without a limit, and memory stays below
// it.
func TestSimTheCeilingHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	if os.Getenv(ownProcess) == "" { // otherwise the remains of other tests would be measured as well
		t.Parallel()
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSimTheCeilingHolds$", "-test.v")
		again.Env = append(os.Environ(), ownProcess+"=1")
		output, err := again.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		t.Logf("%s", output)
		return
	}
	const rounds = 4
	before := inUseNow()
	calibrations := budget.NewCalibrations()
	want := underCeiling(t, calibrations, 64*ingest.GiB, rounds)
	groups := want.most - before
	limit := ingest.ByteSize(before + groups/10 + besideGroups)
	if beside := int64(limit) - before; beside > groups*3/4 {
		t.Fatalf("%d bytes are no ceiling for %d", beside, groups)
	}
	begun := time.Now()
	got := underCeiling(t, calibrations, limit, rounds)
	t.Logf("%d KiB before, %d KiB of groups; with a ceiling of %d KiB at most %d KiB; %g evictions, %g returns, %d groups of %d evicted in the end; %v",
		before>>10, groups>>10, limit>>10, got.most>>10, got.evictions, got.returns, got.evicted, ceilingPolicies*ceilingGroups, time.Since(begun))
	if got.most > int64(limit) {
		t.Errorf("%d bytes in use, above the ceiling of %d", got.most, limit)
	}
	if got.evicted < ceilingPolicies*ceilingGroups/2 || got.returns < 100 || want.evictions > 0 {
		t.Errorf("%d groups were evicted in the end, %g came back; without a ceiling %g were evicted", got.evicted, got.returns, want.evictions)
	}
	incidents := 0
	for policy, state := range want.shown {
		if got.shown[policy] != state {
			t.Errorf("policy %s is another", policy)
		}
		var shown shownState
		if err := gob.NewDecoder(strings.NewReader(state)).Decode(&shown); err != nil {
			t.Fatal(err)
		}
		incidents += len(shown.Incidents)
	}
	if incidents < ceilingPolicies*ceilingGroups/ceilingDrifting {
		t.Errorf("%d incidents, too few", incidents)
	}
}

// evictAll makes a worker evict everything that it can.
func evictAll(t *testing.T, r *RunningWorker) (evicted int) {
	t.Helper()
	err := r.Ask(t.Context(), func(context.Context) error {
		var groups []ingest.Group
		for _, g := range r.Policy.Summary().Groups {
			groups = append(groups, g.Group)
		}
		r.evict(groups)
		evicted = r.workers.Pipeline.Memory.residents.Evicted()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return evicted
}

// evictedPolicy returns a service with one group, which has a provisional baseline and is evicted, and its store.
func evictedPolicy(t *testing.T) (*Pipeline, *RunningWorker, *directPartition, *ingesttest.Segments) {
	t.Helper()
	cfg, disk := DefaultSettings(), ingesttest.NewSegments()
	cfg.Checkpoint.Every = 1 << 60
	p := newAlone(t.Context(), &cfg, checkpoint.NewStore(disk, zerolog.Nop(), prometheus.NewRegistry()), newMemory(), prometheus.NewRegistry())
	t.Cleanup(func() { _ = p.Stop() })
	feed := p.Feed(0)
	for i := range int64(120) {
		if err := feed.Process(t.Context(), []ingest.Event{ingesttest.Episode(0, i, "ranker", time.Now().Add(-time.Minute))}); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "units", func() bool { return p.judged() == 120 })
	r := p.All()[0]
	if n := evictAll(t, r); n != 1 {
		t.Fatalf("%d groups are evicted", n)
	}
	return p.Pipeline, r, feed.Out.(*directPartition), disk
}

// People's orders for a group restore it; their questions about it do not.
func TestAnEvictedGroupAnswersAndObeys(t *testing.T) {
	t.Parallel()
	a, r, _, _ := evictedPolicy(t)
	before := r.Policy.Summary().Groups[0]
	if before.Baseline.ID == "" || before.Units != 120 {
		t.Fatalf("it is shown as %+v", before)
	}
	by := alerts.Decision{Kind: alerts.Accepted, By: "ann", Why: "enough", At: time.Now()}
	for _, c := range []struct {
		what    string
		returns float64
		ask     func() error
	}{
		{"a sample", 0, func() error {
			sample, err := a.Sample(t.Context(), before.Baseline.ID)
			if err == nil && len(sample) == 0 {
				err = errors.New("it is empty")
			}
			return err
		}},
		{"a promotion", 1, func() error {
			_, err := a.Promote(t.Context(), before.Baseline.ID, by)
			return err
		}},
		{"a reset", 1, func() error {
			_, err := a.Reset(t.Context(), "ranker", before.Group.Map(), by)
			return err
		}},
	} {
		evictAll(t, r)
		returns := testutil.ToFloat64(a.Memory.returns)
		if err := c.ask(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if n := testutil.ToFloat64(a.Memory.returns) - returns; n != c.returns {
			t.Errorf("%s: it came back %v times", c.what, n)
		}
	}
}

// A group whose state cannot be read ends the service with the name of what is damaged: the next start falls back to
// the preceding save, or says what to do.
func TestAnEvictedGroupThatIsDamagedEndsTheService(t *testing.T) {
	t.Parallel()
	_, r, units, disk := evictedPolicy(t)
	generations, err := disk.Generations(BankPrefix + "ranker")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range generations {
		if err := disk.Put(BankPrefix+"ranker", g, []byte("damaged")); err != nil {
			t.Fatal(err)
		}
	}
	u := &ingest.Unit{Group: r.Policy.Summary().Groups[0].Group, Pos: ingest.Position{Offset: 1000}, HasReturn: true, Reading: units.Unsafe[0].Reading}
	must(t, units.Hand(t.Context(), u))
	must(t, units.Flush(t.Context()))
	<-r.workers.Pipeline.Failed()
	if err := r.workers.Pipeline.Stop(); err == nil || !strings.Contains(err.Error(), "reload group") || !strings.Contains(err.Error(), "bank-ranker") {
		t.Errorf("it ended with %v", err)
	}
}

// The silence of evicted groups is reported as well.
func TestAnEvictedGroupFallsSilent(t *testing.T) {
	t.Parallel()
	_, r, _, _ := evictedPolicy(t)
	err := r.Ask(t.Context(), func(ctx context.Context) error { return r.tick(ctx, time.Now().Add(24*time.Hour)) })
	if err != nil {
		t.Fatal(err)
	}
	if faults := r.Worker.Shown.Load().Faults; len(faults) != 1 || r.workers.Pipeline.Memory.residents.Evicted() != 0 {
		t.Errorf("faults %+v", faults)
	}
	if n := evictAll(t, r); n != 1 {
		t.Error("what is silent stays in memory")
	}
}

// A unit that a worker gives up when it stops, because there is no room for it, arrives again after the restart. No
// later unit is judged, or the unit would count as judged as well.
func TestAUnitThatIsGivenUpComesAgain(t *testing.T) {
	t.Parallel()
	_, r, units, _ := evictedPolicy(t)
	p := r.workers.Pipeline
	evicted := r.Policy.Summary().Groups[0].Group
	other := ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: "other"})
	at := func(offset int64, group ingest.Group) *ingest.Unit {
		return &ingest.Unit{Group: group, Pos: ingest.Position{Offset: offset}, HasReturn: true, Reading: units.Unsafe[0].Reading}
	}
	stopped, stop := context.WithCancel(t.Context())
	err := r.Ask(t.Context(), func(ctx context.Context) error {
		for i, group := range []ingest.Group{evicted, other} {
			if err := units.Hand(ctx, at(1000+int64(i), group)); err != nil {
				return err
			}
		}
		must(t, units.Flush(ctx))
		of := r.workers.Ctx
		r.workers.Ctx = stopped
		defer func() { r.workers.Ctx = of }()
		stop()
		p.Memory.other.Store(2 * p.Memory.limit)
		return errors.Join(r.release(ctx), r.release(ctx))
	})
	if err != nil {
		t.Fatal(err)
	}
	if applied := r.Policy.Applied()[0]; applied.Covers(at(1000, evicted)) {
		t.Errorf("the unit that was given up counts as judged, with all up to %+v", applied)
	}
}

// While the limit is exceeded and nothing can be evicted, a partition passes on some units per second, and a group that
// is restored only waits for a moment.
func TestAPassedLimitSlowsDownAndStopsNothing(t *testing.T) {
	t.Parallel()
	_, r, units, _ := evictedPolicy(t)
	m := r.workers.Pipeline.Memory
	m.other.Store(2 * m.limit)
	m.tell(zerolog.Nop())
	begun := time.Now()
	for i := range int64(2*SlowUnits + 1) {
		u := &ingest.Unit{Group: r.Policy.Summary().Groups[0].Group, Pos: ingest.Position{Offset: 1000 + i}, HasReturn: true, Reading: units.Unsafe[0].Reading}
		if err := units.Hand(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	must(t, units.Flush(t.Context()))
	if took := time.Since(begun); took < 2*WorkerPulse {
		t.Errorf("it took %v", took)
	}
	testkit.Eventually(t, "all units", func() bool { return r.workers.Pipeline.judged() == 120+2*SlowUnits+1 })
	m.other.Store(0)
	m.tell(zerolog.Nop())
	begun = time.Now()
	if err := units.SlowDown(t.Context()); err != nil || time.Since(begun) >= WorkerPulse || m.Passed.Load() {
		t.Error("it is slow still")
	}
}

// Room found for a group is not available to another one before it is counted.
func TestRoomIsReserved(t *testing.T) {
	before := inUseNow()
	c := newCeiling(ingest.ByteSize(4*before)+ingest.GiB, prometheus.NewRegistry())
	half := c.limit / 2
	if !c.reserve(half) || c.reserve(half) {
		t.Fatal("there is room for one half of the limit, and not for both")
	}
	c.reserved.Add(-half)
	if !c.reserve(half) {
		t.Error("what was given back is no room again")
	}
}

// Mapped files of the program count as memory in use, and Go may only use the rest of the limit.
func TestMappedFilesCount(t *testing.T) {
	files := mappedFiles()
	if files == 0 {
		t.Skip("the kernel does not say what of files is in memory")
	}
	c, before := newCeiling(64*ingest.GiB, prometheus.NewRegistry()), debug.SetMemoryLimit(-1)
	letGo := c.Hold()
	c.measure()
	if held := debug.SetMemoryLimit(-1); held > c.limit-files {
		t.Errorf("Go may take %d of %d bytes, of which files take %d", held, c.limit, files)
	}
	letGo()
	if c.measure(); debug.SetMemoryLimit(-1) != before {
		t.Error("the limit of Go is not what it was")
	}
	if all := c.other.Load(); all < files+heapLive() {
		t.Errorf("%d bytes are in use, and files take %d of them and the heap %d", all, files, heapLive())
	}
}

// heapLive returns the live heap after the last garbage collection.
func heapLive() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// While workers are restored, garbage is collected a third as often.
func TestGarbageIsCollectedLessDuringRestores(t *testing.T) {
	pace := func() int {
		percent := debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		return percent
	}
	usual, c := pace(), newCeiling(1<<30, prometheus.NewRegistry())
	c.opaque = func() int64 { return 0 }
	c.restore(1)
	if got := pace(); got != usual {
		t.Errorf("without a limit for Go, GOGC is %d, want %d", got, usual)
	}
	letGo := c.Hold()
	for _, step := range []struct{ more, want int }{{1, 3 * usual}, {-1, 3 * usual}, {-1, usual}} {
		c.restore(step.more)
		if got := pace(); got != step.want {
			t.Errorf("with %d restores, GOGC is %d, want %d", c.restores, got, step.want)
		}
	}
	c.heap, c.opaque = 100<<20, func() int64 { return 60 << 20 }
	c.restore(1)
	if got, want := pace(), 3*usual*40/100; got != want {
		t.Errorf("during a restore, with 60 of 100 MiB in open decisions, GOGC is %d, want %d", got, want)
	}
	letGo()
	if got := pace(); got != usual {
		t.Errorf("in the end, GOGC is %d, want %d", got, usual)
	}
}
