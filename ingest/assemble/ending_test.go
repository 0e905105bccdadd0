package assemble

import (
	"bytes"
	"fmt"
	"testing"
)

// visits feeds episodes of two steps. The second step, if it arrives, arrives ten visits later and ends the episode.
// With visitors, each episode belongs to a different agent, otherwise all belong to one.
func (b *bench) visits(from, to int, visitors bool, ends func(i int) bool) {
	of := func(i int) change {
		if visitors {
			return agentID(fmt.Sprint("visitor-", i))
		}
		return agentID("server")
	}
	for i := from; i < to; i++ {
		b.feed(stepOf(0, 0, of(i), episodeID(fmt.Sprint(i))))
		if back := i - 10; back >= 0 && ends(back) {
			b.feed(stepOf(1, 1, of(back), episodeID(fmt.Sprint(back)), terminated))
		}
	}
}

// unfinished returns the sum of Unfinished over the units starting at from, and the number of units in which it is
// known.
func (b *bench) unfinished(from int) (episodes, units int64) {
	for _, u := range b.units[from:] {
		if u.Unfinished >= 0 {
			episodes += u.Unfinished
			units++
		}
	}
	return episodes, units
}

// The units of a group report each episode that never ends exactly once, regardless of its agent.
func TestUnfinishedEpisodes(t *testing.T) {
	every := func(n int) func(int) bool { return func(i int) bool { return i%n == 0 } }
	for _, visitors := range []bool{false, true} {
		for _, maxOpen := range []int{100_000, 400, 50} { // the two lower limits drop episodes before, and long before, they are found
			t.Run(fmt.Sprint(visitors, maxOpen), func(t *testing.T) {
				b := newBench(Config{MaxOpen: maxOpen})
				b.visits(0, 2000, visitors, every(5))
				if episodes, units := b.unfinished(0); units < 300 || episodes < 4*units-20 || episodes > 4*units+20 {
					t.Errorf("%d episodes without an end and %d with one, of 4 to 1", episodes, units)
				}
				before := len(b.units)
				b.visits(2000, 6000, visitors, every(20))
				if episodes, units := b.unfinished(before); units < 190 || episodes < 15*units || episodes > 20*units {
					t.Errorf("%d episodes without an end and %d with one, of 19 to 1", episodes, units)
				}
			})
		}
	}
	b := newBench(Config{})
	b.visits(0, 5000, true, every(1))
	if episodes, units := b.unfinished(0); episodes != 0 || units < 4000 {
		t.Errorf("all end: %d episodes without an end, %d units", episodes, units)
	}
}

// An episode that continues after all is not reported, and an agent that pauses keeps its episode.
func TestUnfinishedEpisodesThatGoOn(t *testing.T) {
	b := newBench(Config{})
	all := func(int) bool { return true }
	b.feed(stepOf(0, 0, agentID("sleeper"), episodeID("s")))
	b.visits(0, 1000, true, all)
	before, _ := b.unfinished(0)
	at := len(b.units)
	b.feed(stepOf(1, 0, agentID("sleeper"), episodeID("s")))
	for i := range 5 {
		b.feed(stepOf(0, 0, agentID("late"), episodeID(fmt.Sprint("late-", i))))
	}
	b.visits(1000, 1500, true, all)
	found, _ := b.unfinished(at)
	for i := range 5 {
		b.feed(stepOf(1, 0, agentID("late"), episodeID(fmt.Sprint("late-", i)), terminated))
	}
	// Of six idle episodes, five ended after all. The next ones without an end compensate for them.
	b.visits(1500, 2500, true, func(i int) bool { return i%100 != 0 })
	total, _ := b.unfinished(at)
	if found != 6 || total != found+4 {
		t.Errorf("%d before, %d found while they slept, %d in all", before, found, total)
	}
}

// A restart does not change what is reported.
func TestUnfinishedEpisodesOverARestart(t *testing.T) {
	ends := func(i int) bool { return i%5 == 0 }
	whole, halves := newBench(Config{}), newBench(Config{})
	whole.visits(0, 3000, true, ends)
	halves.visits(0, 1234, true, ends)
	var saved bytes.Buffer
	if err := halves.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	again := newBench(Config{})
	if err := again.Restore(&saved); err != nil {
		t.Fatal(err)
	}
	again.offset, again.units = halves.offset, halves.units
	again.visits(1234, 3000, true, ends)
	if a, b := fmt.Sprint(unfinishedOf(whole)), fmt.Sprint(unfinishedOf(again)); a != b {
		t.Errorf("told\n%s\nafter a restart\n%s", a, b)
	}
}

func unfinishedOf(b *bench) (out []int64) {
	for _, u := range b.units {
		out = append(out, u.Unfinished)
	}
	return out
}
