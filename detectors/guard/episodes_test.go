package guard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func returnLimit(share, alpha float64) watch.GuardLimit {
	return watch.GuardLimit{Name: "losses", ReturnBelow: "0", Share: share, Alpha: alpha, Then: watch.GuardHold}
}

// players simulates many agents that play episodes. Episodes with a small return are short, so they end first.
type players struct {
	rng    *rand.Rand
	guard  *guard
	steps  []int // remaining steps of each agent's episode
	number []int // of its episode
	small  []bool
	asEnds bool // whether the guard sees no steps, so that the order of the ends counts
}

func newPlayers(rng *rand.Rand, l watch.GuardLimit, agents int) *players {
	return &players{rng: rng, guard: newGuard(l), steps: make([]int, agents), number: make([]int, agents), small: make([]bool, agents)}
}

// act lets an agent take a step, and reports whether the guard tripped.
func (p *players) act(agent int, chance float64) (tripped bool) {
	u := &ingest.Unit{Group: ingest.NewGroup("p"), Agent: fmt.Sprint(agent), Episode: fmt.Sprint(p.number[agent]), End: ingest.EndOpen}
	if p.steps[agent] == 0 {
		p.steps[agent], p.small[agent] = 20, p.rng.Float64() < chance
		if p.small[agent] {
			p.steps[agent] = 2
		}
	}
	if !p.asEnds {
		tripped, _ = p.guard.observe(u, finding.UnitRef{})
	}
	if p.steps[agent]--; p.steps[agent] > 0 {
		return tripped
	}
	p.number[agent]++
	end := *u
	end.End, end.Shown, end.HasReturn, end.Return = ingest.EndTerminated, !p.asEnds, true, 1
	if p.small[agent] {
		end.Return = -1
	}
	did, _ := p.guard.observe(&end, finding.UnitRef{})
	return tripped || did
}

// stopped returns how many crowds of a hundred players trip the guard within the given number of steps.
func stopped(count, steps int, share, alpha, chance float64, asEnds bool) (n int) {
	rng := rand.New(rand.NewPCG(31, 8))
	for range count {
		p := newPlayers(rng, returnLimit(share, alpha), 100)
		p.asEnds = asEnds
		for range steps {
			if p.act(rng.IntN(100), chance) {
				n++
				break
			}
		}
	}
	return n
}

// TestSimShortLossesDoNotStopHealthyCrowds simulates crowds that keep a limit on returns exactly. Their losses end
// first: if episodes counted when they end, nearly all of the first ones would be losses.
func TestSimShortLossesDoNotStopHealthyCrowds(t *testing.T) {
	t.Parallel()
	const count, steps, share, alpha = 2000, 3000, .05, .05
	most := count*alpha + 3*math.Sqrt(count*alpha*(1-alpha))
	got := stopped(count, steps, share, alpha, share, false)
	if float64(got) > most {
		t.Errorf("%d of %d crowds stopped, at most %.0f are allowed", got, count, most)
	}
	t.Logf("%d of %d crowds stopped, at most %.0f allowed", got, count, most)
	ended := stopped(200, steps, share, alpha, share, true)
	if ended < 100 {
		t.Errorf("%d of 200 crowds stopped when episodes count as they end: the test would not find that", ended)
	}
	t.Logf("%d of 200 crowds stopped when episodes count as they end", ended)
	if found := stopped(100, steps, share, alpha, .25, false); found < 99 {
		t.Errorf("%d of 100 crowds with a quarter of losses stopped", found)
	}
}

// TestOpenEpisodesDoNotHoldUpAProof lets the first episode never end.
func TestOpenEpisodesDoNotHoldUpAProof(t *testing.T) {
	g := newGuard(returnLimit(.05, .01))
	g.observe(&ingest.Unit{Agent: "stuck", End: ingest.EndOpen}, finding.UnitRef{})
	for i := range 20 {
		u := &ingest.Unit{Agent: "a", Episode: fmt.Sprint(i), End: ingest.EndOpen}
		g.observe(u, finding.UnitRef{})
		if tripped, _ := g.observe(&ingest.Unit{Agent: "a", Episode: u.Episode, Shown: true, HasReturn: true, Return: -1}, finding.UnitRef{}); tripped {
			return
		}
	}
	t.Errorf("20 losses in a row do not trip the guard: evidence %v", g.evidence())
}

// TestOpenEpisodesDoNotHoldUpARelease has an abandoned episode, whose end guards never see.
func TestOpenEpisodesDoNotHoldUpARelease(t *testing.T) {
	const after = 40
	l := returnLimit(.05, .01)
	l.ReleaseAfter = after
	g := newGuard(l)
	episode := func(number int, result float64) (tripped, released bool) {
		u := &ingest.Unit{Agent: "a", Episode: fmt.Sprint(number), End: ingest.EndOpen}
		g.observe(u, finding.UnitRef{})
		return g.observe(&ingest.Unit{Agent: "a", Episode: u.Episode, Shown: true, HasReturn: true, Return: result}, finding.UnitRef{})
	}
	number := 0
	for ; !g.tripped && number < 20; number++ {
		episode(number, -1)
	}
	g.observe(&ingest.Unit{Agent: "stuck", End: ingest.EndOpen}, finding.UnitRef{})
	for i := range after {
		_, released := episode(number+i, 1)
		if released != (i == after-1) {
			t.Fatalf("tripped after %d losses; after %d good returns, released %v", number, i+1, released)
		}
	}
}

// TestWhatIsAheadIsALowerBound compares the evidence with that of the same returns once all episodes have ended. A
// guard that bets on the returns in the order of the beginnings has reached it at one of them.
func TestWhatIsAheadIsALowerBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for range 200 {
		p := newPlayers(rng, returnLimit(.2, 1e-9), 8) // never trips
		began := map[string]int{}
		losses, highest := []bool{}, 0.
		for range 400 {
			agent := rng.IntN(8)
			key := fmt.Sprint(agent, "/", p.number[agent])
			p.act(agent, .3)
			if _, known := began[key]; !known {
				began[key] = len(losses)
				losses = append(losses, p.small[agent])
			}
			highest = max(highest, p.guard.evidence())
		}
		var all wealth
		most := 1.
		for _, small := range losses {
			c := 0.
			if small {
				c = 1
			}
			all.begin()
			all.bet(&p.guard.odds, 1, c)
			most = max(most, all.evidence())
		}
		if highest > most*(1+1e-9) {
			t.Fatalf("evidence %v, but all returns have at most %v", highest, most)
		}
	}
}

// TestWaitingEpisodesAreBounded begins many episodes that never end, and then some that do.
func TestWaitingEpisodesAreBounded(t *testing.T) {
	g := newGuard(returnLimit(.05, .01))
	for i := range 4 * mostWaiting {
		g.observe(&ingest.Unit{Agent: "a", Episode: fmt.Sprint(i), End: ingest.EndOpen}, finding.UnitRef{})
	}
	e := &g.episodes
	if len(e.waiting) != mostWaiting || len(e.open) != mostWaiting || len(e.void)+len(e.old) > 2*mostWaiting {
		t.Errorf("%d wait, %d are open, %d and %d are void", len(e.waiting), len(e.open), len(e.void), len(e.old))
	}
	before := g.n
	g.observe(&ingest.Unit{Agent: "a", Episode: fmt.Sprint(3 * mostWaiting / 2), Shown: true, HasReturn: true, Return: -1}, finding.UnitRef{})
	if g.n != before {
		t.Error("an episode that counts as a good one counted again when it ended")
	}
}

// TestEpisodesAreSaved resumes guards in the middle of episodes, and compares them with guards that continue.
func TestEpisodesAreSaved(t *testing.T) {
	l := returnLimit(.05, .01)
	l.ReleaseAfter = 40
	cfg := watch.Guards{Limits: []watch.GuardLimit{l}}
	rng := rand.New(rand.NewPCG(4, 4))
	s := New("p", cfg)
	p := newPlayers(rng, l, 30)
	p.guard = s.guards[0]
	for i := range 6000 {
		p.act(rng.IntN(30), .06+.3*float64(i/1500%2))
		if i%500 > 0 {
			continue
		}
		s.changed = true
		parts := ingest.Parts{}
		if err := s.Changes(parts); err != nil {
			t.Fatal(err)
		}
		again := New("p", cfg)
		if err := again.Resume(parts); err != nil {
			t.Fatal(err)
		}
		a, b := p.guard.episodes, again.guards[0].episodes
		if len(a.waiting) == 0 {
			a.waiting, b.waiting = nil, nil
		}
		if !reflect.DeepEqual(a.waiting, b.waiting) || len(a.open) != len(b.open) || len(a.void) != len(b.void) || a.first != b.first || a.ahead != b.ahead {
			t.Fatalf("after %d steps: %+v, resumed %+v", i, a, b)
		}
		s, p.guard = again, again.guards[0]
	}
	if p.guard.episodes.first == 0 {
		t.Error("no episode has counted")
	}
}
