package blocks

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// chose returns a block of steps from a number on, with the actions that the agent chose. The observation of each
// step is its number.
func chose(from, n int, names []string, action func(i int) int32) *ingest.Unit {
	u := &ingest.Unit{End: ingest.EndBlock, Length: int64(n), Steps: &ingest.Steps{Names: []string{"x"}}}
	for _, name := range names {
		u.Actions = append(u.Actions, ingest.Count{Name: name, N: 1})
	}
	for i := range n {
		u.Steps.At = append(u.Steps.At, int32(i+1))
		u.Steps.Actions = append(u.Steps.Actions, action(i))
		u.Steps.Rows = append(u.Steps.Rows, float32(from+i), 0)
	}
	return u
}

// Joined blocks keep the newest steps, in order, each with its action. The first step of a block does not follow
// the last step of the previous block.
func TestJoinedBlocksKeepTheNewestSteps(t *testing.T) {
	joined := chose(0, 20, []string{"b", "a"}, func(i int) int32 { return int32(i % 2) })
	for k := 1; k < 5; k++ { // in each block of an agent, "a" is the first action that it takes
		joined = Joined(joined, chose(20*k, 20, []string{"a", "b"}, func(i int) int32 { return int32(1 - i%2) }))
		s := joined.Steps
		if want := min(20*(k+1), ingest.MaxKeptSteps); len(s.At) != want || !s.Sound(len(joined.Actions)) {
			t.Fatalf("%d steps after %d blocks, want %d", len(s.At), k+1, want)
		}
		for i := range s.At {
			number := 20*(k+1) - len(s.At) + i
			wanted := []string{"b", "a"}[number%2]
			follows := i == 0 || s.At[i] == s.At[i-1]+1
			if follows == (i > 0 && number%20 == 0) || s.Row(i)[0] != float32(number) || joined.Actions[s.Actions[i]].Name != wanted {
				t.Fatalf("block %d, step %d: number %d, %v, %s", k, i, s.At[i], s.Row(i), joined.Actions[s.Actions[i]].Name)
			}
		}
	}
}

// If only one block has steps, or if they consist of other values, the newer ones are kept.
func TestJoinedBlocksOfOtherSteps(t *testing.T) {
	first := func(int) int32 { return 0 }
	without := &ingest.Unit{End: ingest.EndBlock, Length: 20}
	other := chose(20, 20, []string{"a"}, first)
	other.Steps.Names = []string{"y"}
	for name, c := range map[string]struct {
		a, b *ingest.Unit
		name string
		at   []int32
	}{
		"neither":    {without, without, "", nil},
		"the first":  {chose(0, 2, []string{"a"}, first), without, "x", []int32{1, 2}},
		"the second": {without, chose(0, 2, []string{"a"}, first), "x", []int32{1, 2}},
		"others":     {chose(0, 2, []string{"a"}, first), other, "y", nil},
	} {
		s := Joined(c.a, c.b).Steps
		switch {
		case (s == nil) != (c.name == ""):
			t.Errorf("%s: %+v", name, s)
		case s != nil && (s.Names[0] != c.name || c.at != nil && !slices.Equal(s.At, c.at)):
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Units that contain the steps of all agents have no single steps, which would seem to follow one another.
func TestBlocksOfManyAgentsHaveNoSteps(t *testing.T) {
	for _, size := range []int{1, 2} {
		j := Joiner{Size: size, Mixed: true}
		var u *ingest.Unit
		for k := range size {
			b := chose(20*k, 20, []string{"a"}, func(int) int32 { return 0 })
			b.Agent = string(rune('a' + k))
			u = j.Add(b)
		}
		if u == nil || u.Steps != nil || !u.Mixed {
			t.Errorf("size %d: %+v", size, u)
		}
	}
}

// A unit kept for a warm-up has no values of a signal with a fault, and no single steps; doubling restores the
// steps.
func TestUnitsOfAWarmup(t *testing.T) {
	first := func(int) int32 { return 0 }
	u := chose(0, 3, []string{"a"}, first)
	u.Reward.Add(1)
	u.Numeric = []ingest.NamedMoments{{Signal: "observation.x"}, {Signal: "observation.y"}}
	if kept := Without(u, nil); kept.Steps != nil || kept.Reward.N != 1 || len(kept.Numeric) != 2 {
		t.Errorf("without a fault: %+v", kept)
	}
	kept := Without(u, []string{"observation.x"})
	if kept.Reward.N != 1 || len(kept.Numeric) != 1 || kept.Numeric[0].Signal != "observation.y" {
		t.Errorf("with a fault: %+v", kept)
	}
	if u.Steps == nil || len(u.Numeric) != 2 {
		t.Error("the unit itself has lost values")
	}
	j := Joiner{Size: 1}
	for k := range 4 {
		j.Kept = append(j.Kept, Without(chose(20*k, 20, []string{"a"}, first), nil))
	}
	j.LeaveOut(func(place int) bool { return place < 2 })
	got := j.Double(func(place int) *ingest.Steps { return chose(20*(place+2), 20, []string{"a"}, first).Steps })
	if len(got) != 1 || len(got[0].Steps.At) != 40 || got[0].Steps.Row(0)[0] != 40 || got[0].Steps.Row(39)[0] != 79 {
		t.Errorf("doubled: %+v", got)
	}
}
