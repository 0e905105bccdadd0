package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/budget"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/checkpoint"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
	"github.com/rewardwatch/rewardwatch/ingest/unitlog"
)

// machine runs a pipeline over the partitions of a topic on a separate disk, and can be killed.
type machine struct {
	t            *testing.T
	rng          *rand.Rand
	disk         *ingesttest.Segments
	damaged      map[string][]byte    // the remains of a segment, by name
	calibrations *budget.Calibrations // these outlast it, so that the test does not wait for each calibration again
	logs         string               // directory of the logs of units
	memory       ingest.ByteSize      // a restart fills half of it; nothing waits for room, which the process would never have

	store *checkpoint.Store
	p     *alone
	feeds []ingest.Processor
	next  []int64
}

const (
	machinePartitions = 2
	machineEvents     = 1080 // of each
)

// machineEvent returns the event at an offset. There are episodes of three steps of a policy of the partition, with two
// groups, and of a policy in both partitions. The latter has too few units for a baseline, because the way in which
// groups share a budget depends on which of them appears first. The rewards drift from the middle on.
func machineEvent(partition int32, offset int64) ingest.Event {
	episode, step := offset/3, offset%3
	rng := rand.New(rand.NewPCG(uint64(partition), uint64(offset)))
	e := ingest.Event{
		Pos: ingest.Position{Partition: ingest.Partition(partition), Offset: offset}, Policy: fmt.Sprint("ranker-", partition), Env: "a",
		EpisodeID: fmt.Sprint(episode), Step: step, HasReward: true, Reward: rng.NormFloat64(), Terminated: step == 2,
		Outcomes: []ingest.Value{{Name: "cost", X: float64(rng.IntN(2))}},
	}
	switch episode % 4 {
	case 2:
		e.Env = "b"
	case 3:
		e.Policy, e.Env = "walker", fmt.Sprint("of ", partition)
	}
	if offset > machineEvents/2+100 {
		e.Reward += 2
	}
	return e
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// start begins with the content of the disk.
func (m *machine) start() {
	cfg := DefaultSettings()
	cfg.Checkpoint.Every = 1 << 60 // only when the test says so
	cfg.Limits.Memory = m.memory
	guards := watch.DefaultConfig()
	guards.Guards.Limits = []watch.GuardLimit{
		{Name: "steps", Outcome: "cost", Share: .6, Alpha: .01, Then: watch.GuardHold},
		{Name: "returns", ReturnBelow: "-2", Share: .6, Alpha: .01, Then: watch.GuardHold},
	}
	cfg.Policies = []PolicyConfig{{Match: "*", Config: guards}}
	reg := prometheus.NewRegistry()
	m.store = checkpoint.NewStore(m.disk, zerolog.Nop(), reg)
	m.p = newAlone(context.Background(), &cfg, m.store, newMemory(), reg)
	m.p.logTo(m.logs)
	m.p.calibrations = m.calibrations
	m.p.Memory.limit = math.MaxInt64
	m.p.kept.most = math.MaxInt64 // one goroutine reads all partitions, and cannot continue with another one while one waits
	names, err := m.store.Names(BankPrefix)
	m.must(err)
	m.must(m.p.workers.Restore(context.Background(), names))
	m.feeds, m.next = make([]ingest.Processor, machinePartitions), make([]int64, machinePartitions)
	for i := range m.feeds {
		f := m.p.Feed(int32(i))
		setLog(f, unitlog.New(filepath.Join(m.logs, fmt.Sprint(i)), m.rng.Int64N(4096), unitlog.Limit))
		m.feeds[i] = f
	}
	for i, f := range m.feeds {
		saved, err := m.store.Load(fmt.Sprint("partition-", i))
		if errors.Is(err, fs.ErrNotExist) {
			m.savePartition(i) // as the consumer does before it reads anything
			continue
		}
		m.must(err)
		m.next[i] = int64(binary.LittleEndian.Uint64(saved["state"]))
		m.must(f.Restore(bytes.NewReader(saved["state"][8:])))
	}
}

// kill ends the pipeline immediately, damages some of what was last saved, and restarts it.
func (m *machine) kill() {
	disk := m.disk
	m.disk = disk.Copy() // saves of workers during the stop do not reach it
	_ = m.p.Stop()
	names, err := m.disk.Names("")
	m.must(err)
	for _, name := range names {
		if m.rng.IntN(2) == 0 {
			m.damage(name)
		}
	}
	m.tear()
	m.start()
}

// tear leaves the remains of a write at the end of a log of units.
func (m *machine) tear() {
	files, err := filepath.Glob(filepath.Join(m.logs, fmt.Sprint(m.rng.IntN(machinePartitions)), "*.log"))
	m.must(err)
	if len(files) == 0 {
		return
	}
	last, err := os.OpenFile(files[len(files)-1], os.O_WRONLY|os.O_APPEND, 0)
	m.must(err)
	_, err = last.Write(bytes.Repeat([]byte("rwl1"), m.rng.IntN(100)))
	m.must(errors.Join(err, last.Close()))
}

// damage damages the latest segment of a name, unless it is already damaged or there is none before it.
func (m *machine) damage(name string) {
	generations, err := m.disk.Generations(name)
	m.must(err)
	top := slices.Max(generations)
	segment, err := m.disk.Get(name, top)
	m.must(err)
	if top == 1 || bytes.Equal(segment, m.damaged[name]) {
		return
	}
	segment = segment[:m.rng.IntN(len(segment))]
	if m.rng.IntN(2) == 0 && len(segment) > 0 {
		segment[m.rng.IntN(len(segment))] ^= 0x10
	}
	m.damaged[name] = segment
	m.must(m.disk.Put(name, top, segment))
}

// read feeds n events of a partition.
func (m *machine) read(i int, n int64) {
	for end := min(machineEvents, m.next[i]+n); m.next[i] < end; m.next[i]++ {
		m.must(m.feeds[i].Process(m.t.Context(), []ingest.Event{machineEvent(int32(i), m.next[i])}))
	}
}

// saveWorker saves one of the workers.
func (m *machine) saveWorker() {
	workers := m.p.All()
	if len(workers) == 0 {
		return
	}
	r := workers[m.rng.IntN(len(workers))]
	m.must(r.Ask(m.t.Context(), func(context.Context) error { return r.save() }))
}

// evict lets one of the workers evict what it can of some of its groups.
func (m *machine) evict() {
	workers := m.p.All()
	if len(workers) == 0 {
		return
	}
	r := workers[m.rng.IntN(len(workers))]
	m.must(r.Ask(m.t.Context(), func(context.Context) error {
		groups := m.p.Memory.residents.Choose(m.rng.Int64N(1 << 20))
		r.evict(slices.DeleteFunc(groups, func(g ingest.Group) bool { return g.Policy != r.Name }))
		return nil
	}))
}

// savePartition saves a partition; a worker may be saved between its snapshot and the end of its writing.
func (m *machine) savePartition(i int) {
	image := bytes.NewBuffer(binary.LittleEndian.AppendUint64(nil, uint64(m.next[i])))
	m.must(m.feeds[i].Snapshot(image))
	for m.rng.IntN(3) == 0 {
		m.saveWorker()
	}
	m.must(m.store.Save(fmt.Sprint("partition-", i), ingest.Parts{"state": image.Bytes()}, nil))
	m.feeds[i].(ingest.Durable).Saved()
}

// shownState is what is shown for a policy.
type shownState struct {
	Summary   finding.Summary
	Incidents []alerts.Incident
	Guards    []float64 // values and mean of each guard, and the evidence if the units have one order
}

// outcome reads the rest of the events, and returns everything that is shown in the end, by policy.
func (m *machine) outcome() map[string]string {
	for i := range m.feeds {
		m.read(i, machineEvents)
		m.must(m.feeds[i].Idle(m.t.Context(), time.Now()))
	}
	testkit.Eventually(m.t, "every unit", func() bool { return m.p.judged() >= machinePartitions*machineEvents/3 })
	return shownIn(m.t, m.p.Pipeline)
}

// shownIn stops a pipeline and returns everything that it shows in the end, by policy.
func shownIn(t *testing.T, p *Pipeline) map[string]string {
	t.Helper()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range p.All() {
		r.Publish()
		s := *r.Policy.Summary()
		s.Groups = slices.Clone(s.Groups)
		for i := range s.Groups {
			s.Groups[i].FrozenAt = time.Time{}
		}
		slices.SortFunc(s.Groups, func(a, b finding.GroupSummary) int { return strings.Compare(a.Group.String(), b.Group.String()) })
		incidents := r.tracker.Incidents()
		slices.SortFunc(incidents, func(a, b alerts.Incident) int { return strings.Compare(a.ID, b.ID) })
		var state bytes.Buffer // encoded with gob, which follows pointers and supports NaN
		if err := gob.NewEncoder(&state).Encode(shownState{s, incidents, guardsOf(r)}); err != nil {
			t.Fatal(err)
		}
		out[r.Name] = state.String()
	}
	return out
}

// guardsOf returns what the guards of a policy have counted.
func guardsOf(r *RunningWorker) (counted []float64) {
	for _, g := range r.guards.Summary().Guards {
		if counted = append(counted, g.Values, g.Mean); r.Name != "walker" {
			counted = append(counted, g.Evidence)
		}
	}
	return counted
}

// Regardless of what is saved and evicted when, when the process is killed, and which of the latest saves are damaged,
// everything is in the end as if there had been no disturbance.
func TestFallbacksLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	t.Parallel()
	synctest.Test(t, fallbacksLoseNothing) // so that no time passes for the pulses of workers
}

func fallbacksLoseNothing(t *testing.T) {
	calibrations := budget.NewCalibrations()
	fresh := func(seed uint64) *machine {
		m := &machine{
			t: t, rng: rand.New(rand.NewPCG(seed, 17)), disk: ingesttest.NewSegments(), damaged: map[string][]byte{}, calibrations: calibrations,
			logs: t.TempDir(), memory: ingest.GiB,
		}
		m.start()
		return m
	}
	want := fresh(0).outcome()
	if n := guardsIn(t, want["ranker-0"]); n[0] != machineEvents*3/4 || n[3] != machineEvents/4 {
		t.Fatalf("guards of steps and of returns count %v and %v values, want every step and every episode", n[0], n[3])
	}
	histories, fallbacks, returns := uint64(25), 0, 0.
	if testing.Short() {
		histories = 5
	}
	for seed := range histories {
		m := fresh(seed)
		m.memory = ingest.ByteSize(seed%3) * 512 * ingest.KiB
		if m.memory == 0 {
			m.memory = ingest.GiB
		}
		for range 60 {
			switch m.rng.IntN(10) {
			case 0, 1, 2:
				m.read(m.rng.IntN(machinePartitions), m.rng.Int64N(100))
			case 3, 4:
				m.saveWorker()
			case 5, 6:
				m.savePartition(m.rng.IntN(machinePartitions))
			case 7, 8:
				m.evict()
			default:
				returns += testutil.ToFloat64(m.p.Memory.returns)
				before := len(m.damaged)
				m.kill()
				fallbacks += len(m.damaged) - before
			}
		}
		outcome := m.outcome()
		returns += testutil.ToFloat64(m.p.Memory.returns)
		for policy, state := range outcome {
			if state != want[policy] {
				t.Errorf("history %d: policy %s is another: units %v, guards %v, want %v, %v", seed, policy, unitsIn(t, state), guardsIn(t, state),
					unitsIn(t, want[policy]), guardsIn(t, want[policy]))
			}
		}
	}
	if fallbacks < int(histories) || returns < float64(histories) {
		t.Errorf("only %d names were ever damaged, and %g groups brought back", fallbacks, returns)
	}
	t.Logf("%d names were damaged, and %g groups brought back", fallbacks, returns)
}

// unitsIn returns the numbers of units of the groups in what is shown.
func unitsIn(t *testing.T, shown string) (units []int64) {
	t.Helper()
	var s shownState
	if err := gob.NewDecoder(strings.NewReader(shown)).Decode(&s); err != nil {
		t.Fatal(err)
	}
	for _, g := range s.Summary.Groups {
		units = append(units, g.Units)
	}
	return units
}

func guardsIn(t *testing.T, shown string) []float64 {
	t.Helper()
	var s shownState
	if err := gob.NewDecoder(strings.NewReader(shown)).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s.Guards
}

// A person's decision is not in any telemetry, so a fallback must not need to read it again.
func TestDecisionsOutliveAFallback(t *testing.T) {
	t.Parallel()
	m := &machine{
		t: t, rng: rand.New(rand.NewPCG(1, 17)), disk: ingesttest.NewSegments(), damaged: map[string][]byte{}, calibrations: budget.NewCalibrations(),
		logs: t.TempDir(), memory: ingest.GiB,
	}
	m.start()
	m.read(0, 30)
	m.must(m.feeds[1].Idle(t.Context(), time.Now()))
	testkit.Eventually(t, "units", func() bool { return m.p.judged() == 10 })
	r, err := m.p.workers.Worker(t.Context(), "ranker-0")
	m.must(err)
	m.must(r.Ask(t.Context(), func(context.Context) error { return r.save() }))
	group := r.Policy.Summary().Groups[0].Group
	m.must(r.change(t.Context(), func(ctx context.Context) error {
		return r.restart(ctx, group, alerts.Decision{Kind: alerts.Reset, By: "ann", Why: "new prices", At: time.Now()})
	}))
	name := BankPrefix + "ranker-0"
	reopened := func() ingest.Parts {
		parts, err := checkpoint.NewStore(m.disk, zerolog.Nop(), prometheus.NewRegistry()).Load(name)
		m.must(err)
		return parts
	}
	want := reopened()
	m.damage(name)
	if got := reopened(); !maps.EqualFunc(got, want, bytes.Equal) {
		t.Error("the save before does not hold the decision")
	}
	m.must(m.p.Stop())
}
