package guard

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// crowd simulates many agents of one policy, whose costs end their episodes.
type crowd struct {
	rng   *rand.Rand
	guard *guard
	open  []ingest.Count // steps of the open episode of each agent, all without a cost
	whole bool           // whether an episode counts when it ends, instead of each step
}

// act lets an agent take a step, and reports whether the guard tripped.
func (c *crowd) act(agent int, bad bool) bool {
	u := decision(bad)
	if !c.whole {
		u.End = ingest.EndOpen
		tripped, _ := c.guard.observe(u, finding.UnitRef{})
		if bad && !tripped {
			tripped, _ = c.guard.observe(&ingest.Unit{Shown: true, Actions: u.Actions}, finding.UnitRef{})
		}
		return tripped
	}
	if !bad {
		c.open[agent].N++
		return false
	}
	u.Actions = append(u.Actions, ingest.Count{Name: "good", N: c.open[agent].N})
	c.open[agent].N = 0
	tripped, _ := c.guard.observe(u, finding.UnitRef{})
	return tripped
}

// crowds returns how many of the crowds of a hundred agents trip the guard within the given number of steps. next
// chooses the agent that acts and the probability that it causes a cost, given everything so far.
func crowds(count, steps int, whole bool, share, alpha float64, next func(c *crowd, last bool, evidence float64) (agent int, chance float64)) int {
	rng := rand.New(rand.NewPCG(23, 5))
	tripped := 0
	for range count {
		c := &crowd{rng: rng, guard: newGuard(unsafeLimit(share, alpha)), open: make([]ingest.Count, 100), whole: whole}
		last := false
		for range steps {
			agent, chance := next(c, last, c.guard.evidence())
			if last = rng.Float64() < chance; c.act(agent, last) {
				tripped++
				break
			}
		}
	}
	return tripped
}

// TestAHealthyCrowdIsStoppedWithAChanceOfAlpha simulates ten thousand crowds that keep the limit, with costs that
// are independent, that depend on each other, and that an adversary chooses. Each cost ends the episode of its
// agent, so that episodes with costs end first. If episodes counted when they end, nearly all crowds would be
// stopped.
func TestAHealthyCrowdIsStoppedWithAChanceOfAlpha(t *testing.T) {
	const count, steps, share, alpha = 10_000, 300, .05, .05
	most := count*alpha + 3*math.Sqrt(count*alpha*(1-alpha))
	for name, next := range map[string]func(*crowd, bool, float64) (int, float64){
		"independent": func(c *crowd, _ bool, _ float64) (int, float64) { return c.rng.IntN(100), share },
		"dependent": func(c *crowd, last bool, _ float64) (int, float64) {
			if last {
				return c.rng.IntN(10), share
			}
			return c.rng.IntN(100), share / 4
		},
		"adversary": func(c *crowd, last bool, evidence float64) (int, float64) {
			switch {
			case evidence > 2:
				return 0, share
			case last:
				return c.rng.IntN(100), share * .9
			}
			return c.rng.IntN(100), share
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := crowds(count, steps, false, share, alpha, next)
			if float64(got) > most {
				t.Errorf("%d of %d crowds stopped, at most %.0f are allowed", got, count, most)
			}
			t.Logf("%d of %d crowds stopped, at most %.0f allowed", got, count, most)
			if ended := crowds(100, steps, true, share, alpha, next); name == "independent" && ended < 90 {
				t.Errorf("%d of 100 crowds stopped when episodes count as they end, want nearly all: the test would not find that", ended)
			}
		})
	}
}

// TestStepsAndTheirEpisodesCountOnce passes a guard the steps of episodes and then their ends, together with whole
// episodes of one step. A tripped guard counts its release in episodes.
func TestStepsAndTheirEpisodesCountOnce(t *testing.T) {
	limit := unsafeLimit(.2, .01)
	limit.ReleaseAfter = 30
	g := newGuard(limit)
	episode := func(bad bool) (tripped, released bool) {
		for range 4 {
			u := decision(bad)
			u.End = ingest.EndOpen
			did, free := g.observe(u, finding.UnitRef{})
			tripped, released = tripped || did, released || free
		}
		did, free := g.observe(&ingest.Unit{Shown: true, Length: 4, Actions: []ingest.Count{{Name: "bad", N: 4}}}, finding.UnitRef{})
		return tripped || did, released || free
	}
	for range 10 {
		episode(false)
	}
	g.observe(decision(false), finding.UnitRef{})
	if g.n != 41 || g.c != 0 || g.wealth.units != 11 {
		t.Errorf("%v steps with costs of %v in %d units, want 41 without costs in 11", g.n, g.c, g.wealth.units)
	}
	tripped := false
	for n := 0; !tripped && n < 100; n++ {
		tripped, _ = episode(true)
	}
	if !tripped {
		t.Fatal("it never trips")
	}
	n := 1
	for ; n < 100; n++ {
		if _, released := episode(false); released {
			break
		}
	}
	if n != 30 {
		t.Errorf("released after %d episodes, want 30", n)
	}
}

// TestATripInOpenEpisodesSaysSinceWhen exceeds a limit within episodes that are all still open when the guard
// trips.
func TestATripInOpenEpisodesSaysSinceWhen(t *testing.T) {
	for _, endsAt := range []int{-1, 1999, 2010} { // an episode that has ended by then
		s := New("p", watch.Guards{Limits: []watch.GuardLimit{unsafeLimit(.01, .01)}})
		const broken = 2000
		var found []finding.Finding
		for i := 1; len(found) == 0 && i < 10_000; i++ {
			u := decision(i >= broken && i%5 == 0)
			u.End, u.EndTS, u.Pos.Offset = ingest.EndOpen, int64(i), int64(i)
			found = s.Observe(u)
			if i == endsAt {
				s.Observe(&ingest.Unit{Shown: true, Pos: u.Pos, Ord: 1, EndTS: u.EndTS})
			}
		}
		if len(found) != 1 {
			t.Fatal("it never trips")
		}
		if f := found[0]; f.Onset.TS < broken-5 || f.Onset.TS > broken+5 || f.OnsetFrom.TS > f.Onset.TS || f.Onset.TS >= f.At.TS ||
			f.OnsetFrom.Ordinal > f.Onset.Ordinal || f.Onset.Ordinal > f.At.Ordinal {
			t.Errorf("with an end at %d: onset %+v from %+v, tripped at %+v, want about %d", endsAt, f.Onset, f.OnsetFrom, f.At, broken)
		}
	}
}
