package assemble

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// change modifies an event of a test.
type change func(*ingest.Event)

func agentID(id string) change   { return func(e *ingest.Event) { e.AgentID = id } }
func episodeID(id string) change { return func(e *ingest.Event) { e.EpisodeID = id } }
func at(ts int64) change         { return func(e *ingest.Event) { e.TS = ts } }
func env(name string) change     { return func(e *ingest.Event) { e.Env = name } }
func terminated(e *ingest.Event) { e.Terminated = true }
func truncated(e *ingest.Event)  { e.Truncated = true }

func withSummary(r float64, l int64) change {
	return func(e *ingest.Event) { e.HasEpisode, e.Return, e.Length = true, r, l }
}

// stepOf returns a step with a reward. A number of -1 means that it has no step number.
func stepOf(number int64, reward float64, changes ...change) ingest.Event {
	e := ingest.Event{Policy: "p", Step: number, Reward: reward, HasReward: true, Length: -1}
	for _, c := range changes {
		c(&e)
	}
	return e
}

// summaryOf returns a record with only the summary of an episode.
func summaryOf(r float64, l int64, changes ...change) ingest.Event {
	e := stepOf(-1, 0, append([]change{withSummary(r, l)}, changes...)...)
	e.HasReward = false
	return e
}

// bench runs an assembler and collects its units.
type bench struct {
	*Assembler
	reg    *prometheus.Registry
	offset int64
	units  []*ingest.Unit
}

func newBench(cfg Config) *bench {
	reg := prometheus.NewRegistry()
	return &bench{Assembler: New(cfg, NewMetrics(reg)), reg: reg}
}

// feed passes events to the assembler at the next offsets.
func (b *bench) feed(events ...ingest.Event) {
	for i := range events {
		e := events[i]
		e.Pos = ingest.Position{Partition: 3, Offset: b.offset}
		b.offset++
		b.Fold(&e, func(u *ingest.Unit) { b.units = append(b.units, u) })
	}
}

// told returns the units as agent/episode end length=return offsets@position.
func (b *bench) told() []string {
	var out []string
	for _, u := range b.units {
		out = append(out, fmt.Sprintf("%s/%s %s %d=%v %d-%d@%d.%d",
			u.Agent, u.Episode, u.End, u.Length, u.Return, u.First.Offset, u.Last.Offset, u.Pos.Offset, u.Ord))
	}
	return out
}

func (b *bench) counted(t *testing.T, name, label, value string) float64 {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetName() == label && m.GetLabel()[0].GetValue() == value) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s{%s=%q}", name, label, value)
	return 0
}

func TestEpisodesEnd(t *testing.T) {
	id := episodeID("e")
	for name, c := range map[string]struct {
		events []ingest.Event
		want   []string
		open   int
	}{
		"terminated": {
			events: []ingest.Event{stepOf(0, 1), stepOf(1, 2), stepOf(2, 4, terminated), stepOf(0, 1)},
			want:   []string{"/ terminated 3=7 0-2@2.0"}, open: 1,
		},
		"truncated": {
			events: []ingest.Event{stepOf(0, 1, id), stepOf(1, 2, truncated, id)},
			want:   []string{"/e truncated 2=3 0-1@1.0"},
		},
		"terminated and truncated": {
			events: []ingest.Event{stepOf(0, 1, terminated, truncated)},
			want:   []string{"/ terminated 1=1 0-0@0.0"},
		},
		"a summary in the last step replaces the sums": {
			events: []ingest.Event{stepOf(7, 1), stepOf(8, 1, withSummary(100, 9))},
			want:   []string{"/ summary 9=100 0-1@1.0"},
		},
		"a summary with the termination": {
			events: []ingest.Event{stepOf(7, 1), stepOf(8, 1, withSummary(100, 9), terminated), summaryOf(5, 2)},
			want:   []string{"/ terminated 9=100 0-1@1.0", "/ summary 2=5 2-2@2.0"},
		},
		"a summary of its own": {
			events: []ingest.Event{stepOf(0, 1), stepOf(1, 1), summaryOf(50, -1)},
			want:   []string{"/ summary 2=50 0-2@2.0"},
		},
		"summaries alone": {
			events: []ingest.Event{summaryOf(50, 3), summaryOf(50, 3), summaryOf(7, -1)},
			want:   []string{"/ summary 3=50 0-0@0.0", "/ summary 3=50 1-1@1.0", "/ summary 0=7 2-2@2.0"},
		},
		"the step does not increase": {
			events: []ingest.Event{stepOf(0, 1), stepOf(1, 1), stepOf(0, 5), stepOf(0, 6), stepOf(1, 1)},
			want:   []string{"/ step 2=2 0-1@2.0", "/ step 1=5 2-2@3.0"}, open: 1,
		},
		"two at one record": {
			events: []ingest.Event{stepOf(0, 1), stepOf(1, 1), stepOf(0, 5, terminated)},
			want:   []string{"/ step 2=2 0-1@2.0", "/ terminated 1=5 2-2@2.1"},
		},
		"no steps, no order": {
			events: []ingest.Event{stepOf(-1, 1), stepOf(-1, 1), stepOf(3, 1), stepOf(-1, 1), stepOf(4, 1, terminated)},
			want:   []string{"/ terminated 5=5 0-4@4.0"},
		},
		"agents are apart": {
			events: []ingest.Event{
				stepOf(0, 1, agentID("a")), stepOf(0, 2, agentID("b")), stepOf(1, 1, agentID("a"), terminated),
				stepOf(1, 2, agentID("b"), terminated),
			},
			want: []string{"a/ terminated 2=2 0-2@2.0", "b/ terminated 2=4 1-3@3.0"},
		},
		"so are the agent's episodes": {
			events: []ingest.Event{
				stepOf(0, 1, episodeID("x")), stepOf(0, 2, episodeID("y")), stepOf(1, 1, episodeID("x"), terminated),
			},
			want: []string{"/x terminated 2=2 0-2@2.0"}, open: 1,
		},
		"names are not joined": {
			events: []ingest.Event{
				stepOf(0, 1, agentID("ab"), episodeID("c")), stepOf(0, 2, agentID("a"), episodeID("bc"), terminated),
			},
			want: []string{"a/bc terminated 1=2 1-1@1.0"}, open: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Config{})
			b.feed(c.events...)
			if got := b.told(); !slices.Equal(got, c.want) {
				t.Errorf("units\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if b.Open() != c.open || b.counted(t, MetricOpenEpisodes, "", "") != float64(c.open) {
				t.Errorf("%d are open, want %d", b.Open(), c.open)
			}
		})
	}
}

func TestEventsThatAreIgnored(t *testing.T) {
	id := episodeID("e")
	for name, c := range map[string]struct {
		events []ingest.Event
		want   []string
		reason string
		count  float64
	}{
		"a step twice": {
			events: []ingest.Event{stepOf(0, 1, id), stepOf(1, 1, id), stepOf(1, 1, id), stepOf(0, 1, id), stepOf(2, 1, id, terminated)},
			want:   []string{"/e terminated 3=3 0-4@4.0"}, reason: "duplicate", count: 2,
		},
		"an episode twice": {
			events: []ingest.Event{stepOf(0, 1, id), stepOf(1, 1, id, terminated), stepOf(0, 1, id), stepOf(1, 1, id, terminated)},
			want:   []string{"/e terminated 2=2 0-1@1.0"}, reason: "duplicate", count: 2,
		},
		"an episode twice, by its clock": {
			events: []ingest.Event{stepOf(0, 1, id, at(10)), stepOf(1, 1, id, at(20), terminated), stepOf(1, 1, id, at(20), terminated)},
			want:   []string{"/e terminated 2=2 0-1@1.0"}, reason: "duplicate", count: 1,
		},
		"the id is used anew": {
			events: []ingest.Event{stepOf(0, 1, id, at(10)), stepOf(1, 1, id, at(20), terminated), stepOf(0, 1, id, at(30), terminated)},
			want:   []string{"/e terminated 2=2 0-1@1.0", "/e terminated 1=1 2-2@2.0"}, reason: "duplicate", count: 0,
		},
		"a late summary": {
			events: []ingest.Event{stepOf(0, 1, id, terminated), summaryOf(9, 9, id), summaryOf(9, 9, id)},
			want:   []string{"/e terminated 1=1 0-0@0.0"}, reason: "late_summary", count: 1,
		},
		"a summary twice": {
			events: []ingest.Event{summaryOf(9, 9, id), summaryOf(9, 9, id)},
			want:   []string{"/e summary 9=9 0-0@0.0"}, reason: "duplicate", count: 1,
		},
		"a summary behind an end that had one": {
			events: []ingest.Event{stepOf(0, 1, id, terminated, withSummary(9, 9)), summaryOf(9, 9, id)},
			want:   []string{"/e terminated 9=9 0-0@0.0"}, reason: "late_summary", count: 1,
		},
		"a late summary, twice, by its clock": {
			events: []ingest.Event{
				stepOf(0, 1, id, at(10), terminated), summaryOf(9, 9, id, at(11)), summaryOf(9, 9, id, at(11)),
				summaryOf(8, 8, id, at(20)),
			},
			want: []string{"/e terminated 1=1 0-0@0.0", "/e summary 8=8 3-3@3.0"}, reason: "duplicate", count: 1,
		},
		"a late summary after others": {
			events: []ingest.Event{stepOf(0, 1, id, terminated), stepOf(0, 1, episodeID("f")), summaryOf(9, 9, id)},
			want:   []string{"/e terminated 1=1 0-0@0.0"}, reason: "late_summary", count: 1,
		},
		"a late summary without an id": {
			events: []ingest.Event{stepOf(0, 1, truncated), summaryOf(9, 9), summaryOf(8, 8)},
			want:   []string{"/ truncated 1=1 0-0@0.0", "/ summary 8=8 2-2@2.0"}, reason: "late_summary", count: 1,
		},
		"a summary without an id after a new step": {
			events: []ingest.Event{stepOf(0, 1, terminated), stepOf(0, 1), summaryOf(9, 9)},
			want:   []string{"/ terminated 1=1 0-0@0.0", "/ summary 9=9 1-2@2.0"}, reason: "late_summary", count: 0,
		},
		"a summary without an id after another step's end": {
			events: []ingest.Event{stepOf(0, 1), stepOf(0, 1), summaryOf(9, 9), summaryOf(8, 8)},
			want: []string{
				"/ step 1=1 0-0@1.0", "/ summary 9=9 1-2@2.0", "/ summary 8=8 3-3@3.0",
			}, reason: "late_summary", count: 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Config{})
			b.feed(c.events...)
			if got := b.told(); !slices.Equal(got, c.want) {
				t.Errorf("units\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if got := b.counted(t, MetricEventsIgnored, "reason", c.reason); got != c.count {
				t.Errorf("%v ignored as %s, want %v", got, c.reason, c.count)
			}
		})
	}
}

func TestMemoryOfEndedEpisodesIsBounded(t *testing.T) {
	b := newBench(Config{})
	name := func(i int) change { return episodeID(strconv.Itoa(i)) }
	for i := range 3 * remembered {
		b.feed(stepOf(0, 1, name(i), terminated))
	}
	if n := len(b.recent.ring); n != remembered || b.recent.used() != remembered {
		t.Fatalf("%d episodes in %d places are remembered", b.recent.used(), n)
	}
	b.feed(stepOf(0, 1, name(3*remembered-1), terminated), stepOf(0, 1, name(2*remembered), terminated))
	if got := b.counted(t, MetricEventsIgnored, "reason", "duplicate"); got != 2 {
		t.Errorf("%v of the newest %d were recognised, want both", got, remembered)
	}
	units := len(b.units)
	b.feed(stepOf(0, 1, name(2*remembered-1), terminated))
	if len(b.units) != units+1 {
		t.Error("one older than that was recognised")
	}
}

// TestUnitSumsUp aggregates one episode with values in every field.
func TestUnitSumsUp(t *testing.T) {
	b := newBench(Config{})
	rewards := []float64{1, 1, 1, -2, math.NaN(), math.Inf(1), 4, 4}
	for i, r := range rewards {
		e := stepOf(int64(i), r, agentID("a"), episodeID("e"), env("prod"), at(int64(1000+i)))
		e.Versions = ingest.Versions{Policy: "v" + strconv.Itoa(i/4), Env: "1", Reward: "r"}
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: []string{"left", "right"}[min(i/3, 1)]}
		e.RewardComponents = []ingest.Value{{Name: "click", X: float64(i)}}
		e.Observation = []ingest.Value{{Name: "0", X: -1}, {Name: "1", X: float64(i % 2)}}
		if i == len(rewards)-1 {
			e.Outcomes = []ingest.Value{{Name: "click", X: 1}}
			e.Terminated = true
		}
		b.feed(e)
	}
	got := b.units[0]
	want := &ingest.Unit{
		Group: ingest.NewGroup("p", ingest.Label{Name: "env", Value: "prod"}), Agent: "a", Episode: "e",
		End: ingest.EndTerminated, Versions: ingest.Versions{Policy: "v1", Env: "1", Reward: "r"},
		StartTS: 1000, EndTS: 1007,
		First: ingest.Position{Partition: 3}, Last: ingest.Position{Partition: 3, Offset: 7},
		Pos: ingest.Position{Partition: 3, Offset: 7}, Length: 8, HasReturn: true,
		Reward: momentsOf(rewards...), RewardQ10: -.5, RewardQ90: 4, LongestConstant: 3,
		ConstantReward: 1, Profile: []float32{1, 1, 1, -2, 4, 4}, ProfileSteps: 1, Events: 8, Unfinished: -1,
		ActionKind: ingest.ActionCategory,
		Actions:    []ingest.Count{{Name: "left", N: 3, Reward: 3}, {Name: "right", N: 5, Reward: 6}},
		Numeric: []ingest.NamedMoments{
			numbersOf("reward_component.click", 0, 1, 2, 3, 4, 5, 6, 7),
			numbersOf("observation.0", -1, -1, -1, -1, -1, -1, -1, -1),
			numbersOf("observation.1", 0, 1, 0, 1, 0, 1, 0, 1),
			{Signal: "outcome.click", Moments: momentsOf(1)},
		},
	}
	if !math.IsNaN(got.Return) {
		t.Errorf("the return of NaN is %v", got.Return)
	}
	got.Return, got.Steps = 0, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("unit\n%+v\nwant\n%+v", got, want)
	}
}

// numbersOf returns a numeric signal with few values. Its deciles are computed from the sorted values.
func numbersOf(signal string, x ...float64) ingest.NamedMoments {
	sorted := slices.Sorted(slices.Values(x))
	return ingest.NamedMoments{Signal: signal, Moments: momentsOf(x...), Q10: quantile(sorted, .1), Q90: quantile(sorted, .9)}
}

func momentsOf(x ...float64) ingest.Moments {
	var m ingest.Moments
	for _, v := range x {
		m.Add(v)
	}
	return m
}

func TestUnitActions(t *testing.T) {
	number := func(x ...float64) ingest.Action { return ingest.Action{Kind: ingest.ActionNumeric, Values: x} }
	scalar := func(x float64) ingest.Action {
		return ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{x}, Scalar: true}
	}
	word := func(w string) ingest.Action { return ingest.Action{Kind: ingest.ActionCategory, Category: w} }
	for name, c := range map[string]struct {
		actions []ingest.Action
		kind    ingest.ActionKind
		mixed   bool
		counts  []ingest.Count
		numeric []ingest.NamedMoments
	}{
		"none":    {actions: []ingest.Action{{}, {}}},
		"words":   {actions: []ingest.Action{word("b"), word("a"), {}, word("b")}, kind: ingest.ActionCategory, counts: []ingest.Count{{Name: "b", N: 2}, {Name: "a", N: 1}}},
		"numbers": {actions: []ingest.Action{scalar(1.5), scalar(2.5)}, kind: ingest.ActionNumeric, numeric: []ingest.NamedMoments{numbersOf("action", 1.5, 2.5)}},
		"arrays": {
			actions: []ingest.Action{number(1, 2), number(3)}, kind: ingest.ActionNumeric,
			numeric: []ingest.NamedMoments{numbersOf("action.0", 1, 3), numbersOf("action.1", 2)},
		},
		"a clipped number": {
			actions: []ingest.Action{scalar(.5), {Kind: ingest.ActionCategory, Category: "1", Values: []float64{1}, Scalar: true}},
			kind:    ingest.ActionNumeric,
			counts:  []ingest.Count{{Name: "1", N: 1}}, numeric: []ingest.NamedMoments{numbersOf("action", .5, 1)},
		},
		"mixed": {
			actions: []ingest.Action{word("a"), scalar(1.5)}, kind: ingest.ActionNumeric, mixed: true,
			counts: []ingest.Count{{Name: "a", N: 1}}, numeric: []ingest.NamedMoments{numbersOf("action", 1.5)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Config{})
			for i, a := range c.actions {
				e := stepOf(int64(i), 0)
				e.Action, e.Terminated = a, i == len(c.actions)-1
				b.feed(e)
			}
			u := b.units[0]
			if u.ActionKind != c.kind || u.MixedActionKinds != c.mixed {
				t.Errorf("kind %v, mixed %v", u.ActionKind, u.MixedActionKinds)
			}
			if !reflect.DeepEqual(u.Actions, c.counts) || !reflect.DeepEqual(u.Numeric, c.numeric) {
				t.Errorf("%+v and %+v", u.Actions, u.Numeric)
			}
		})
	}
}

// The reward of a step is added to its action, or to otherActions beyond the limit.
func TestUnitActionRewards(t *testing.T) {
	b := newBench(Config{})
	step := int64(0)
	play := func(action string, reward float64) {
		e := stepOf(step, reward)
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: action}
		b.feed(e)
		step++
	}
	for i := range maxCategories + 10 {
		play(strconv.Itoa(i), float64(i))
	}
	play("0", math.NaN())
	play("0", 7)
	e := stepOf(step, 0, terminated)
	e.HasReward, e.Reward = false, 99
	e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: "1"}
	b.feed(e)
	actions := b.units[0].Actions
	for at, want := range map[int]ingest.Count{
		0: {Name: "0", N: 3, Reward: 7}, 1: {Name: "1", N: 2, Reward: 1}, 200: {Name: "200", N: 1, Reward: 200},
		maxCategories: {Name: otherActions, N: 10, Reward: 10*256 + 45},
	} {
		if actions[at] != want {
			t.Errorf("action %d is %+v, want %+v", at, actions[at], want)
		}
	}
}

func TestUnitCountsEventsThatRunBackwards(t *testing.T) {
	const minute = int64(time.Minute)
	for name, c := range map[string]struct {
		times []int64
		want  int64
	}{
		"forwards":        {[]int64{minute, 2 * minute, 9 * minute}, 0},
		"within a minute": {[]int64{5 * minute, 4 * minute, 3 * minute}, 0},
		"twice":           {[]int64{5 * minute, 5*minute - minute - 1, 9 * minute, 1}, 2},
		"without a clock": {[]int64{0, 0, 0}, 0},
		"some without":    {[]int64{9 * minute, 0, minute, 0, 2 * minute}, 1},
	} {
		b := newBench(Config{})
		for i, ts := range c.times {
			b.feed(stepOf(int64(i), 1, at(ts)))
		}
		b.feed(stepOf(9, 1, terminated), stepOf(0, 1, terminated))
		if got := b.units[0]; got.Backwards != c.want || got.Events != int64(len(c.times))+1 {
			t.Errorf("%s: %d of %d events, want %d", name, got.Backwards, got.Events, c.want)
		}
		if got := b.units[1].Backwards; got != 0 {
			t.Errorf("%s: %d events of the next unit", name, got)
		}
	}
}

// Duplicates are reported by the current unit of their agent or, if it has none, by the next unit of the group. So are
// abandoned episodes.
func TestUnitsTellWhatTheirGroupHasLost(t *testing.T) {
	b := newBench(Config{LengthSample: 20})
	id, prod := episodeID("e"), env("prod")
	b.finish(20, 5)
	b.feed(stepOf(0, 1, id), stepOf(1, 1, id), stepOf(1, 1, id), stepOf(0, 1, id))
	b.feed(stepOf(0, 1, env("test"), terminated), stepOf(2, 1, id, terminated))
	b.feed(stepOf(1, 1, id), stepOf(2, 1, id, terminated), stepOf(0, 1, prod, id, terminated))
	b.feed(stepOf(0, 1, agentID("x"), terminated), stepOf(0, 1), stepOf(2, 1, id), stepOf(0, 1, agentID("x"), terminated))
	b.feed(stepOf(1, 1, terminated))
	b.feed(stepOf(0, 1, episodeID("left")))
	b.finish(2, 30)
	b.finish(1, 5)
	var duplicates, abandoned []int64
	for _, u := range b.units[20:] {
		duplicates, abandoned = append(duplicates, u.Duplicates), append(abandoned, u.Abandoned)
	}
	if want := []int64{0, 2, 0, 2, 0, 1, 0, 0, 0}; !slices.Equal(duplicates, want) {
		t.Errorf("duplicates %v, want %v", duplicates, want)
	}
	if want := []int64{0, 0, 0, 0, 0, 0, 0, 1, 0}; !slices.Equal(abandoned, want) {
		t.Errorf("abandoned %v, want %v", abandoned, want)
	}
}

func TestUnitBoundsItsNames(t *testing.T) {
	b := newBench(Config{})
	const steps = 1000
	for i := range steps {
		e := stepOf(int64(i), 0)
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: strconv.Itoa(i)}
		e.Observation = []ingest.Value{{Name: "same", X: 1}, {Name: strconv.Itoa(i), X: 1}}
		e.Terminated = i == steps-1
		b.feed(e)
	}
	u := b.units[0]
	last := u.Actions[len(u.Actions)-1]
	if len(u.Actions) != maxCategories+1 || last.Name != "other" || last.N != steps-maxCategories {
		t.Errorf("%d categories, the last one %+v", len(u.Actions), last)
	}
	if len(u.Numeric) != maxSignals || u.Numeric[0].N != steps {
		t.Errorf("%d signals, %d values of the first", len(u.Numeric), u.Numeric[0].N)
	}
	if got := b.counted(t, MetricSignalsIgnored, "", ""); got != steps+1-maxSignals {
		t.Errorf("%v values were counted as ignored, want %d", got, steps+1-maxSignals)
	}
}

func TestUnitsShareNothing(t *testing.T) {
	b := newBench(Config{})
	play := func(reward float64) *ingest.Unit {
		e := stepOf(0, reward)
		e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: "go"}
		e.Outcomes = []ingest.Value{{Name: "x", X: reward}}
		e.Terminated = true
		b.feed(e)
		return b.units[len(b.units)-1]
	}
	first := play(1)
	before := fmt.Sprintf("%+v", first)
	play(2)
	if after := fmt.Sprintf("%+v", first); after != before {
		t.Errorf("a later unit changed\n%s\nto\n%s", before, after)
	}
}

func TestStringsOfEventsAreCopied(t *testing.T) {
	b := newBench(Config{GroupBy: func(string) []string { return []string{"labels.region"} }})
	memory := []byte("agentepisodeeu1v1")
	text := func(from, to int) string { return string(memory[from:to]) }
	e := stepOf(0, 1, agentID(text(0, 5)), episodeID(text(5, 12)), terminated)
	e.Labels = []ingest.Label{{Name: "region", Value: text(12, 14)}}
	e.Versions.Policy = text(14, 17)
	b.feed(e)
	u := b.units[0]
	if u.Agent != "agent" || u.Episode != "episode" || u.Versions.Policy != "1v1" || u.Group.Map()["label_region"] != "eu" {
		t.Errorf("%+v", u)
	}
}

func TestGroups(t *testing.T) {
	b := newBench(Config{GroupBy: func(policy string) []string {
		return map[string][]string{"two": {"env", "labels.region"}, "none": nil}[policy]
	}})
	for _, policy := range []string{"two", "none"} {
		for _, region := range []string{"eu", ""} {
			e := stepOf(0, 1, env("prod"), terminated)
			e.Policy = policy
			if region != "" {
				e.Labels = []ingest.Label{{Name: "zone", Value: "z"}, {Name: "region", Value: region}}
			}
			b.feed(e)
		}
	}
	var got []string
	for _, u := range b.units {
		got = append(got, u.Group.String())
	}
	want := []string{`two{env="prod",label_region="eu"}`, `two{env="prod",label_region=""}`, "none{}", "none{}"}
	if !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
}

// Shadow events belong to the same group, but do not affect the units of other events, regardless of their IDs, ends
// and lost events.
func TestShadowIsKeptApart(t *testing.T) {
	shadow := func(e *ingest.Event) { e.Labels = []ingest.Label{{Name: "shadow", Value: "true"}} }
	var serving, all []ingest.Event
	for i := range 30 {
		e := stepOf(int64(i%3), float64(i), agentID("a"), episodeID(strconv.Itoa(i/3)), at(int64(i+1)))
		e.Terminated = i%3 == 2
		serving = append(serving, e)
		beside := e
		shadow(&beside)
		beside.Reward, beside.Terminated = -1, i%6 == 5
		all = append(all, e, beside, beside)
	}
	alone, both := newBench(Config{LengthSample: 3}), newBench(Config{LengthSample: 3})
	alone.feed(serving...)
	both.feed(all...)
	var kept []*ingest.Unit
	for _, u := range both.units {
		if !u.Shadow {
			kept = append(kept, u)
		}
	}
	for _, u := range slices.Concat(alone.units, both.units) { // shows where they differ
		u.First, u.Last, u.Pos = ingest.Position{}, ingest.Position{}, ingest.Position{}
	}
	if len(kept) != 10 || len(both.units) == len(kept) || !reflect.DeepEqual(alone.units, kept) {
		t.Errorf("%d units beside %d in shadow, %d alone, or they differ", len(kept), len(both.units)-len(kept), len(alone.units))
	}
	for _, u := range both.units {
		if u.Group != kept[0].Group {
			t.Errorf("a unit of group %s", u.Group)
		}
	}
	grouped := newBench(Config{GroupBy: func(string) []string { return []string{"labels.shadow"} }})
	grouped.feed(stepOf(0, 1, shadow, terminated))
	if u := grouped.units[0]; u.Shadow || u.Group.Map()["label_shadow"] != "true" {
		t.Errorf("with the label as one of group_by: %+v", u)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	b := newBench(Config{})
	for i := range defaultMaxGroups + 10 {
		b.feed(stepOf(0, 1, env(strconv.Itoa(i)), terminated))
	}
	for i := range defaultMaxGroups {
		e := stepOf(0, 1, terminated)
		e.Policy = strconv.Itoa(i)
		b.feed(e)
	}
	if len(b.groups) > defaultMaxGroups || len(b.policies) > defaultMaxGroups {
		t.Errorf("%d groups, %d policies", len(b.groups), len(b.policies))
	}
	if got := b.counted(t, MetricEventsIgnored, "reason", "group_limit"); got != defaultMaxGroups+10 {
		t.Errorf("%v events were counted as ignored", got)
	}
}

func TestOldestEpisodeIsDropped(t *testing.T) {
	b := newBench(Config{MaxOpen: 3})
	for _, id := range []string{"a", "b", "c"} {
		b.feed(stepOf(0, 1, agentID(id)))
	}
	b.feed(stepOf(1, 1, agentID("a"))) // still the oldest by its start
	b.feed(summaryOf(1, 1, agentID("d")), stepOf(0, 1, agentID("e"), terminated))
	if b.Open() != 3 {
		t.Fatalf("what ends at once has dropped others: %d are open", b.Open())
	}
	b.feed(stepOf(0, 1, agentID("f")), stepOf(2, 1, agentID("a"), terminated), stepOf(1, 1, agentID("b"), terminated))
	want := []string{"d/ summary 1=1 4-4@4.0", "e/ terminated 1=1 5-5@5.0", "b/ terminated 2=2 1-8@8.0"}
	if got := b.told(); !slices.Equal(got, want) {
		t.Errorf("units %q, want %q", got, want)
	}
	if got := b.counted(t, MetricEpisodes, "end", "dropped"); got != 1 {
		t.Errorf("%v were dropped, want 1", got)
	}
}

// finish ends the given number of episodes of the given length.
func (b *bench) finish(episodes, length int, changes ...change) {
	for range episodes {
		for i := range length {
			e := stepOf(int64(i), 1, changes...)
			e.EpisodeID = "e" + strconv.FormatInt(b.offset-int64(i), 10)
			e.Terminated = i == length-1
			b.feed(e)
		}
	}
}

func TestAbandonedEpisodes(t *testing.T) {
	var dropped []int64
	b := newBench(Config{LengthSample: 20, Dropped: func(first ingest.Position) { dropped = append(dropped, first.Offset) }})
	b.finish(19, 5)
	b.feed(stepOf(0, 1, episodeID("left")), stepOf(0, 1, agentID("other"), episodeID("left")))
	b.finish(1, 5)
	b.finish(1, 40)
	b.finish(1, 5)
	if got := b.counted(t, MetricEpisodes, "end", "abandoned"); got != 0 || b.Open() != 2 {
		t.Fatalf("%v abandoned after 50 events of 10 times 5", got)
	}
	b.feed(stepOf(0, 1, episodeID("next")))
	if got := b.counted(t, MetricEpisodes, "end", "abandoned"); got != 1 || b.Open() != 2 {
		t.Fatalf("%v abandoned, %d open after 51 events", got, b.Open())
	}
	if len(dropped) != 1 || dropped[0] != 95 {
		t.Errorf("told of %v, and the one at 95 was abandoned", dropped)
	}
	b.finish(1, 5)
	if u := b.units[len(b.units)-1]; u.Abandoned != 0 {
		t.Error("an episode from before lengths were known is told of by a unit")
	}
	b.feed(stepOf(9, 1, agentID("other"), episodeID("left"), terminated))
	if u := b.units[len(b.units)-1]; u.Agent != "other" || u.Length != 2 {
		t.Errorf("the other agent's episode was not kept: %+v", u)
	}
}

// Fold reports the episode of every event, or that the event was ignored. Dropped is called for every episode without a
// unit.
func TestFoldTellsTheEpisode(t *testing.T) {
	var told []string
	a := New(Config{MaxOpen: 2, Dropped: func(first ingest.Position) { told = append(told, fmt.Sprint("dropped ", first)) }},
		NewMetrics(prometheus.NewRegistry()))
	for i, e := range []ingest.Event{
		stepOf(0, 1, episodeID("a")), stepOf(0, 1, agentID("x")), stepOf(2, 1, episodeID("a")), stepOf(2, 1, episodeID("a")),
		stepOf(0, 1, agentID("x"), terminated), // ends one episode, and is a whole episode itself
		stepOf(3, 1, episodeID("a"), terminated), summaryOf(3, 3, episodeID("a")),
		stepOf(0, 1, episodeID("b")), stepOf(0, 1, episodeID("c")), stepOf(0, 1, episodeID("d")),
	} {
		e.Pos.Offset = int64(i)
		first, taken := a.Fold(&e, func(u *ingest.Unit) { told = append(told, fmt.Sprint("unit ", u.First)) })
		told = append(told, fmt.Sprint(i, " ", first, " ", taken))
	}
	want := []string{
		"0 0/0 true", "1 0/1 true", "2 0/0 true", "3 0/0 false", "unit 0/1", "unit 0/4", "4 0/4 true",
		"unit 0/0", "5 0/0 true", "6 0/0 false", "7 0/7 true", "8 0/8 true", "dropped 0/7", "9 0/9 true",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got %q\nwant %q", told, want)
	}
}

func TestLongEpisodesAreNotAbandoned(t *testing.T) {
	b := newBench(Config{LengthSample: 20})
	b.finish(20, 5)
	b.finish(1, 5000)
	if u := b.units[len(b.units)-1]; u.Length != 5000 {
		t.Errorf("length %d", u.Length)
	}
}

func TestEpisodesSideBySideAreNotAbandoned(t *testing.T) {
	const side = 300 // environments that one agent plays at the same time, many more than ten lengths
	b := newBench(Config{LengthSample: 20})
	for i := range int64(5 * 8) {
		for n := range side {
			e := stepOf(i%8, 1, episodeID(fmt.Sprint(n, "/", i/8)))
			e.Terminated = i%8 == 7
			b.feed(e)
		}
	}
	if got := b.counted(t, MetricEpisodes, "end", "abandoned"); got != 0 || len(b.units) != 5*side {
		t.Errorf("%v abandoned, %d ended", got, len(b.units))
	}
}

func TestBlocksWhereNothingEnds(t *testing.T) {
	b := newBench(Config{})
	for i := range int64(5200) {
		b.feed(stepOf(i, 1, agentID("a")), stepOf(i, 2, agentID("b")))
	}
	if len(b.units) != 20 {
		t.Fatalf("%d blocks, want 20", len(b.units))
	}
	first := b.units[0]
	if first.End != ingest.EndBlock || first.Length != 20 || first.HasReturn || first.Reward.N != 20 || first.Episode != "" ||
		first.First.Offset != 9999 || first.Last != first.Pos || first.Agent != "b" {
		t.Errorf("%+v", first)
	}
	b.feed(stepOf(5200, 1, agentID("a"), terminated))
	if u := b.units[20]; u.End != ingest.EndTerminated || u.Length != 5201 || u.Return != 5201 {
		t.Errorf("the episode that ends after all is not whole: %+v", u)
	}
	for i := range int64(9000) {
		b.feed(stepOf(i, 1, agentID("a")))
	}
	if len(b.units) != 21 {
		t.Errorf("%d units: blocks go on after an end", len(b.units))
	}
}

func TestAgentsThatEndTogetherAreNotShownInBlocks(t *testing.T) {
	b := newBench(Config{})
	for round := range 3 {
		before := len(b.units)
		for i := range int64(200) {
			for n := range 100 {
				e := stepOf(i, 1, agentID(strconv.Itoa(n)))
				e.Truncated = i == 199
				b.feed(e)
			}
		}
		blocks := 0
		for _, u := range b.units[before:] {
			if u.End == ingest.EndBlock {
				blocks++
			}
		}
		if len(b.units)-before-blocks != 100 || round > 0 && blocks > 0 {
			t.Errorf("round %d: %d units, %d of them blocks", round, len(b.units)-before, blocks)
		}
	}
}

func TestAgentsAreForgotten(t *testing.T) {
	b := newBench(Config{MaxOpen: 10})
	for i := range 1000 {
		b.feed(stepOf(0, 1, agentID(strconv.Itoa(i))))
	}
	b.finish(1000, 2, agentID("x"))
	if b.Open() > 10 || len(b.agents) > 10 || len(b.spare) > maxSpare {
		t.Errorf("%d open, %d agents, %d spare", b.Open(), len(b.agents), len(b.spare))
	}
}

func TestCloseEmptiesTheGauge(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	a, other := New(Config{}, m), New(Config{}, m)
	e := stepOf(0, 1)
	a.Fold(&e, func(*ingest.Unit) {})
	other.Fold(&e, func(*ingest.Unit) {})
	a.Close()
	if got := testutil.ToFloat64(m.open); got != 1 {
		t.Errorf("%v open episodes are left, want the other assembler's one", got)
	}
}

func TestMetrics(t *testing.T) {
	b := newBench(Config{})
	b.feed(stepOf(0, 1, terminated), stepOf(0, 1), stepOf(0, 1))
	want := `
# HELP rewardwatch_episodes_total Episodes by how they ended, and blocks of steps if no episode ends.
# TYPE rewardwatch_episodes_total counter
rewardwatch_episodes_total{end="abandoned"} 0
rewardwatch_episodes_total{end="block"} 0
rewardwatch_episodes_total{end="dropped"} 0
rewardwatch_episodes_total{end="step"} 1
rewardwatch_episodes_total{end="summary"} 0
rewardwatch_episodes_total{end="terminated"} 1
rewardwatch_episodes_total{end="truncated"} 0
# HELP rewardwatch_events_ignored_total Valid events that do not belong to an episode, by reason.
# TYPE rewardwatch_events_ignored_total counter
rewardwatch_events_ignored_total{reason="dropped_episode"} 0
rewardwatch_events_ignored_total{reason="duplicate"} 0
rewardwatch_events_ignored_total{reason="group_limit"} 0
rewardwatch_events_ignored_total{reason="late"} 0
rewardwatch_events_ignored_total{reason="late_summary"} 0
rewardwatch_events_ignored_total{reason="unmatched"} 0
# HELP rewardwatch_groups_expired_total Groups that the reader dropped because the maximum number of groups was reached.
# TYPE rewardwatch_groups_expired_total counter
rewardwatch_groups_expired_total 0
# HELP rewardwatch_open_episodes Episodes that have not ended yet.
# TYPE rewardwatch_open_episodes gauge
rewardwatch_open_episodes 1
# HELP rewardwatch_signals_ignored_total Values ignored because the episode or block already has the maximum number of signals.
# TYPE rewardwatch_signals_ignored_total counter
rewardwatch_signals_ignored_total 0
`
	if err := testutil.GatherAndCompare(b.reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// fullStep returns a step of an open episode with values in every field.
func fullStep() ingest.Event {
	e := stepOf(-1, .25, agentID("agent-17"), episodeID("agent-17/881"), env("prod-eu"), at(1))
	e.Versions = ingest.Versions{Policy: "2026-11-01.3", Env: "41", Reward: "r7"}
	e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: "offer_b"}
	e.RewardComponents = []ingest.Value{{Name: "click", X: .1}, {Name: "latency", X: -.35}}
	e.Observation = []ingest.Value{{Name: "basket", X: 3.2}}
	e.Outcomes = []ingest.Value{{Name: "conversion", X: 1}}
	return e
}

func TestFoldingAStepAllocatesNothing(t *testing.T) {
	vector := stepOf(-1, 1, agentID("b"))
	for i := range 24 {
		vector.Observation = append(vector.Observation, ingest.Value{Name: strconv.Itoa(i), X: float64(i)})
	}
	vector.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: make([]float64, 150)}
	probable := fullStep()
	probable.ActionProb, probable.TargetProb = ingest.Prob{P: .25, Known: true}, ingest.Prob{P: .5, Known: true}
	events := []ingest.Event{fullStep(), vector, probable}
	b := newBench(Config{})
	emit := func(*ingest.Unit) {}
	fold := func() {
		for i := range events {
			b.Fold(&events[i], emit)
		}
	}
	for range 100 {
		fold()
	}
	if n := testing.AllocsPerRun(1000, fold); n != 0 {
		t.Errorf("%v allocations for two steps", n)
	}
}

// The unit of an episode and its key take one allocation each, regardless of its length.
func TestEpisodeIsTwoAllocations(t *testing.T) {
	const episodes, steps = 300, 50
	events := make([]ingest.Event, 0, episodes*steps)
	for i := range episodes {
		for step := range int64(steps) {
			e := stepOf(step, float64(step%7), agentID("a"), episodeID(strconv.Itoa(i)))
			e.Action = ingest.Action{Kind: ingest.ActionCategory, Category: strconv.Itoa(int(step % 4))}
			e.Outcomes = []ingest.Value{{Name: "conversion", X: float64(step % 2)}}
			e.Terminated = step == steps-1
			events = append(events, e)
		}
	}
	b, units := newBench(Config{}), 0
	emit := func(u *ingest.Unit) {
		if units++; u.Length != steps || len(u.Actions) != 4 || len(u.Numeric) != 1 || len(u.Profile) == 0 {
			t.Errorf("%+v", u)
		}
	}
	fold := func() {
		for range steps {
			b.Fold(&events[0], emit)
			events = events[1:]
		}
	}
	for range 100 {
		fold()
	}
	if n := testing.AllocsPerRun(episodes-110, fold); n > 2 {
		t.Errorf("%v allocations for an episode", n)
	}
	if units < episodes-10 {
		t.Errorf("%d units", units)
	}
}

func BenchmarkFold(b *testing.B) {
	bare := stepOf(-1, .25, agentID("agent-17"), episodeID("agent-17/881"))
	probable := fullStep()
	probable.ActionProb, probable.TargetProb = ingest.Prob{P: .25, Known: true}, ingest.Prob{P: .5, Known: true}
	for name, e := range map[string]ingest.Event{"reward": bare, "full": fullStep(), "full with probabilities": probable} {
		b.Run(name, func(b *testing.B) {
			a := newBench(Config{})
			emit := func(*ingest.Unit) {}
			b.ReportAllocs()
			for b.Loop() {
				a.Fold(&e, emit)
			}
		})
	}
	b.Run("1000 agents, episodes of 50", func(b *testing.B) {
		a := newBench(Config{})
		emit := func(*ingest.Unit) {}
		ids := make([]string, 1000)
		for i := range ids {
			ids[i] = "agent-" + strconv.Itoa(i)
		}
		e := fullStep()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e.AgentID, e.EpisodeID = ids[i%1000], ""
			e.Terminated = i/1000%50 == 49
			a.Fold(&e, emit)
		}
	})
	b.Run("episodes of 50, 8 observations", func(b *testing.B) {
		a := newBench(Config{})
		emit := func(*ingest.Unit) {}
		e := fullStep()
		for i := range 7 {
			e.Observation = append(e.Observation, ingest.Value{Name: strconv.Itoa(i), X: float64(i)})
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e.EpisodeID = ""
			e.Terminated = i%50 == 49
			a.Fold(&e, emit)
		}
	})
	b.Run("decisions", func(b *testing.B) {
		a := newBench(Config{})
		emit := func(*ingest.Unit) {}
		ids := make([]string, 100_000)
		for i := range ids {
			ids[i] = "user-" + strconv.Itoa(i)
		}
		e := bare
		e.Terminated, e.Step = true, 0
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			e.AgentID, e.EpisodeID = ids[i%len(ids)], ids[i*7%len(ids)]
			a.Fold(&e, emit)
		}
	})
	b.Run("summaries", func(b *testing.B) {
		a := newBench(Config{})
		emit := func(*ingest.Unit) {}
		e := summaryOf(1, 5)
		b.ReportAllocs()
		for b.Loop() {
			a.Fold(&e, emit)
		}
	})
}
