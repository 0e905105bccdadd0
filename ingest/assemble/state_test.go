package assemble

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// smallConfig returns limits that are reached within a few hundred events.
func smallConfig() Config {
	return Config{
		MaxOpen: 6, LengthSample: 10,
		GroupBy: func(policy string) []string { return []string{"env", "labels.region"}[:1+len(policy)%2] },
	}
}

// chaos returns a random sequence of events that covers everything: IDs that return, steps that jump, all kinds of
// ends, and values that are not finite.
func chaos(r *rand.Rand, n int) []ingest.Event {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	events := make([]ingest.Event, n)
	for i := range events {
		e := stepOf(int64(r.IntN(12))-1, chaoticNumber(r))
		e.Policy, e.Env = pick("p", "p", "p", "qq"), pick("", "prod")
		e.AgentID, e.EpisodeID = pick("", "a", "b"), pick("", "1", "2", strconv.Itoa(i/40))
		e.Labels = []ingest.Label{{Name: "region", Value: pick("eu", "us\x00")}}
		if r.IntN(4) == 0 {
			e.Labels = append(e.Labels, ingest.Label{Name: "shadow", Value: "true"})
		}
		e.Versions.Policy = pick("", "v1", "v1", "v2")
		if r.IntN(3) > 0 {
			e.TS = int64(i + 1)
			if r.IntN(10) == 0 {
				e.TS += int64(time.Hour) // the next one runs backwards
			}
		}
		e.HasReward = r.IntN(8) > 0
		e.Action = chaoticAction(r)
		for j := range r.IntN(4) {
			e.Observation = append(e.Observation, ingest.Value{Name: strconv.Itoa(j * r.IntN(30)), X: chaoticNumber(r)})
		}
		e.Outcomes = []ingest.Value{{Name: pick("x", "y"), X: float64(r.IntN(2))}}[:r.IntN(2)]
		switch r.IntN(12) {
		case 0:
			e.Terminated = true
		case 1:
			e.Truncated = true
		case 2:
			e.HasEpisode, e.Return, e.Length = true, chaoticNumber(r), int64(r.IntN(20))-1
		case 3:
			e = summaryOf(chaoticNumber(r), int64(r.IntN(20))-1, agentID(e.AgentID), episodeID(e.EpisodeID), env(e.Env), at(e.TS))
		}
		e.Pos = ingest.Position{Offset: int64(i / 2), Record: int32(i % 2)}
		events[i] = e
	}
	return events
}

func chaoticNumber(r *rand.Rand) float64 {
	special := []float64{0, math.Copysign(0, -1), 1, 1, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324}
	if i := r.IntN(30); i < len(special) {
		return special[i]
	}
	return r.NormFloat64()
}

func chaoticAction(r *rand.Rand) ingest.Action {
	switch r.IntN(8) {
	case 0:
		return ingest.Action{}
	case 1:
		return ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{chaoticNumber(r)}, Scalar: true}
	case 2:
		return ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{1, chaoticNumber(r)}}
	default:
		return ingest.Action{Kind: ingest.ActionCategory, Category: strconv.Itoa(r.IntN(25))}
	}
}

// fold returns the units of events as text that differs if the units differ, even in NaN.
func fold(a *Assembler, events []ingest.Event) []string {
	var units []string
	for i := range events {
		a.Fold(&events[i], func(u *ingest.Unit) { units = append(units, ingesttest.Text(u)) })
	}
	return units
}

func snapshot(t testing.TB, a *Assembler) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := a.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func restored(t testing.TB, cfg Config, from []byte) *bench {
	t.Helper()
	b := newBench(cfg)
	if err := b.Restore(bytes.NewReader(from)); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSimRestartAnywhereChangesNothing(t *testing.T) {
	events := chaos(rand.New(rand.NewPCG(1, 2)), 600)
	want := fold(newBench(smallConfig()).Assembler, events)
	if len(want) < 100 {
		t.Fatalf("only %d units", len(want))
	}
	straight := newBench(smallConfig())
	for cut := range events {
		before := snapshot(t, straight.Assembler)
		b := restored(t, smallConfig(), before)
		if again := snapshot(t, b.Assembler); !bytes.Equal(again, before) {
			t.Fatalf("after %d events: the restored state has another snapshot", cut)
		}
		if b.Open() != straight.Open() || b.counted(t, MetricOpenEpisodes, "", "") != float64(b.Open()) {
			t.Fatalf("after %d events: %d are open, want %d", cut, b.Open(), straight.Open())
		}
		if cut%7 == 0 {
			got := fold(b.Assembler, events[cut:])
			if tail := want[len(want)-len(got):]; !slices.Equal(got, tail) {
				t.Fatalf("after %d events: the units differ", cut)
			}
		}
		fold(straight.Assembler, events[cut:cut+1])
	}
}

func TestSimRestartAfterEachEventChangesNothing(t *testing.T) {
	for seed := range uint64(8) {
		events := chaos(rand.New(rand.NewPCG(seed, 7)), 400)
		want := fold(newBench(smallConfig()).Assembler, events)
		var got []string
		state := snapshot(t, newBench(smallConfig()).Assembler)
		for i := range events {
			b := restored(t, smallConfig(), state)
			got = append(got, fold(b.Assembler, events[i:i+1])...)
			state = snapshot(t, b.Assembler)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: the units differ", seed)
		}
	}
}

func TestRestartWithinABlock(t *testing.T) {
	play := func(b *bench, from, to int64) {
		for i := from; i < to; i++ {
			b.feed(stepOf(i, float64(i), agentID(strconv.FormatInt(i%3, 10))))
		}
	}
	straight, first := newBench(Config{}), newBench(Config{})
	play(straight, 0, 13_000)
	play(first, 0, 11_111)
	second := restored(t, Config{}, snapshot(t, first.Assembler))
	second.offset = first.offset
	play(second, 11_111, 13_000)
	got := append(first.told(), second.told()...)
	if len(got) != 150 || !slices.Equal(got, straight.told()) {
		t.Errorf("%d blocks\n%q\nwant\n%q", len(got), got, straight.told())
	}
}

// Every numeric signal has the deciles of its own values, regardless of the length of its episode, of the signals that
// used the memory before, and of restarts.
func TestDecilesOfSignals(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	b := newBench(Config{})
	names := []string{"a", "b", "c", "d"}
	for episode := range 120 {
		steps := 1 + r.IntN(400)
		want := map[string]*sample{}
		keep := func(signal string, x float64) {
			if want[signal] == nil {
				want[signal] = &sample{Stride: 1}
			}
			if finite(x) {
				want[signal].add(x)
			}
		}
		r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		for i := range steps {
			e := stepOf(int64(i), 1)
			e.Terminated = i == steps-1
			e.Action = ingest.Action{Kind: ingest.ActionNumeric, Values: []float64{chaoticNumber(r)}, Scalar: true}
			keep("action", e.Action.Values[0])
			for _, name := range names[:1+r.IntN(len(names))] {
				x, y := chaoticNumber(r), chaoticNumber(r)
				e.Observation = append(e.Observation, ingest.Value{Name: name, X: x})
				e.RewardComponents = append(e.RewardComponents, ingest.Value{Name: name, X: y})
				e.Outcomes = append(e.Outcomes, ingest.Value{Name: name, X: x})
				keep("observation."+name, x)
				keep("reward_component."+name, y)
			}
			b.feed(e)
			if i < steps-1 && r.IntN(100) == 0 {
				second := restored(t, Config{}, snapshot(t, b.Assembler))
				second.offset = b.offset
				b = second
			}
		}
		u := b.units[len(b.units)-1]
		if want := 1 + 3*(len(u.Numeric)/3); len(u.Numeric) != want {
			t.Fatalf("episode %d: %d signals", episode, len(u.Numeric))
		}
		for _, m := range u.Numeric {
			q10, q90 := 0., 0.
			if s := want[m.Signal]; s != nil {
				q10, q90 = s.quantiles()
			}
			if m.Q10 != q10 || m.Q90 != q90 {
				t.Fatalf("episode %d: %s of %d values has the deciles %v and %v, want %v and %v", episode, m.Signal, m.N, m.Q10, m.Q90, q10, q90)
			}
		}
	}
}

func TestRestoreReplacesWhatWasThere(t *testing.T) {
	empty := snapshot(t, newBench(Config{}).Assembler)
	b := newBench(Config{})
	b.feed(stepOf(0, 1))
	if err := b.Restore(bytes.NewReader(empty)); err != nil {
		t.Fatal(err)
	}
	if b.Open() != 0 || b.counted(t, MetricOpenEpisodes, "", "") != 0 {
		t.Errorf("%d are open", b.Open())
	}
}

func TestRestoreUnderAnotherConfiguration(t *testing.T) {
	b := newBench(Config{})
	for i := range 10 {
		b.feed(stepOf(0, 1, agentID(strconv.Itoa(i))))
	}
	state := snapshot(t, b.Assembler)
	t.Run("fewer may be open", func(t *testing.T) {
		b := restored(t, Config{MaxOpen: 4}, state)
		if got := b.counted(t, MetricEpisodes, "end", "dropped"); got != 6 || b.Open() != 4 {
			t.Errorf("%v dropped, %d open", got, b.Open())
		}
		b.feed(stepOf(1, 1, agentID("9"), terminated))
		if len(b.units) != 1 || b.units[0].Length != 2 {
			t.Error("the newest was not kept")
		}
	})
	t.Run("other groups", func(t *testing.T) {
		b := restored(t, Config{GroupBy: func(string) []string { return []string{"labels.env"} }}, state)
		if got := b.counted(t, MetricEpisodes, "end", "dropped"); got != 10 || b.Open() != 0 {
			t.Errorf("%v dropped, %d open", got, b.Open())
		}
		b.feed(stepOf(1, 1, agentID("9"), terminated))
		if len(b.units) != 1 || b.units[0].Length != 1 {
			t.Error("an episode of a group that is no more went on")
		}
	})
}

func TestRestoreRefuses(t *testing.T) {
	b := newBench(Config{})
	b.feed(stepOf(0, 1), stepOf(0, 1, agentID("x")))
	good := snapshot(t, b.Assembler)
	encoded := func(s stateWire, episodes ...episodeWire) []byte {
		s.Episodes = episodes
		out, err := stateFormat.Encode(&s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := stateWire{Policies: []*policyWire{{Name: "p"}}, Groups: []*groupWire{{Key: "k", Group: ingest.NewGroup("p", ingest.Label{Name: "env"})}}}
	one.Agents = []agentWire{{}}
	noGroup := one
	noGroup.Agents = []agentWire{{Group: 1}}
	noPolicy := one
	noPolicy.Policies = nil
	fine := episodeWire{Tally: &tallyWire{Rewards: sampleWire{Stride: 1}, Profile: profileWire{Steps: 1}}}
	noStride := episodeWire{Tally: &tallyWire{Profile: profileWire{Steps: 1}}}
	noSteps := episodeWire{Tally: &tallyWire{Rewards: sampleWire{Stride: 1}}}
	oddStride := episodeWire{Tally: &tallyWire{Rewards: sampleWire{Stride: 3}, Profile: profileWire{Steps: 1}}}
	noValues := episodeWire{Tally: &tallyWire{
		Rewards: sampleWire{Stride: 1}, Profile: profileWire{Steps: 1}, Numeric: []signalWire{{Signal: "action"}},
	}}
	newer := bytes.Clone(good)
	newer[0]++
	for name, state := range map[string][]byte{
		"nothing":       nil,
		"noise":         []byte("no snapshot"),
		"newer version": newer,
		"cut":           good[:len(good)-1],
		"no group":      encoded(noGroup, fine),
		"no policy":     encoded(noPolicy, fine),
		"no agent":      encoded(one, episodeWire{Agent: 1, Tally: fine.Tally}),
		"no stride":     encoded(one, noStride),
		"odd stride":    encoded(one, oddStride),
		"no values":     encoded(one, noValues),
		"no tally":      encoded(one, episodeWire{}),
		"nil policy":    encoded(stateWire{Policies: []*policyWire{nil}}),
		"nil group":     encoded(stateWire{Groups: []*groupWire{nil}}),
		"no profile":    encoded(one, noSteps),
		"twice":         encoded(one, fine, fine),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(Config{})
			if err := b.Restore(bytes.NewReader(state)); err == nil {
				t.Fatal("it was accepted")
			}
			if b.Open() != 0 || b.counted(t, MetricOpenEpisodes, "", "") != 0 {
				t.Errorf("%d are open after the error", b.Open())
			}
		})
	}
	restored(t, Config{}, encoded(one, fine))
}

// checkBounds checks the invariants of an assembler.
func checkBounds(t *testing.T, a *Assembler) {
	t.Helper()
	inLists, agents := 0, map[*agent]int{}
	for ep := a.starts.front; ep != nil; ep = ep.links[byStart].after {
		inLists++
		agents[ep.agent]++
		if a.open[ep.key] != ep || len(ep.Rewards.Kept) > sampleSize {
			t.Fatalf("an episode is lost, or keeps too much: %+v", ep)
		}
		if kept := ep.Keeper.steps(); kept != nil && (len(kept.At) > ingest.MaxKeptSteps || !kept.Sound(len(ep.Actions))) {
			t.Fatalf("an episode keeps too many steps, or other ones: %+v", kept)
		}
		for i := range ep.Numeric {
			if len(ep.Numeric[i].Values.Kept) > sampleSize {
				t.Fatalf("an episode keeps too many values: %+v", ep)
			}
		}
	}
	if inLists != len(a.open) || len(a.open) > a.cfg.MaxOpen || len(agents) != len(a.agents) {
		t.Fatalf("%d episodes in the list, %d in the map, %d agents of %d", inLists, len(a.open), len(agents), len(a.agents))
	}
	for ag, n := range agents {
		if int64(n) != ag.open {
			t.Fatalf("an agent has %d open episodes and counts %d", n, ag.open)
		}
		seen := int64(0)
		for ep := ag.idle.front; ep != nil; ep = ep.links[byUse].after {
			if n--; ep.seen <= seen {
				t.Fatal("the episodes of an agent are not in order of use")
			}
			seen = ep.seen
		}
		if n != 0 {
			t.Fatal("the list of an agent's episodes is not whole")
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add(uint64(1), uint16(300), uint16(100))
	f.Add(uint64(2), uint16(1000), uint16(999))
	f.Fuzz(func(t *testing.T, seed uint64, n, cut uint16) {
		events := chaos(rand.New(rand.NewPCG(seed, 1)), int(n%2000))
		a, b := newBench(smallConfig()), newBench(smallConfig())
		at := min(int(cut), len(events))
		want := fold(a.Assembler, events)
		checkBounds(t, a.Assembler)
		got := fold(b.Assembler, events[:at])
		checkBounds(t, b.Assembler)
		c := restored(t, smallConfig(), snapshot(t, b.Assembler))
		got = append(got, fold(c.Assembler, events[at:])...)
		checkBounds(t, c.Assembler)
		if !slices.Equal(got, want) {
			t.Error("a restart changes the units")
		}
	})
}

func FuzzRestore(f *testing.F) {
	b := newBench(smallConfig())
	fold(b.Assembler, chaos(rand.New(rand.NewPCG(5, 6)), 12))
	f.Add(snapshot(f, b.Assembler))
	events := chaos(rand.New(rand.NewPCG(7, 8)), 100)
	f.Fuzz(func(t *testing.T, state []byte) {
		b := newBench(smallConfig())
		if err := b.Restore(bytes.NewReader(state)); err == nil {
			fold(b.Assembler, events)
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	a := newBench(Config{})
	for i := range 10_000 {
		e := fullStep()
		e.AgentID = strconv.Itoa(i)
		a.feed(e, e, e, e)
	}
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := a.Snapshot(&out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(out.Len())/10_000, "bytes/episode")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/episode")
}
