package feedback

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	noon   = int64(1_790_000_000) * second
)

// partition passes records to a joiner like a partition of a topic.
type partition struct {
	*Joiner
	clock int64
	next  int64
	units []*ingest.Unit
}

func clicks() Config {
	return Config{
		Key: "episode_id", Window: model.Duration(10 * time.Minute), Horizons: []model.Duration{model.Duration(time.Minute)},
		Default: map[string]float64{"reward": 0},
	}
}

func newPartition(c Config, most int) *partition {
	return &partition{Joiner: New(Options{
		Of:      func(string) Config { return c },
		GroupBy: func(string) []string { return []string{"env"} },
		SplitBy: func(string) []string { return []string{"labels.segment"} }, MaxOpen: most,
	}, NewMetrics(prometheus.NewRegistry()), assemble.NewMetrics(prometheus.NewRegistry()))}
}

func (p *partition) read(events ...ingest.Event) {
	for _, e := range events {
		e.Pos = ingest.Position{Offset: p.next}
		p.next++
		p.clock = max(p.clock, e.TS)
		p.Advance(p.clock, e.Pos, func(u *ingest.Unit) { p.units = append(p.units, u) })
		p.Fold(&e, p.clock)
	}
}

// wait reads a record of another key that is d later.
func (p *partition) wait(d int64) { p.read(shown("later-"+strconv.FormatInt(p.next, 10), p.clock+d)) }

func shown(key string, ts int64) ingest.Event {
	return ingest.Event{
		Policy: "shop", Env: "web", EpisodeID: key, AgentID: "user-" + key, TS: ts, Step: -1, Length: -1,
		Versions:    ingest.Versions{Policy: "7"},
		Action:      ingest.Action{Kind: ingest.ActionCategory, Category: "3", Values: []float64{3}, Scalar: true},
		Observation: []ingest.Value{{Name: "basket", X: 2.5}},
	}
}

func clicked(key string, ts int64) ingest.Event {
	return ingest.Event{
		Policy: "shop", EpisodeID: key, TS: ts, Step: -1, Length: -1, Reward: 1, HasReward: true,
		Outcomes: []ingest.Value{{Name: "dwell", X: 12}},
	}
}

// of returns the units of a key: those at the horizons and the last one.
func (p *partition) of(key string) (out []*ingest.Unit) {
	for _, u := range p.units {
		if u.Episode == key {
			out = append(out, u)
		}
	}
	return out
}

func counts(t *testing.T, p *partition) string {
	t.Helper()
	m, n := p.metrics, func(c prometheus.Collector) int { return int(testutil.ToFloat64(c)) }
	return fmt.Sprintf("open %d, final %d, dropped %d, repeated %d, no time %d; matched %d, late %d, without a decision %d, repeated %d, no key %d",
		n(m.open), n(m.final), n(m.dropped), n(m.repeated), n(m.noTime), n(m.matched), n(m.late), n(m.unmatched), n(m.repeatedRecords), n(m.noKey))
}

func TestClickJoinsItsDecision(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(shown("a", noon), shown("b", noon+second), clicked("a", noon+5*minute))
	p.wait(6 * minute)
	a, b := p.of("a"), p.of("b")
	if len(a) != 2 || len(b) != 2 {
		t.Fatalf("%d units of a and %d of b, want 2 each", len(a), len(b))
	}
	for i, want := range []struct {
		group  ingest.Group
		reward float64
		end    int64
	}{
		{ingest.NewGroup("shop", ingest.Label{Name: "env", Value: "web"}, ingest.Label{Name: "horizon", Value: "1m"}), 0, noon + minute},
		{ingest.NewGroup("shop", ingest.Label{Name: "env", Value: "web"}), 1, noon + 10*minute},
	} {
		u := a[i]
		if u.Group != want.group || u.Return != want.reward || u.Reward.Mean != want.reward || u.EndTS != want.end || u.StartTS != noon || u.End != ingest.EndWindow {
			t.Errorf("unit %d is of %s with reward %v from %d to %d", i, u.Group, u.Return, u.StartTS, u.EndTS)
		}
	}
	if b[1].Return != 0 || !b[1].HasReturn {
		t.Errorf("a decision without a click has the return %v", b[1].Return)
	}
	if got, want := counts(t, p), "open 1, final 2, dropped 0, repeated 0, no time 0; matched 1, late 0, without a decision 0, repeated 0, no key 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A decision with its feedback results in the same unit as an episode with one step that contained everything from the
// start, except for the delay and the time and reason of its end.
func TestUnitIsThatOfOneStep(t *testing.T) {
	p := newPartition(clicks(), 100)
	p.read(shown("a", noon), clicked("a", noon+5*minute))
	p.wait(6 * minute)
	got := *p.of("a")[1]
	whole := shown("a", noon)
	whole.Reward, whole.HasReward, whole.Outcomes, whole.Terminated = 1, true, clicked("a", 0).Outcomes, true
	var want ingest.Unit
	a := assemble.New(assemble.Config{}, assemble.NewMetrics(prometheus.NewRegistry()))
	a.Fold(&whole, func(u *ingest.Unit) { want = *u })
	delay := got.Numeric[len(got.Numeric)-1]
	if delay.Signal != DelaySignal || delay.Mean != 300 {
		t.Errorf("the delay is %v", delay)
	}
	got.Numeric = got.Numeric[:len(got.Numeric)-1]
	got.End, got.EndTS, got.Last, got.Pos, got.Events = want.End, want.EndTS, want.Last, want.Pos, want.Events
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The units of a decision, including those at its horizons, have the labels of the decision, also after a restart.
func TestUnitsHaveLabelsOfTheirDecisions(t *testing.T) {
	p := newPartition(clicks(), 40)
	for _, key := range []string{"new", "old", "none"} {
		e := shown(key, noon)
		if key != "none" {
			e.Labels = []ingest.Label{{Name: "segment", Value: key}, {Name: "other", Value: "1"}}
		}
		p.read(e)
	}
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	then := newPartition(clicks(), 40)
	if err := then.Restore(bytes.NewReader(part), p.clock); err != nil {
		t.Fatal(err)
	}
	then.clock, then.next = p.clock, p.next
	then.read(clicked("new", noon+second), clicked("old", noon+second))
	then.wait(20 * minute)
	for key, want := range map[string][]ingest.Label{
		"new": {{Name: "labels.segment", Value: "new"}}, "old": {{Name: "labels.segment", Value: "old"}}, "none": nil,
	} {
		units := then.of(key)
		if len(units) != 2 {
			t.Fatalf("%s: %d units", key, len(units))
		}
		for _, u := range units {
			if !slices.Equal(u.Labels, want) {
				t.Errorf("%s: labels %q, want %q", key, u.Labels, want)
			}
		}
	}
}

func TestFeedbackAddsUp(t *testing.T) {
	p := newPartition(clicks(), 100)
	again := clicked("a", noon+4*minute)
	again.Reward, again.Outcomes[0].X = .5, 3
	again.RewardComponents = []ingest.Value{{Name: "sale", X: 7}}
	more := again
	more.TS++
	p.read(shown("a", noon), clicked("a", noon+2*minute), again, more)
	p.wait(11 * minute)
	u := p.of("a")[1]
	numbers := map[string]float64{}
	for _, n := range u.Numeric {
		numbers[n.Signal] = n.Mean
	}
	want := map[string]float64{"action": 3, "observation.basket": 2.5, "outcome.dwell": 3, "reward_component.sale": 14, DelaySignal: 120}
	if u.Return != 2 || u.Events != 4 || !reflect.DeepEqual(numbers, want) {
		t.Errorf("return %v of %d records, %v", u.Return, u.Events, numbers)
	}
}

func TestFeedbackThatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []ingest.Event
		wait   int64
		want   string
	}{
		{
			"comes before its decision",
			[]ingest.Event{clicked("a", noon), shown("a", noon-second)},
			11 * minute, "open 1, final 1, dropped 0, repeated 0, no time 0; matched 1, late 0, without a decision 0, repeated 0, no key 0",
		},
		{
			"comes after the window",
			[]ingest.Event{shown("a", noon), shown("b", noon+11*minute), clicked("a", noon+12*minute)},
			0, "open 2, final 1, dropped 0, repeated 0, no time 0; matched 0, late 1, without a decision 0, repeated 0, no key 0",
		},
		{
			"has no decision",
			[]ingest.Event{clicked("a", noon)},
			11 * minute, "open 1, final 0, dropped 0, repeated 0, no time 0; matched 0, late 0, without a decision 1, repeated 0, no key 0",
		},
		{
			"is delivered twice",
			[]ingest.Event{shown("a", noon), clicked("a", noon+1), clicked("a", noon+1)},
			11 * minute, "open 1, final 1, dropped 0, repeated 0, no time 0; matched 1, late 0, without a decision 0, repeated 1, no key 0",
		},
		{
			"has no key",
			[]ingest.Event{shown("a", noon), clicked("", noon+1)},
			11 * minute, "open 1, final 1, dropped 0, repeated 0, no time 0; matched 0, late 0, without a decision 0, repeated 0, no key 1",
		},
		{
			"meets a decision delivered twice",
			[]ingest.Event{shown("a", noon), shown("a", noon), clicked("a", noon+1)},
			11 * minute, "open 1, final 1, dropped 0, repeated 1, no time 0; matched 1, late 0, without a decision 0, repeated 0, no key 0",
		},
		{
			"is of a decision without a time",
			[]ingest.Event{shown("b", noon), shown("a", 0)},
			11 * minute, "open 1, final 1, dropped 0, repeated 0, no time 1; matched 0, late 0, without a decision 0, repeated 0, no key 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPartition(clicks(), 100)
			p.read(c.events...)
			p.wait(c.wait)
			if got := counts(t, p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(p.of("a")) == 2 && c.events[0].HasReward && p.of("a")[1].Return != 1 {
				t.Errorf("early feedback is lost: %v", p.of("a")[1].Return)
			}
		})
	}
}

func TestKeysOfAgentsAndLabels(t *testing.T) {
	for _, key := range []string{"agent_id", "labels.impression"} {
		c := clicks()
		c.Key = key
		p := newPartition(c, 100)
		with := func(e ingest.Event) ingest.Event {
			e.EpisodeID, e.AgentID, e.Labels = "", "i-1", []ingest.Label{{Name: "impression", Value: "i-1"}}
			return e
		}
		p.read(with(shown("", noon)), with(clicked("", noon+minute/2)))
		other := with(shown("", noon+11*minute))
		other.AgentID, other.Labels[0].Value = "i-2", "i-2"
		p.read(other)
		if u := p.of("i-1"); len(u) != 2 || u[0].Return != 1 || u[1].Return != 1 {
			t.Errorf("by %s: %v", key, u)
		}
	}
}

func TestOldestDecisionMakesRoom(t *testing.T) {
	p := newPartition(clicks(), 3)
	for i := range int64(5) {
		p.read(shown(strconv.FormatInt(i, 10), noon+i))
	}
	p.wait(11 * minute)
	if got := p.Open(); got != 1 || len(p.of("0")) > 0 || len(p.of("4")) != 2 || testutil.ToFloat64(p.metrics.dropped) != 2 {
		t.Errorf("%d are open; %s", got, counts(t, p))
	}
}

// randomEvents returns all kinds of decisions and feedback, roughly in the order of their times.
func randomEvents(seed uint64, n int) []ingest.Event {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []ingest.Event
	for i := range n {
		ts := noon + int64(i)*20*second - r.Int64N(60*second)
		key := strconv.Itoa(max(0, i-r.IntN(60)))
		e := clicked(key, ts)
		switch r.IntN(4) {
		case 0:
			e = shown(strconv.Itoa(i), ts)
			e.Env = strconv.Itoa(r.IntN(2))
			e.Labels = []ingest.Label{{Name: "shadow", Value: strconv.FormatBool(r.IntN(5) == 0)}}
		case 1:
			e = shown(strconv.Itoa(i), ts)
			e.Observation[0].X = math.NaN()
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{1, r.Float64()}}
		case 2:
			e.HasReward, e.Versions.Reward = false, "r2"
			e.Outcomes[0].Name = "o" + strconv.Itoa(r.IntN(3))
		}
		out = append(out, e)
	}
	return out
}

func snapshot(p *partition) ([]byte, error) {
	var b bytes.Buffer
	err := p.Snapshot(&b)
	return b.Bytes(), err
}

// A joiner that is saved and restored at any record continues as if it had not been interrupted.
func TestSimRestoredJoinerGoesOn(t *testing.T) {
	events := randomEvents(3, 600)
	whole := newPartition(clicks(), 40)
	whole.read(events...)
	for _, cut := range []int{0, 1, 7, 100, 333, 599} {
		first := newPartition(clicks(), 40)
		first.read(events[:cut]...)
		part, err := snapshot(first)
		if err != nil {
			t.Fatal(err)
		}
		then := newPartition(clicks(), 40)
		if err := then.Restore(bytes.NewReader(part), first.clock); err != nil {
			t.Fatal(err)
		}
		if again, err := snapshot(then); err != nil || !bytes.Equal(part, again) {
			t.Fatalf("cut at %d: the snapshot of a restored joiner differs: %v", cut, err)
		}
		then.clock, then.next, then.units = first.clock, first.next, first.units
		then.read(events[cut:]...)
		if got, want := ingesttest.Text(flat(then.units)), ingesttest.Text(flat(whole.units)); got != want {
			t.Errorf("cut at %d: the units differ:\n%s\n%s", cut, got, want)
		}
	}
	if len(whole.units) < 300 {
		t.Errorf("only %d units were compared", len(whole.units))
	}
}

func flat(units []*ingest.Unit) (out []ingest.Unit) {
	for _, u := range units {
		out = append(out, *u)
	}
	return out
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	p := newPartition(clicks(), 40)
	p.read(randomEvents(4, 100)...)
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 1))
	refused := 0
	for range 2000 {
		damaged := bytes.Clone(part)
		damaged[r.IntN(len(damaged))] ^= byte(1 + r.IntN(255))
		q := newPartition(clicks(), 40)
		if q.Restore(bytes.NewReader(damaged[:len(damaged)-r.IntN(2)]), p.clock) != nil {
			refused++
			continue
		}
		q.clock, q.next = p.clock, p.next
		q.wait(20 * minute) // what was accepted must be of use
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

func TestChangedWindowIsApplied(t *testing.T) {
	p := newPartition(clicks(), 40)
	p.read(shown("a", noon), shown("b", noon+2*minute))
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	longer := clicks()
	longer.Window, longer.Horizons = model.Duration(time.Hour), nil
	q := newPartition(longer, 40)
	if err := q.Restore(bytes.NewReader(part), p.clock); err != nil {
		t.Fatal(err)
	}
	q.clock, q.next = p.clock, p.next
	q.wait(11 * minute)
	if len(q.units) > 0 {
		t.Errorf("a decision ended after %d", q.units[0].EndTS-q.units[0].StartTS)
	}
	q.wait(50 * minute)
	if u := q.of("a"); len(u) != 1 || u[0].EndTS != noon+60*minute {
		t.Errorf("units %v", u)
	}
	without := newPartition(Config{}, 40)
	if err := without.Restore(bytes.NewReader(part), p.clock); err != nil || without.Open() != 0 || testutil.ToFloat64(without.metrics.dropped) != 2 {
		t.Errorf("without feedback %d stay open: %v", without.Open(), err)
	}
}

func TestForgottenPolicyHasNoDecisions(t *testing.T) {
	p := newPartition(clicks(), 40)
	other := shown("a", noon)
	other.Policy = "other"
	p.read(shown("a", noon), other, shown("b", noon))
	p.Forget("shop")
	p.Forget("unknown")
	if p.Open() != 1 {
		t.Errorf("%d decisions are open, want that of the other policy", p.Open())
	}
	if p.Close(); testutil.ToFloat64(p.metrics.open) != 0 {
		t.Error("closing leaves open decisions in the metric")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, ""},
		{clicks(), ""},
		{Config{Window: 1}, "key"},
		{Config{Key: "id", Window: model.Duration(time.Hour)}, "key"},
		{Config{Key: "labels.", Window: model.Duration(time.Hour)}, "key"},
		{Config{Key: "episode_id"}, "window"},
		{Config{Key: "episode_id", Window: model.Duration(time.Hour), Horizons: []model.Duration{model.Duration(2 * time.Hour)}}, "horizons[0]"},
		{Config{Key: "episode_id", Window: model.Duration(time.Hour), Horizons: []model.Duration{5, 5}}, "horizons[1]"},
		{Config{Key: "episode_id", Window: model.Duration(time.Hour), Horizons: []model.Duration{1, 2, 3, 4, 5}}, "horizons"},
		{Config{Key: "episode_id", Window: model.Duration(time.Hour), Default: map[string]float64{"return": 0}}, "default.return"},
		{Config{Key: "episode_id", Window: model.Duration(time.Hour), Default: map[string]float64{"outcome.": 0}}, "default.outcome."},
		{Config{Key: "episode_id", Window: model.Duration(time.Hour), Default: map[string]float64{"outcome.x": math.NaN()}}, "default.outcome.x"},
	} {
		got := ""
		c.config.Check(func(path, _ string) { got = path })
		if got != c.want {
			t.Errorf("%+v: the error is at %q, want %q", c.config, got, c.want)
		}
	}
}

// BenchmarkMillionOpen joins with a million open decisions, like a recommender that shows 280 items per second with a
// window of an hour.
func BenchmarkMillionOpen(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := newPartition(clicks(), 1_000_000)
		for i := range int64(1_000_000) {
			e := shown(strconv.FormatInt(i, 16), noon+i)
			e.Observation = append(e.Observation, ingest.Value{Name: "price", X: 1}, ingest.Value{Name: "age", X: 2}, ingest.Value{Name: "rank", X: 3})
			p.read(e)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(p.Open()), "B/decision")
		part, err := snapshot(p)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(part))/float64(p.Open()), "saved-B/decision")
	}
}

// A snapshot of randomEvents(6, 120) in the previous format is read unchanged.
func TestSnapshotOfFormat1IsRead(t *testing.T) {
	old, err := os.ReadFile("testdata/snapshot-1.cbor")
	if err != nil {
		t.Fatal(err)
	}
	want := newPartition(clicks(), 40)
	want.read(randomEvents(6, 120)...)
	got := newPartition(clicks(), 40)
	if err := got.RestoreWhole(old, want.clock); err != nil {
		t.Fatal(err)
	}
	now, err := snapshot(got)
	if wanted, _ := snapshot(want); err != nil || got.Open() < 10 || !bytes.Equal(now, wanted) {
		t.Errorf("%d decisions are open, want the %d that were saved: %v", got.Open(), want.Open(), err)
	}
	if err := got.RestoreWhole(nil, 0); err != nil || got.Open() != 0 {
		t.Errorf("%d decisions of an empty snapshot are open: %v", got.Open(), err)
	}
}

// Several frames have the same content as a single one, and can be skipped as a whole.
func TestManyDecisionsAreSavedInFrames(t *testing.T) {
	p := newPartition(clicks(), 3*inFrame)
	for i := range int64(2*inFrame + 5) {
		p.read(shown(strconv.FormatInt(i, 10), noon+i))
	}
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	behind := append(bytes.Clone(part), "behind"...)
	r := bytes.NewReader(behind)
	if whole, err := Saved(r); err != nil || !bytes.Equal(whole, part) || r.Len() != len("behind") {
		t.Errorf("%d of %d bytes were read, and %d are left: %v", len(whole), len(part), r.Len(), err)
	}
	q := newPartition(clicks(), 3*inFrame)
	r = bytes.NewReader(behind)
	if err := q.Restore(r, p.clock); err != nil || q.Open() != p.Open() || r.Len() != len("behind") {
		t.Errorf("%d of %d decisions were read, and %d bytes are left: %v", q.Open(), p.Open(), r.Len(), err)
	}
	if taken := q.metrics.Bytes(); taken < int64(100*q.Open()) || testutil.ToFloat64(q.metrics.open) != float64(q.Open()) {
		t.Errorf("%d decisions take %d bytes", q.Open(), taken)
	}
	for _, cut := range []int{3, 40, len(part) / 2, len(part) - 1} {
		if err := q.Restore(bytes.NewReader(part[:cut]), p.clock); err == nil || q.Open() != 0 || q.metrics.Bytes() != 0 {
			t.Errorf("cut at %d of %d bytes: %d decisions, %v", cut, len(part), q.Open(), err)
		}
		if _, err := Saved(bytes.NewReader(part[:cut])); err == nil {
			t.Errorf("%d of %d bytes are taken for all", cut, len(part))
		}
	}
}

// Whatever is written can be read again, regardless of the number and the names of the decisions.
func TestLargeDecisionsAreSavedInSmallerFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const n, values = 1300, 60
	long := strings.Repeat("x", 1000)
	p := newPartition(clicks(), n)
	for i := range int64(n) {
		e := shown(strconv.FormatInt(i, 10), noon+i)
		for k := range values {
			e.Observation = append(e.Observation, ingest.Value{Name: fmt.Sprint(i, k, long), X: 1})
		}
		p.read(e)
	}
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	q := newPartition(clicks(), n)
	if err := q.Restore(bytes.NewReader(part), p.clock); err != nil || q.Open() != n {
		t.Errorf("%d of %d decisions were read: %v", q.Open(), n, err)
	}
	if again, err := snapshot(q); err != nil || !bytes.Equal(again, part) {
		t.Errorf("the next snapshot has %d bytes, and this one %d: %v", len(again), len(part), err)
	}
	if whole, err := Saved(bytes.NewReader(part)); err != nil || !bytes.Equal(whole, part) {
		t.Errorf("%d of %d bytes were read: %v", len(whole), len(part), err)
	}
}

func TestProbabilitiesOfADecisionReachItsUnit(t *testing.T) {
	p := newPartition(clicks(), 100)
	e := shown("a", noon)
	e.ActionProb, e.TargetProb = ingest.Prob{P: .25, Known: true}, ingest.Prob{P: .5, Known: true}
	p.read(e, clicked("a", noon+minute/2))
	part, err := snapshot(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Restore(bytes.NewReader(part), p.clock); err != nil {
		t.Fatal(err)
	}
	p.wait(20 * minute)
	units := p.of("a")
	if len(units) != 2 || units[0].Propensity != nil {
		t.Fatalf("%d units, that of the horizon with %+v", len(units), units[0].Propensity)
	}
	want := &ingest.Propensity{
		Steps: 1, Log: math.Log(.25), Targets: 1, LogTarget: math.Log(.5), Weight: 2, WeightedReward: 2,
		Actions: []ingest.InverseProbs{{Sum: 4, Reward: 4}},
	}
	if got := units[1].Propensity; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
