package assemble

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/ingesttest"
)

// Snapshots of format 5 are read correctly: the units of later events are the same as for an assembler that never
// stopped.
func TestSnapshotsOfFormat5AreRead(t *testing.T) {
	for name, play := range map[string]func() (before *bench, goOn func(*bench) []string){
		"chaos":  playChaos,
		"blocks": playBlocks,
	} {
		t.Run(name, func(t *testing.T) {
			old, err := os.ReadFile(filepath.Join("testdata", "snapshots", "5", name))
			if err != nil {
				t.Fatal(err)
			}
			before, goOn := play()
			b := restored(t, smallConfig(), old)
			b.offset = before.offset
			if got, want := snapshot(t, b.Assembler), snapshot(t, before.Assembler); string(got) != string(want) {
				t.Error("the state is another one")
			}
			if got, want := goOn(b), goOn(before); len(want) < 20 || !slices.Equal(got, want) {
				t.Errorf("%d units, want these %d:\n%q\nwant\n%q", len(got), len(want), got, want)
			}
		})
	}
}

// playChaos returns an assembler after a random sequence of all kinds of events.
func playChaos() (before *bench, goOn func(*bench) []string) {
	events := chaos(rand.New(rand.NewPCG(3, 4)), 600)
	before = newBench(smallConfig())
	fold(before.Assembler, events[:400])
	for ep := before.starts.front; ep != nil; ep = ep.links[byStart].after {
		ep.Keeper = nil // format 5 did not keep individual steps
	}
	for _, p := range before.policies {
		p.Since = 0 // nor the time since which no episode has ended
		if p.InShadow != nil {
			p.InShadow.Since = 0
		}
	}
	return before, func(b *bench) []string { return fold(b.Assembler, events[400:]) }
}

// playBlocks returns an assembler with unfinished blocks of a policy whose episodes never end.
func playBlocks() (before *bench, goOn func(*bench) []string) {
	play := func(b *bench, from, to int64) {
		for i := from; i < to; i++ {
			b.feed(stepOf(i, float64(i), agentID(strconv.FormatInt(i%3, 10))))
		}
	}
	before = newBench(smallConfig())
	play(before, 0, 21_111)
	return before, func(b *bench) []string {
		b.units = nil
		play(b, 21_111, 23_000)
		return b.told()
	}
}

// filled returns a wire form with all fields set.
func filled[Wire any]() *Wire {
	w := new(Wire)
	ingesttest.Fill(w)
	return w
}

func sameWire(t *testing.T, got, want any) {
	t.Helper()
	if got, want := ingesttest.Text(got), ingesttest.Text(want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWireFormsKeepEveryField(t *testing.T) {
	sums := filled[tallyWire]()
	for i := range sums.Numeric {
		sums.Numeric[i].Q10, sums.Numeric[i].Q90 = 0, 0
	}
	sameWire(t, sums.live().wire(), sums)
	p, g := filled[policyWire](), filled[groupWire]()
	sameWire(t, p.live().wire(), p)
	g.Block = sums
	sameWire(t, g.live().wire(), g)
	ag := filled[agentWire]()
	ag.Block = sums
	sameWire(t, ag.live(g.live()).wire(ag.Group), *ag)
	sameWire(t, wireOfEnded(filled[endedWire]().live()), *filled[endedWire]())
}
