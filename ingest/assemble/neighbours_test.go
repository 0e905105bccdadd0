package assemble

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func ofPolicy(name string) change { return func(e *ingest.Event) { e.Policy = name } }

func inShadowToo(e *ingest.Event) { e.Labels = []ingest.Label{{Name: shadowLabel, Value: shadowValue}} }

// again returns an assembler restored from a snapshot of this one.
func (b *bench) again(t *testing.T, cfg Config) *bench {
	t.Helper()
	var state bytes.Buffer
	if err := b.Snapshot(&state); err != nil {
		t.Fatal(err)
	}
	next := newBench(cfg)
	if err := next.Restore(bytes.NewReader(state.Bytes())); err != nil {
		t.Fatal(err)
	}
	next.offset, next.units = b.offset, b.units
	return next
}

// lengths counts the units of a policy by length.
func (b *bench) lengths(policy string) map[int64]int {
	out := map[int64]int{}
	for _, u := range b.units {
		if u.Group.Policy == policy {
			out[u.Length]++
		}
	}
	return out
}

// If every policy has one open episode, the oldest one makes room, but never the current one.
func TestTheEpisodeInHandIsNotDropped(t *testing.T) {
	for _, most := range []int{1, 3, 100} {
		b := newBench(Config{MaxOpen: most})
		for i := range 3 * most {
			name := fmt.Sprintf("p-%04d", 3*most-i) // each is the first by name, which breaks ties
			b.feed(stepOf(0, 1, ofPolicy(name)))
			b.feed(stepOf(1, 1, ofPolicy(name)))
		}
		if len(b.open) != most {
			t.Errorf("%d episodes are open, want %d", len(b.open), most)
		}
	}
}

// If only new policies arrive, idle policies eventually make room.
func TestPoliciesThatFindNoRoomMakeTimePass(t *testing.T) {
	b := newBench(Config{MaxGroups: 3, MaxOpen: 10})
	for i := range 3 {
		b.feed(stepOf(0, 1, ofPolicy(strconv.Itoa(i))))
	}
	before := b.events
	b.feed(stepOf(0, 1, ofPolicy("new")))
	if b.events != before+1 {
		t.Errorf("an event without room counts as %d", b.events-before)
	}
}

// A policy that opens endless episodes does not affect a healthy one, even across restarts.
func TestSimAFloodTakesNothingFromItsNeighbours(t *testing.T) {
	const agents, length, rounds = 20, 10, 30
	for name, c := range map[string]struct {
		flood   func(i int) []change
		restart bool
	}{
		"agents":                  {flood: func(i int) []change { return []change{ofPolicy("flood"), agentID(strconv.Itoa(i))} }},
		"episodes of one agent":   {flood: func(i int) []change { return []change{ofPolicy("flood"), episodeID(strconv.Itoa(i))} }},
		"groups":                  {flood: func(i int) []change { return []change{ofPolicy("flood"), env(strconv.Itoa(i))} }},
		"in shadow":               {flood: func(i int) []change { return []change{ofPolicy("p"), inShadowToo, agentID(strconv.Itoa(i))} }},
		"agents, with restarts":   {flood: func(i int) []change { return []change{ofPolicy("flood"), agentID(strconv.Itoa(i))} }, restart: true},
		"agents, a name before p": {flood: func(i int) []change { return []change{ofPolicy("a"), agentID(strconv.Itoa(i))} }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{MaxOpen: 50}
			b := newBench(cfg)
			flooded := 0
			for range rounds {
				for step := range int64(length) {
					for agent := range agents {
						healthy := stepOf(step, 1, agentID(strconv.Itoa(agent)))
						healthy.Terminated = step == length-1
						b.feed(healthy)
						for range 3 {
							b.feed(stepOf(0, 1, c.flood(flooded)...))
							flooded++
						}
					}
				}
				if c.restart {
					b = b.again(t, cfg)
				}
			}
			got := map[int64]int{}
			for _, u := range b.units {
				if !u.Shadow && u.Group.Policy == "p" {
					got[u.Length]++
				}
			}
			if len(got) != 1 || got[length] != agents*rounds {
				t.Errorf("units by length %v, want %d of %d", got, agents*rounds, length)
			}
		})
	}
}

// If a policy itself has more open episodes than allowed, all units are still complete episodes, and many are found.
func TestAFragmentIsNoUnit(t *testing.T) {
	const agents, length, rounds = 100, 10, 20
	for name, c := range map[string]struct {
		change  func(agent, round int) []change
		most    int
		start   int64
		restart bool
	}{
		"agents":                   {func(a, _ int) []change { return []change{agentID(strconv.Itoa(a))} }, 60, 0, false},
		"restarts":                 {func(a, _ int) []change { return []change{agentID(strconv.Itoa(a))} }, 60, 0, true},
		"episode ids":              {func(a, r int) []change { return []change{agentID(strconv.Itoa(a)), episodeID(strconv.Itoa(r))} }, 60, 0, false},
		"ids used again":           {func(a, r int) []change { return []change{episodeID(strconv.Itoa(a)), at(int64(r+1) * 1e9)} }, 60, 0, false},
		"from 1":                   {func(a, _ int) []change { return []change{agentID(strconv.Itoa(a))} }, 60, 1, false},
		"more than are remembered": {func(a, _ int) []change { return []change{agentID(strconv.Itoa(a))} }, 20, 0, false},
		"that, and restarts":       {func(a, _ int) []change { return []change{agentID(strconv.Itoa(a))} }, 20, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{MaxOpen: c.most}
			b := newBench(cfg)
			for round := range rounds {
				for step := range int64(length) {
					for agent := range agents {
						e := stepOf(c.start+step, 1, c.change(agent, round)...)
						e.Terminated = step == length-1
						b.feed(e)
					}
				}
				if c.restart {
					b = b.again(t, cfg)
				}
			}
			got := b.lengths("p")
			if len(got) != 1 || got[length] < c.most*rounds*9/10 {
				t.Errorf("units by length %v, want none but of %d, %d at least", got, length, c.most*rounds*9/10)
			}
			if b.Open() > c.most || len(b.lost.places) > c.most {
				t.Errorf("%d open, %d remembered", b.Open(), len(b.lost.places))
			}
		})
	}
}

// For steps without numbers, a dropped episode is remembered until it ends.
func TestAFragmentWithoutNumbersIsNoUnit(t *testing.T) {
	b := newBench(Config{MaxOpen: 2})
	for _, id := range []string{"a", "b", "c"} { // a is dropped
		b.feed(stepOf(-1, 1, agentID(id)))
	}
	b.feed(stepOf(-1, 1, agentID("a")), stepOf(-1, 1, agentID("a"), terminated), summaryOf(2, 3, agentID("a")))
	b.feed(stepOf(-1, 1, agentID("b"), terminated))
	b.feed(stepOf(-1, 1, agentID("a")), stepOf(-1, 1, agentID("a"), terminated))
	want := []string{"b/ terminated 2=2 1-6@6.0", "a/ terminated 2=2 7-8@8.0"}
	if got := b.told(); !slices.Equal(got, want) {
		t.Errorf("units %q, want %q", got, want)
	}
	if got := b.counted(t, MetricEventsIgnored, "reason", "dropped_episode"); got != 2 {
		t.Errorf("%v events were ignored, want 2", got)
	}
}

// A policy remains reported in blocks with more agents than episodes may be open, and the rest of a dropped episode is
// not an episode if one ends after all.
func TestBlocksGoOnWhereEpisodesAreDropped(t *testing.T) {
	b := newBench(Config{MaxOpen: 10})
	const agents = 12
	for i := range int64(blocksAfter + 20_000) {
		b.feed(stepOf(i, 1, agentID(strconv.Itoa(int(i%agents)))))
	}
	blocks := len(b.units)
	if blocks < 20_000/BlockSteps*4/10 {
		t.Errorf("%d blocks", blocks)
	}
	for i := range agents {
		b.feed(stepOf(int64(blocksAfter+20_000+i), 1, agentID(strconv.Itoa(i)), terminated))
	}
	for _, u := range b.units[blocks:] {
		if u.End != ingest.EndBlock && u.First.Offset > agents {
			t.Errorf("the rest of an episode became a unit: %+v", u)
		}
	}
}

// Policies whose episodes continue counting are not ignored after they have lost more episodes than can be remembered.
func TestStepsThatGoOnCountingAreNotTakenForFragments(t *testing.T) {
	b := newBench(Config{MaxOpen: 5})
	step := int64(0)
	for range 50 {
		for range 8 {
			step++
			b.feed(stepOf(step, 1, episodeID(fmt.Sprint("e", step))))
		}
		for k := range int64(8) {
			b.feed(stepOf(step+1, 1, episodeID(fmt.Sprint("e", step-k)), terminated))
		}
	}
	if n := b.lengths("p")[2]; n < 100 {
		t.Errorf("%d units of 400 episodes with room for 5 of 8", n)
	}
}

// Policies that are not watched take up no room, even after a restart from a state that contains them.
func TestUnwatchedNamesLeaveNothing(t *testing.T) {
	cfg := Config{MaxGroups: 50}
	b := newBench(cfg)
	for i := range 200 {
		b.feed(stepOf(0, 1, ofPolicy(fmt.Sprint("stray-", i)), agentID("a")))
	}
	b.feed(stepOf(0, 1, terminated))
	if len(b.units) != 0 {
		t.Fatal("there was room although all names were watched")
	}
	cfg.Watched = func(policy string) bool { return policy == "p" }
	b = b.again(t, cfg)
	for i := range 20_000 {
		b.feed(stepOf(0, 1, ofPolicy(fmt.Sprint("stray-", i)), agentID("a")))
	}
	b.feed(stepOf(0, 1, terminated))
	if len(b.units) != 1 || len(b.groups) != 1 || len(b.policies) != 1 || b.Open() != 0 {
		t.Errorf("%d units, %d groups, %d policies, %d open", len(b.units), len(b.groups), len(b.policies), b.Open())
	}
	if got := b.counted(t, MetricEventsIgnored, "reason", "unmatched"); got != 20_000 {
		t.Errorf("%v unmatched events", got)
	}
}

// Groups that have been idle for a long time make room, together with their open episodes. Groups in use remain.
func TestSimIdleGroupsExpire(t *testing.T) {
	cfg := Config{MaxGroups: 50}
	b := newBench(cfg)
	b.feed(stepOf(0, 1, agentID("long")))
	for i := range 100 {
		b.feed(stepOf(0, 1, ofPolicy(fmt.Sprint("once-", i)), agentID("a")))
	}
	refused := b.counted(t, MetricEventsIgnored, "reason", "group_limit")
	if len(b.groups) != 50 || refused != 51 {
		t.Fatalf("%d groups, %v events refused", len(b.groups), refused)
	}
	for i := range int64(idleAfter + 1) {
		b.feed(stepOf(i+1, 1, agentID("long")))
		b.units = nil
	}
	b = b.again(t, cfg)
	b.feed(stepOf(0, 1, ofPolicy("late"), terminated))
	if len(b.units) != 1 || len(b.groups) != 2 || len(b.policies) != 2 || b.Open() != 1 {
		t.Errorf("%d units, %d groups, %d policies, %d open", len(b.units), len(b.groups), len(b.policies), b.Open())
	}
	if got := b.counted(t, MetricGroupsExpired, "", ""); got != 49 {
		t.Errorf("%v groups have expired", got)
	}
}

// A policy with a group for each of many label values makes room for the others.
func TestAPolicyOfManyGroupsMakesRoom(t *testing.T) {
	b := newBench(Config{MaxGroups: 100})
	b.feed(stepOf(0, 1, ofPolicy("slow"), agentID("a")))
	for i := range 1000 {
		b.feed(stepOf(0, 1, ofPolicy("many"), env(strconv.Itoa(i)), terminated))
	}
	for range searchEvery {
		b.feed(stepOf(0, 1, ofPolicy("many"), env("0"), terminated))
	}
	b.feed(stepOf(0, 1, ofPolicy("new"), terminated), stepOf(1, 1, ofPolicy("slow"), agentID("a"), terminated))
	if b.lengths("new")[1] != 1 || b.lengths("slow")[2] != 1 || len(b.groups) > 20 {
		t.Errorf("new %v, slow %v, %d groups", b.lengths("new"), b.lengths("slow"), len(b.groups))
	}
	b.Forget("many")
	b.Forget("nothing")
	if len(b.groups) != 2 || len(b.policies) != 2 {
		t.Errorf("%d groups and %d policies are left", len(b.groups), len(b.policies))
	}
}

// A forgotten policy is not found through the policy that its events used to follow.
func TestAForgottenPolicyIsNotFollowed(t *testing.T) {
	b := newBench(Config{})
	for i := range int64(3) {
		b.feed(stepOf(i, 1, ofPolicy("p")), stepOf(i, 1, ofPolicy("q")))
	}
	was := b.policies["q"]
	if b.policies["p"].next != was {
		t.Fatalf("p is followed by %+v", b.policies["p"].next)
	}
	b.Forget("q")
	if was.next != nil {
		t.Error("a forgotten policy keeps another one in memory")
	}
	b.feed(stepOf(3, 1, ofPolicy("p")), stepOf(3, 1, ofPolicy("q")))
	if now := b.policies["q"]; now == nil || now == was || b.last != now || b.policies["p"].next != now {
		t.Errorf("q is %+v", now)
	}
}
