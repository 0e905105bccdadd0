package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
)

const (
	openDecisions  = 1_000_000
	openMostMemory = 400 << 20 // of the whole process
	openDirectory  = "REWARDWATCH_TEST_OPEN_DIRECTORY"
)

// A process with a million open decisions, with keys like UUIDs and four numbers each, saves and restores them within
// the promised memory, and loses none.
func TestSimMillionOpenDecisions(t *testing.T) {
	if dir := os.Getenv(openDirectory); dir != "" {
		holdOpenDecisions(t, filepath.Join(dir, "partition"))
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("the peak of a process's memory is read from /proc")
	}
	t.Parallel()
	dir := t.TempDir()
	for _, life := range []string{"first", "restarted"} {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSimMillionOpenDecisions$", "-test.v")
		process.Env = append(os.Environ(), openDirectory+"="+dir)
		said, err := process.CombinedOutput()
		if err != nil {
			t.Fatalf("the %s process ended with %v: %s", life, err, said)
		}
		var open, peak int64
		found := regexp.MustCompile(`(\d+) open, (\d+) bytes at most`).FindSubmatch(said)
		if found == nil {
			t.Fatalf("the %s process said %s", life, said)
		}
		open, _ = strconv.ParseInt(string(found[1]), 10, 64)
		peak, _ = strconv.ParseInt(string(found[2]), 10, 64)
		t.Logf("the %s process took %d MiB at most", life, peak>>20)
		if open != openDecisions || peak > openMostMemory {
			t.Errorf("the %s process had %d open decisions and took %d bytes", life, open, peak)
		}
	}
}

// holdOpenDecisions restores what the preceding process has saved, reads decisions until there are enough, and saves
// them.
func holdOpenDecisions(t *testing.T, file string) {
	cfg := DefaultSettings()
	cfg.Policies = []PolicyConfig{{Match: "*", Config: watch.DefaultConfig(), Feedback: feedback.Config{
		Key: "episode_id", Window: model.Duration(2 * time.Hour), Horizons: []model.Duration{model.Duration(time.Hour)},
		Default: map[string]float64{"reward": 0},
	}}}
	directory, err := checkpoint.NewDirectory(t.TempDir())
	must(t, err)
	defer directory.Close()
	p := newAlone(t.Context(), &cfg, checkpoint.NewStore(directory, zerolog.Nop(), prometheus.NewRegistry()), newMemory(), prometheus.NewRegistry())
	defer p.Memory.Hold()()
	watching, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	watch.Go(func() { p.WatchMemory(watching) })

	feed := p.Feed(0)
	if saved, err := os.Open(file); err == nil {
		must(t, errors.Join(feed.Restore(bufio.NewReader(saved)), saved.Close()))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for feed.Decisions.Open() < openDecisions {
		must(t, feed.Process(t.Context(), shownItems(rng, int64(feed.Decisions.Open()), 500)))
		if feed.Decisions.Open()%(openDecisions/4) == 0 {
			var image blocks
			must(t, feed.Snapshot(&image))
			must(t, image.save(file))
		}
	}
	fmt.Printf("%d open, %d bytes at most\n", feed.Decisions.Open(), peakMemory(t))
}

// blocks holds a snapshot until it is saved, as the consumer does.
type blocks [][]byte

func (b *blocks) Write(p []byte) (int, error) {
	for _, chunk := range slices.Collect(slices.Chunk(p, 1<<16)) {
		if n := len(*b); n == 0 || len((*b)[n-1])+len(chunk) > cap((*b)[n-1]) {
			*b = append(*b, make([]byte, 0, 1<<20))
		}
		last := len(*b) - 1
		(*b)[last] = append((*b)[last], chunk...)
	}
	return len(p), nil
}

func (b *blocks) save(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	for _, block := range *b {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return f.Close()
}

// shownItems returns decisions of a recommender that shows 280 items per second.
func shownItems(rng *rand.Rand, from, n int64) []ingest.Event {
	batch := make([]ingest.Event, n)
	for i := range batch {
		offset := from + int64(i)
		number := func(name string) ingest.Value { return ingest.Value{Name: name, X: rng.NormFloat64()} }
		batch[i] = ingest.Event{
			Pos: ingest.Position{Offset: offset}, TS: 1_790_000_000_000_000_000 + offset*3_500_000, Policy: "shop", Step: -1, Length: -1,
			EpisodeID: fmt.Sprintf("%016x-%019x", rng.Uint64(), rng.Uint64()), AgentID: "user-" + strconv.FormatUint(rng.Uint64()%1_000_000, 10),
			Action:      ingest.Action{Kind: ingest.ActionCategory, Category: strconv.Itoa(rng.IntN(50))},
			Observation: []ingest.Value{number("age"), number("basket"), number("price"), number("rank")},
		}
	}
	return batch
}

// peakMemory returns the peak resident memory of the process, in bytes.
func peakMemory(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	must(t, err)
	return kilobytes << 10
}
