package assemble

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// play feeds the steps of agents from step from up to step to. Each agent takes life steps, and the given number of
// agents take turns.
func (b *bench) play(from, to, agents, life int64) {
	for i := from; i < to; i++ {
		turn := i / agents
		id := fmt.Sprint(i%agents, "/", turn/life)
		b.feed(stepOf(turn%life, float64(i), agentID(id)))
	}
}

func (b *bench) mixed() (mixed, all int) {
	for _, u := range b.units {
		if u.Mixed {
			mixed++
		}
	}
	return mixed, len(b.units)
}

func TestSimAgentsThatLiveForLessThanABlockAreShownTogether(t *testing.T) {
	for _, c := range []struct {
		name         string
		agents, life int64
		mixes        bool
	}{
		{"one step each", 1, 1, true},
		{"seven steps, one at a time", 1, 7, true},
		{"seven steps, 300 at a time", 300, 7, true},
		{"25,000 that live for ever", 25_000, 1 << 40, true},
		{"300 that live for ever", 300, 1 << 40, false},
		{"9,000 that live for ever", 9_000, 1 << 40, false},
		{"fifty steps, one at a time", 1, 50, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(Config{MaxOpen: 30_000})
			b.play(0, 50_000, c.agents, c.life)
			mixed, all := b.mixed()
			if (mixed > 0) != c.mixes || mixed > 0 && mixed != all {
				t.Fatalf("%d of %d blocks are of many agents", mixed, all)
			}
			if !c.mixes {
				return
			}
			if all < 800 { // 50,000 steps except for 10,000 before blocks, and two rounds
				t.Errorf("%d blocks", all)
			}
			first := b.units[0]
			if first.End != ingest.EndBlock || first.Length != 20 || first.Agent != "" || first.HasReturn {
				t.Errorf("%+v", first)
			}
			for _, ag := range b.agents {
				if ag.block != nil {
					t.Fatal("an agent keeps a block of its own")
				}
			}
		})
	}
}

// Agents that vanish leave no block behind among agents that stay.
func TestBlocksOfVanishedAgentsAreGivenUp(t *testing.T) {
	b := newBench(Config{})
	for i := range int64(60_000) {
		b.feed(stepOf(i, 1, agentID("stays")))
		if i%20 == 0 {
			b.feed(stepOf(0, 1, agentID(strconv.FormatInt(i, 10))))
		}
	}
	blocks := 0
	for _, ag := range b.agents {
		if ag.block != nil && ag.block.Steps > 0 {
			blocks++
		}
	}
	if mixed, all := b.mixed(); mixed > 0 || all < 2400 || blocks > 2*blockRound/20 {
		t.Errorf("%d of %d blocks are of many agents, %d agents have one", mixed, all, blocks)
	}
}

func TestAnEndEndsBlocksOfManyAgents(t *testing.T) {
	b := newBench(Config{})
	b.play(0, 40_000, 1, 7)
	if mixed, _ := b.mixed(); mixed == 0 {
		t.Fatal("no block of many agents")
	}
	units := len(b.units)
	b.feed(stepOf(0, 1, agentID("x"), terminated))
	b.play(40_001, 45_000, 1, 7)
	if len(b.units) != units+1 {
		t.Errorf("%d units after an end", len(b.units)-units)
	}
}

func TestSimRestartWithinABlockOfManyAgents(t *testing.T) {
	straight, first := newBench(Config{}), newBench(Config{})
	straight.play(0, 33_333, 3, 5)
	for _, cut := range []int64{25_555, 31_111} {
		first.play(first.offset, cut, 3, 5)
		second := restored(t, Config{}, snapshot(t, first.Assembler))
		second.offset = first.offset
		second.play(cut, 33_333, 3, 5)
		if got := append(first.told(), second.told()...); len(got) < 100 || !slices.Equal(got, straight.told()) {
			t.Errorf("cut at %d: %d units, want %d", cut, len(got), len(straight.units))
		}
	}
}

// Slow agents are reported in blocks once some days have shown that no episode ends, but not before they have taken
// enough steps, and not if episodes have ended less often than that before.
func TestSlowAgentsAreShownInBlocksEarly(t *testing.T) {
	const day = int64(24 * time.Hour)
	for name, c := range map[string]struct {
		every int64 // nanoseconds between steps; 0 without times
		ends  int64 // steps of an episode; 0 for one that never ends
		want  int64 // steps before the first block begins
	}{
		"a step every five minutes": {day / 288, 0, 999},
		"a step a minute":           {day / 1440, 0, 3 * 1440},
		"a step a second":           {day / 86400, 0, 9_999},
		"no times":                  {0, 0, 9_999},
		"episodes of 900 steps":     {day / 288, 900, -1},
	} {
		b := newBench(Config{})
		for i := range int64(12_000) {
			e := stepOf(i, 1, agentID("a"))
			if c.every > 0 {
				e.TS = 1_800_000_000_000_000_000 + i*c.every
			}
			e.Terminated = c.ends > 0 && i%c.ends == c.ends-1
			b.feed(e)
		}
		first := slices.IndexFunc(b.units, func(u *ingest.Unit) bool { return u.End == ingest.EndBlock })
		if got := first >= 0; got != (c.want >= 0) {
			t.Errorf("%s: blocks: %t", name, got)
		} else if got && b.units[first].First.Offset != c.want {
			t.Errorf("%s: the first block begins after %d steps, want %d", name, b.units[first].First.Offset, c.want)
		}
	}
}
