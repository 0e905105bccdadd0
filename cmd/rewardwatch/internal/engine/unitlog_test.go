package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

// logging returns a service with logs of units below a directory, which saves when the test says so.
func logging(t *testing.T, directory string) *alone {
	t.Helper()
	cfg := DefaultSettings()
	cfg.Checkpoint.Every = 1 << 60
	m := newMemory()
	p := newAlone(t.Context(), &cfg, m, m, prometheus.NewRegistry())
	p.logTo(directory)
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// saveWorkers saves all workers a number of times.
func (a *alone) saveWorkers(t *testing.T, times int) {
	t.Helper()
	for range times {
		for _, r := range a.All() {
			must(t, r.Ask(context.Background(), func(context.Context) error { return r.save() }))
		}
	}
}

// saveFeed saves a partition, as the consumer does.
func saveFeed(t *testing.T, f *PartitionFeed) []byte {
	t.Helper()
	var image bytes.Buffer
	must(t, f.Snapshot(&image))
	f.Saved()
	return image.Bytes()
}

func logOf(f *PartitionFeed) *unitlog.Log { return f.Out.(*directPartition).units }

// setLog replaces the log of a partition before its first unit.
func setLog(f *PartitionFeed, l *unitlog.Log) { f.Out.(*directPartition).units = l }

// aBatch is the number of units that a log writes together.
const aBatch = 512

func logFiles(t *testing.T, directory string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*", "*.log"))
	must(t, err)
	return files
}

// A checkpoint refers to the units that are not saved twice, in a few bytes for any number. Once they are, and two
// checkpoints of the partition do not refer to them, their files are removed.
func TestTheLogHoldsUnitsUntilTheyAreSavedTwice(t *testing.T) {
	dir := t.TempDir()
	p := logging(t, dir)
	f := p.Feed(0)
	next := int64(0)
	for range 400 {
		next = feedSummaries(t, f, next, time.Minute, someNames("policy-", 5)...)
	}
	testkit.Eventually(t, "all units", func() bool { return p.judged() == next })
	many := len(saveFeed(t, f))
	p.saveWorkers(t, 1)
	if len(saveFeed(t, f)) != many || f.Shrunk() {
		t.Error("units that are in one save only are forgotten")
	}
	p.saveWorkers(t, 1)
	if !f.Shrunk() {
		t.Error("units that are in two saves are kept")
	}
	for _, left := range []int{1, 0} {
		if none := len(saveFeed(t, f)); many > none+50 {
			t.Errorf("the checkpoint has %d bytes with %d units, and %d without", many, next, none)
		}
		if files := logFiles(t, dir); len(files) != left || f.Shrunk() {
			t.Errorf("%d files of the log are left, want %d", len(files), left)
		}
	}
	if all, waiting := p.kept.bytes(); all != 0 || waiting != 0 || p.kept.logged() != 0 || logOf(f).Needed() != 0 || logOf(f).Ends() != 0 {
		t.Errorf("%d bytes are counted in memory, %d in flight, %d on disk", all, waiting, p.kept.logged())
	}
}

// Units in a checkpoint of an older build, which contains them itself, are moved to the log.
func TestUnitsOfACheckpointWithoutALogGetIntoIt(t *testing.T) {
	before := newTestPipeline(t, newMemory())
	f := before.Feed(0)
	const units = 700
	for i := range int64(units) {
		feedSummaries(t, f, i, time.Minute, "ranker")
	}
	image := saveFeed(t, f)
	must(t, before.Stop())
	dir := t.TempDir()
	for _, step := range []string{"from the checkpoint", "from the log"} {
		p := logging(t, dir)
		g := p.Feed(0)
		must(t, g.Restore(bytes.NewReader(image)))
		testkit.Eventually(t, "all units "+step, func() bool { return p.judged() == units })
		if image = saveFeed(t, g); len(image) > 50*units { // most of it is the memory of ended episodes
			t.Errorf("%s: the checkpoint has %d bytes", step, len(image))
		}
		p.Revoke(0)
		must(t, p.Stop())
	}
}

// A damaged or missing log is refused, with the way out. Without the log that a checkpoint refers to, nothing is
// restored.
func TestADamagedLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	p := logging(t, dir)
	f := p.Feed(0)
	for i := range int64(600) {
		feedSummaries(t, f, i, time.Minute, "ranker")
	}
	image := saveFeed(t, f)
	must(t, p.Stop())
	file := logFiles(t, dir)[0]
	whole, err := os.ReadFile(file)
	must(t, err)
	for what, content := range map[string][]byte{
		"cut": whole[:len(whole)-1], "empty": nil, "flipped": append([]byte{whole[0] ^ 1}, whole[1:]...),
		"flipped inside": append(append(bytes.Clone(whole[:500]), whole[500]^8), whole[501:]...),
	} {
		must(t, os.WriteFile(file, content, 0o600))
		err := logging(t, dir).Feed(0).Restore(bytes.NewReader(image))
		if err == nil || !strings.Contains(err.Error(), "move it aside together with all files of its checkpoint") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, os.Remove(file))
	if err := logging(t, dir).Feed(0).Restore(bytes.NewReader(image)); err == nil || !strings.Contains(err.Error(), "lacks the offsets") {
		t.Errorf("missing: %v", err)
	}
	if err := newTestPipeline(t, newMemory()).Feed(0).Restore(bytes.NewReader(image)); err == nil {
		t.Error("a checkpoint that names a log is restored without one")
	}
	must(t, os.WriteFile(file, whole, 0o600))
	again := logging(t, dir)
	must(t, again.Feed(0).Restore(bytes.NewReader(image)))
	testkit.Eventually(t, "all units", func() bool { return again.judged() == 600 })
}

// While the disk cannot be written to, no checkpoint is made. All units are in the log once it can be written again.
func TestUnitsWaitForADiskThatTakesNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "no directory")
	must(t, os.WriteFile(dir, nil, 0o600))
	p := logging(t, dir)
	f := p.Feed(0)
	next := int64(0)
	feed := func(n int) {
		for range n {
			next = feedSummaries(t, f, next, time.Minute, "ranker")
		}
	}
	feed(3 * aBatch)
	if err := f.Snapshot(&bytes.Buffer{}); err == nil {
		t.Error("a checkpoint was made without its units")
	}
	must(t, os.Remove(dir))
	feed(10)
	image := saveFeed(t, f)
	must(t, p.Stop())
	again := logging(t, dir)
	must(t, again.Feed(0).Restore(bytes.NewReader(image)))
	testkit.Eventually(t, "all units", func() bool { return again.judged() == next })
}

// Reading waits while a log has reached its limit, and policies are saved early before that.
func TestALogIsBounded(t *testing.T) {
	dir := t.TempDir()
	cfg, store := DefaultSettings(), newMemory()
	cfg.Checkpoint.Every = 1 << 60
	p := newAlone(t.Context(), &cfg, store, store, prometheus.NewRegistry())
	p.logTo(dir)
	t.Cleanup(func() { _ = p.Stop() })
	f := p.Feed(0)
	l, d := unitlog.New(dir, unitlog.Segment, 1), f.Out.(*directPartition)
	setLog(f, l)
	if d.Full(nil) || p.kept.pressing() {
		t.Error("it is full already")
	}
	store.Fill()
	for next := int64(0); l.Needed() == 0; {
		next = feedSummaries(t, f, next, time.Minute, fmt.Sprint("policy-", next))
	}
	if !d.Full(nil) || !p.kept.pressing() {
		t.Error("it is not full")
	}
	store.Free()
	testkit.Eventually(t, "room, because all units are saved twice", func() bool { // once they are judged
		p.saveWorkers(t, 2)
		return !d.Full(nil) && !p.kept.pressing()
	})
}

// The units of a forgotten policy do not return with the batches that others need, but later units of it do.
func TestForgottenPoliciesDoNotComeBackFromTheLog(t *testing.T) {
	dir, disk := t.TempDir(), ingesttest.NewSegments()
	p := forgetful(t, disk, 1000)
	p.logTo(dir)
	f := p.Feed(0)
	next := feedSummaries(t, f, 0, time.Minute, "keep", "drop", "drop", "keep", "drop")
	saveFeed(t, f)
	next = feedSummaries(t, f, next, time.Minute, "drop", "keep")
	testkit.Eventually(t, "units", func() bool { return p.judged() == 7 })
	must(t, p.ForgetPolicy(t.Context(), "drop", alerts.Decision{Kind: alerts.Reset, By: "ann", Why: "a test", At: time.Now()}))
	feedSummaries(t, f, next, time.Minute, "drop", "drop", "keep")
	testkit.Eventually(t, "units after it", func() bool { return p.judged() == 6 })
	image := saveFeed(t, f)
	for range 2 { // the second time from a checkpoint that was made from the first
		again := forgetful(t, ingesttest.NewSegments(), 1000)
		again.logTo(dir)
		g := again.Feed(0)
		must(t, g.Restore(bytes.NewReader(image)))
		testkit.Eventually(t, "all units after a restart", func() bool {
			must(t, g.Idle(t.Context(), time.Now()))
			return again.judged() == 6
		})
		units := map[string]int64{}
		for _, s := range again.Summaries() {
			units[s.Policy] = s.Groups[0].Units
		}
		if units["drop"] != 2 || units["keep"] != 4 {
			t.Errorf("got %v", units)
		}
		image = saveFeed(t, g)
		again.Revoke(0)
		must(t, again.Stop())
	}
	must(t, p.Stop())
}

// logged returns the number of units of each policy that a log passes on.
func logged(t *testing.T, dir string, s unitlog.State) map[string]int {
	t.Helper()
	l, units := unitlog.New(dir, unitlog.Segment, unitlog.Limit), map[string]int{}
	must(t, l.Resume(s, func(u *ingest.Unit) error {
		units[u.Group.Policy]++
		w := order.NewWaitingUnit(u)
		l.Add(&w)
		return nil
	}, func(order.Moment) error { return nil }))
	must(t, l.Close())
	return units
}

// A policy that is forgotten while its units are passed on again does not return with the rest of them.
func TestAPolicyForgottenDuringAResumeDoesNotComeBack(t *testing.T) {
	dir, disk := t.TempDir(), ingesttest.NewSegments()
	p := forgetful(t, disk, 1000)
	p.logTo(dir)
	f := p.Feed(0)
	const each = 2 * aBatch
	next := int64(0)
	for range each {
		next = feedSummaries(t, f, next, time.Minute, "drop", "keep")
	}
	state, err := logOf(f).Save()
	must(t, err)
	must(t, p.Stop())
	for _, at := range []int{1, 100} {
		testForgottenDuringAResume(t, dir, disk, state, at, each)
	}
}

// testForgottenDuringAResume forgets the policy drop when a number of units remain to be passed on.
func testForgottenDuringAResume(t *testing.T, dir string, disk *ingesttest.Segments, state unitlog.State, at int, each int64) {
	t.Helper()
	again := forgetful(t, disk, 1000)
	again.logTo(dir)
	d := again.Feed(0).Out.(*directPartition)
	handed := 0
	hand := func(u *ingest.Unit) error {
		if handed++; handed == at {
			must(t, again.ForgetPolicy(t.Context(), "drop", alerts.Decision{Kind: alerts.Reset, By: "ann", Why: "a test", At: time.Now()}))
		}
		return d.Hand(d.Workers.Ctx, u)
	}
	reached := func(at order.Moment) error { return d.Mark(t.Context(), at, time.Time{}, time.Now()) }
	must(t, d.again(func() error { return d.units.Resume(state, hand, reached) }))
	must(t, d.Flush(t.Context()))
	again.workers.Marks.Assign(0, order.Moment{TS: 1 << 62})
	testkit.Eventually(t, "all others", func() bool { return again.judged() >= each })
	if n := len(again.Summaries()); n != 1 || again.judged() != each {
		t.Errorf("%d policies with %d units, want one with %d", n, again.judged(), each)
	}
	state, err := d.units.Save()
	must(t, err)
	again.Revoke(0)
	must(t, again.Stop())
	if got := logged(t, filepath.Dir(logFiles(t, dir)[0]), state); got["drop"] != 0 || int64(got["keep"]) != each {
		t.Errorf("%v units are read again", got)
	}
}

// A start judges the units of the logs while it reads them: they are never all in memory.
func TestUnitsOfALogAreJudgedWhileItIsRead(t *testing.T) {
	const partitions, each, batch = 2, 60_000, 100
	dir, start := t.TempDir(), time.Now().Add(-time.Hour)
	p := logging(t, dir)
	p.Begin(partitions)
	feeds := make([]*PartitionFeed, partitions)
	all := func(p *alone, do func(i int32, f *PartitionFeed)) {
		var done sync.WaitGroup
		for i, f := range feeds {
			done.Go(func() { do(int32(i), f) })
		}
		done.Wait()
		testkit.Eventually(t, "all units", func() bool {
			for _, f := range feeds {
				must(t, f.Idle(t.Context(), time.Now()))
			}
			return p.judged() == partitions*each
		})
	}
	for i := range feeds {
		feeds[i] = p.Feed(int32(i))
	}
	all(p, func(i int32, f *PartitionFeed) {
		for offset := int64(0); offset < each; offset += batch {
			var events []ingest.Event
			for k := range int64(batch) {
				events = append(events, ingesttest.Episode(i, offset+k, "few", start.Add(time.Duration(offset+k)*time.Millisecond)))
			}
			if err := f.Process(t.Context(), events); err != nil {
				t.Error(err)
			}
		}
	})
	images := [][]byte{saveFeed(t, feeds[0]), saveFeed(t, feeds[1])}
	must(t, p.Stop())

	again := logging(t, dir)
	again.Begin(partitions)
	for i := range feeds {
		feeds[i] = again.Feed(int32(i))
	}
	var mu sync.Mutex
	most := int64(0)
	all(again, func(i int32, f *PartitionFeed) {
		done := make(chan error, 1)
		go func() { done <- f.Restore(bytes.NewReader(images[i])) }()
		for {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return
			case <-time.After(time.Millisecond):
				_, waiting := again.kept.bytes()
				mu.Lock()
				most = max(most, waiting)
				mu.Unlock()
			}
		}
	})
	unit := (&ingest.Unit{}).Bytes()
	t.Logf("%d of %d units waited at most", most/unit, partitions*each)
	if most/unit > 3*FeedBacklog {
		t.Errorf("%d units waited", most/unit)
	}
}
