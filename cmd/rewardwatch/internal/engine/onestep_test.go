package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

const (
	oneStepPartitions = 4
	oneStepPolicies   = 40
	oneStepBatch      = 500
	oneStepSegment    = 2 << 20
	oneStepBytes      = 30 // maximum per decision in the log
)

// oneStep is a service on a disk that judges one-step decisions, and is saved when the test says so.
type oneStep struct {
	*alone
	t      testing.TB
	store  *checkpoint.Store
	dir    string
	feeds  []*PartitionFeed
	offset int64 // of all partitions
}

// startOneStep begins with the content of the directory. Without logs, the checkpoints contain the units.
func startOneStep(t testing.TB, dir string, logged bool) *oneStep {
	t.Helper()
	cfg, reg := DefaultSettings(), prometheus.NewRegistry()
	cfg.Checkpoint.Every = 1 << 60
	directory, err := checkpoint.NewDirectory(dir)
	must(t, err)
	t.Cleanup(func() { _ = directory.Close() })
	s := &oneStep{t: t, store: checkpoint.NewStore(directory, zerolog.Nop(), reg), dir: dir}
	s.alone = newAlone(context.Background(), &cfg, s.store, newMemory(), reg)
	if logged {
		s.logTo(dir)
	} else { // one interval is more than allowed
		s.unsafeBacklog, s.kept.most = 1<<40, 1<<40
	}
	s.Begin(oneStepPartitions)
	for i := range int32(oneStepPartitions) {
		f := s.Feed(i)
		if logged { // small segments, so that little is kept because of other units in the same file
			setLog(f, unitlog.New(filepath.Join(dir, fmt.Sprint(i)), oneStepSegment, unitlog.Limit))
		}
		s.feeds = append(s.feeds, f)
	}
	return s
}

// judge reads and judges n decisions.
func (s *oneStep) judge(n int) {
	begun := time.Now().Add(-time.Hour).UnixNano()
	var reading sync.WaitGroup
	for i, f := range s.feeds {
		reading.Go(func() {
			for at := s.offset; at < s.offset+int64(n/oneStepPartitions); at += oneStepBatch {
				if err := f.Process(s.t.Context(), oneStepDecisions(ingest.Partition(i), at, begun)); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	reading.Wait()
	s.offset += int64(n / oneStepPartitions)
	for s.judged() < oneStepPartitions*s.offset && !s.t.Failed() {
		for _, f := range s.feeds {
			must(s.t, f.Idle(s.t.Context(), time.Now()))
		}
		time.Sleep(MergePulse)
	}
}

// oneStepDecisions returns the decisions of a partition from an offset on.
func oneStepDecisions(of ingest.Partition, from, begun int64) []ingest.Event {
	batch := make([]ingest.Event, oneStepBatch)
	for k := range batch {
		at := from + int64(k)
		batch[k] = ingest.Event{
			Pos: ingest.Position{Partition: of, Offset: at}, TS: begun + at*1000, Policy: fmt.Sprint("policy-", at%oneStepPolicies),
			AgentID: fmt.Sprint("user-", at), Reward: float64(at % 17), HasReward: true, Terminated: true, Length: -1,
			Action: ingest.Action{Kind: ingest.ActionCategory, Category: []string{"left", "right", "up"}[at%3]},
		}
	}
	return batch
}

// interval judges the decisions between two saves of everything. Workers save in the middle, so partitions keep the
// units of one and a half intervals. It returns the bytes of the partitions' checkpoints.
func (s *oneStep) interval(n int) (written int) {
	s.judge(n / 2)
	for _, r := range s.All() {
		must(s.t, r.Ask(context.Background(), func(context.Context) error { return r.save() }))
	}
	s.judge(n / 2)
	return s.save()
}

// save saves all partitions, as the consumer does. It returns the bytes of their checkpoints.
func (s *oneStep) save() (written int) {
	for i, f := range s.feeds {
		var image bytes.Buffer
		must(s.t, f.Snapshot(&image))
		must(s.t, s.store.Save(fmt.Sprint("partition-telemetry-", i), ingest.Parts{"state": image.Bytes()}, nil))
		f.Saved()
		written += image.Len()
	}
	return written
}

// logs returns the size of the logs of units on the disk, in bytes.
func (s *oneStep) logs() (size int64) {
	files, err := filepath.Glob(filepath.Join(s.dir, "*", "*.log"))
	must(s.t, err)
	for _, file := range files {
		info, err := os.Stat(file)
		must(s.t, err)
		size += info.Size()
	}
	return size
}

// BenchmarkOneStepCheckpoints reports the CPU time of a one-step decision while everything is saved once per interval,
// depending on where units are kept until they are saved twice.
func BenchmarkOneStepCheckpoints(b *testing.B) {
	const interval = 200_000
	for _, logged := range []bool{false, true} {
		b.Run(map[bool]string{false: "in the checkpoint", true: "in the log"}[logged], func(b *testing.B) {
			s := startOneStep(b, b.TempDir(), logged)
			s.judge(interval) // until the baselines are calibrated
			s.interval(interval)
			begun, image := cpu(), 0
			b.ResetTimer()
			for range b.N {
				image = s.interval(interval)
			}
			b.ReportMetric(float64((cpu()-begun).Nanoseconds())/float64(b.N*interval), "cpu-ns/event")
			b.ReportMetric(float64(image)/interval, "checkpoint-bytes/event")
			_ = s.Stop()
		})
	}
}

// TestSimOneStepDecisionsStayOnDisk judges a million one-step decisions in each interval between two saves, which is
// 100,000 per second for the default of 10 seconds. Units that are not saved twice are on the disk: the memory of the
// process stays below 600 MB, the log is limited, and the cost of a checkpoint of the partitions does not depend on the
// number of units.
func TestSimOneStepDecisionsStayOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes of CPU")
	}
	if os.Getenv(ownProcess) == "" {
		t.Parallel()
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSimOneStepDecisionsStayOnDisk$", "-test.v")
		again.Env = append(os.Environ(), ownProcess+"=1")
		output, err := again.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		t.Logf("%s", output)
		return
	}
	interval, intervals := testkit.Size("DECISIONS", 1_000_000), testkit.Size("INTERVALS", 6)
	s := startOneStep(t, t.TempDir(), true)
	defer s.Memory.Hold()()
	small := s.interval(40_000)
	for n := range intervals {
		image := s.interval(interval)
		if image > 2*small {
			t.Errorf("the checkpoints of %d decisions have %d bytes, of 40,000 they had %d", interval, image, small)
		}
		if size, most := s.logs(), int64(3*interval*oneStepBytes+oneStepPartitions*oneStepSegment); size > most {
			t.Errorf("the logs have %d bytes, the bound is %d", size, most)
		}
		t.Logf("interval %d: checkpoints of %d bytes, logs of %d MiB, %d MB at most", n, image, s.logs()>>20, peakMemory(t)/1e6)
	}
	most := peakMemory(t)
	t.Logf("the process had %d MB at most", most/1e6)
	if most > 600e6 {
		t.Error("that is more than 600 MB")
	}
	must(t, s.Stop())
}
