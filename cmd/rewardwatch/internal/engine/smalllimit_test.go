package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
)

// life is a service between two kills: it judges one-step episodes of many policies, and its checkpoints outlive it.
type life struct {
	*alone
	t         testing.TB
	reg       *prometheus.Registry
	directory *checkpoint.Directory
	dir       string
	feed      *PartitionFeed
	offset    int64 // of the next episode
	policies  int
	ends      func()
}

// live begins a life with what the preceding one has left in a directory.
func live(t testing.TB, dir string, policies int, limit ingest.ByteSize, every time.Duration) *life {
	t.Helper()
	cfg, reg := DefaultSettings(), prometheus.NewRegistry()
	cfg.Limits.Memory, cfg.Checkpoint.Every = limit, model.Duration(every)
	directory, err := checkpoint.NewDirectory(dir)
	must(t, err)
	store := checkpoint.NewStore(directory, zerolog.Nop(), reg)
	l := &life{t: t, reg: reg, dir: dir, policies: policies, directory: directory, alone: newAlone(context.Background(), &cfg, store, newMemory(), reg)}
	watching, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	letGo := l.Memory.Hold()
	l.ends = func() { stop(); watch.Wait(); letGo() }
	names, err := store.Names(BankPrefix)
	must(t, err)
	must(t, l.workers.Restore(context.Background(), names))
	watch.Go(func() { l.WatchMemory(watching) })
	l.feed = l.Feed(0)
	l.restore()
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *life) stateFile() string { return filepath.Join(l.dir, "partition") }

// restore continues from the last save of the partition.
func (l *life) restore() {
	state, err := os.Open(l.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		l.save()
		return
	}
	must(l.t, err)
	buffered := bufio.NewReader(state)
	must(l.t, errors.Join(binary.Read(buffered, binary.LittleEndian, &l.offset), l.feed.Restore(buffered), state.Close()))
}

// save saves the partition, as the consumer does.
func (l *life) save() {
	state, err := os.CreateTemp(l.dir, "partition-")
	must(l.t, err)
	buffered := bufio.NewWriter(state)
	must(l.t, errors.Join(binary.Write(buffered, binary.LittleEndian, l.offset), l.feed.Snapshot(buffered), buffered.Flush(), state.Close(),
		os.Rename(state.Name(), l.stateFile())))
}

// judge feeds some episodes.
func (l *life) judge(n int) {
	var batch []ingest.Event
	for range n {
		batch = append(batch, ingest.Event{
			Pos: ingest.Position{Offset: l.offset}, TS: time.Now().UnixNano(), Policy: fmt.Sprint("policy-", l.offset%int64(l.policies)),
			AgentID: "a", Reward: float64(l.offset % 17), HasReward: true, Terminated: true, Length: -1,
		})
		l.offset++
	}
	must(l.t, l.feed.Process(l.t.Context(), batch))
}

// rest waits for a number of intervals in which nothing arrives. As in the consumer, the partition is saved if it has
// shrunk.
func (l *life) rest(intervals int) {
	every := time.Duration(l.Cfg.Checkpoint.Every)
	for range intervals {
		for begun := time.Now(); time.Since(begun) < every*11/10; time.Sleep(every / 10) {
			must(l.t, l.feed.Idle(l.t.Context(), time.Now()))
		}
		if l.feed.Shrunk() {
			l.save()
		}
	}
}

// settle waits until all episodes are judged.
func (l *life) settle() {
	for l.judged() < l.offset {
		must(l.t, l.feed.Idle(l.t.Context(), time.Now()))
		time.Sleep(MergePulse)
	}
}

var errKilled = errors.New("killed")

// kill ends the life like a crash: nothing more is saved.
func (l *life) kill() {
	l.workers.Abandon(errKilled)
	_ = l.Stop() // errors of the workers that were killed
	l.ends()
	must(l.t, l.directory.Close())
}

// whileAllPause calls do between two units of all workers.
func whileAllPause(ctx context.Context, all []*RunningWorker, do func()) error {
	if len(all) == 0 {
		do()
		return nil
	}
	return all[0].Ask(ctx, func(ctx context.Context) error { return whileAllPause(ctx, all[1:], do) })
}

// The memory and the disk space of units that have become safe are freed within two intervals in which nothing arrives.
func TestSimIdleHeapAndFilesShrinkWithinTwoIntervals(t *testing.T) {
	const policies, units = 4, 30_000
	l := live(t, t.TempDir(), policies, ingest.GiB, time.Hour)
	defer l.kill()
	l.judge(policies) // now the memory of the policies themselves is included
	l.settle()
	before := inUseNow()
	for range units / 100 {
		l.judge(100)
	}
	l.settle()
	l.save()
	full, file := inUseNow()-before, l.stateSize()
	must(t, whileAllPause(t.Context(), l.All(), func() { l.Cfg.Checkpoint.Every = model.Duration(WorkerPulse) })) // workers check it once per pulse
	l.rest(3)                                                                                                     // the first one may be half over
	idle, left := inUseNow()-before, l.stateSize()
	t.Logf("%d units took %d KiB of memory, %d KiB when idle; %d KiB of the file, %d KiB when idle", units, full>>10, idle>>10, file>>10, left>>10)
	if full < units*300 || 2*idle > full {
		t.Errorf("%d bytes were in use, and %d are when idle", full, idle)
	}
	if file < units*100 || 20*left > file {
		t.Errorf("the file had %d bytes, and has %d when idle", file, left)
	}
}

func (l *life) stateSize() int64 {
	info, err := os.Stat(l.stateFile())
	must(l.t, err)
	return info.Size()
}

// ownDirectory is the environment variable of a life in a separate process, which can be killed.
const ownDirectory = "REWARDWATCH_TEST_OWN_DIRECTORY"

// The lives of TestSimEachLifeGetsFurther: with a limit that has no room for all policies, each judges a number of
// episodes, and is killed after two saves of the partition.
const (
	livesPolicies = 200
	livesUnits    = 20_000
	livesRoom     = 40 << 20 // beyond the memory of an idle process
	livesSaved    = 2_500    // number of episodes between two saves of the partition
	livesEvery    = 250 * time.Millisecond
)

// With a memory limit that is too small for all groups, each life gets further than the preceding one, however often it
// is killed, and in the end each episode has been judged once.
func TestSimEachLifeGetsFurther(t *testing.T) {
	if dir := os.Getenv(ownDirectory); dir != "" {
		liveOnce(t, dir)
		return
	}
	t.Parallel()
	dir, reached, evictions := t.TempDir(), int64(0), 0.
	for lives := 1; ; lives++ {
		begun, saved, evicted, ended := runLife(t, dir, 2)
		if begun < reached {
			t.Fatalf("life %d began at %d, and the one before had saved %d", lives, begun, reached)
		}
		if saved <= begun && !ended { // the last one may have been killed just before it ended
			t.Fatalf("life %d went from %d to %d", lives, begun, saved)
		}
		reached, evictions = saved, evictions+evicted
		if ended {
			t.Logf("%d lives, %g evictions", lives, evictions)
			if lives < 3 || evictions < livesPolicies/2 {
				t.Errorf("%d lives and %g evictions are too few to tell", lives, evictions)
			}
			return
		}
	}
}

// runLife runs one life, and kills it after a number of saves, so that it has made progress, unless it ends by itself.
func runLife(t *testing.T, dir string, saves int) (begun, saved int64, evictions float64, ended bool) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSimEachLifeGetsFurther$", "-test.v")
	process.Env = append(os.Environ(), ownDirectory+"="+dir)
	output, err := process.StdoutPipe()
	must(t, err)
	must(t, process.Start())
	var said bytes.Buffer
	killed := false
	begun = -1
	for lines := bufio.NewScanner(output); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "life":
			_, err = fmt.Sscan(rest, &saved, &evictions)
			must(t, err)
			if begun < 0 {
				begun = saved
			} else if saves--; saves == 0 {
				killed = true
				_ = process.Process.Kill() // it may have ended by itself
			}
		case "ended":
			ended = true
		}
	}
	if err := process.Wait(); err != nil && !killed {
		t.Fatalf("it ended with %v: %s", err, said.String())
	}
	return begun, saved, evictions, ended
}

// liveOnce runs a life until it is killed, or until all episodes are judged.
func liveOnce(t *testing.T, dir string) {
	l := live(t, dir, livesPolicies, ingest.ByteSize(inUseNow()+livesRoom), livesEvery)
	tell := func() {
		fmt.Println("life", l.offset, testutil.ToFloat64(l.Memory.evictions))
	}
	tell()
	for l.offset < livesUnits {
		l.judge(100)
		if l.offset%livesSaved == 0 {
			l.save()
			tell()
		}
	}
	l.settle()
	l.save()
	tell()
	if n := l.judged(); n != livesUnits {
		t.Fatalf("%d units of %d were judged", n, livesUnits)
	}
	l.kill()
	fmt.Println("ended")
}
