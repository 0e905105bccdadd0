package bank

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// A hundred agents begin at the same time, after the baseline, and their units arrive as they end: the short episodes
// first.
func TestSimNewAgentsAreNoDrift(t *testing.T) {
	a := newAgent(180)
	turn := 0
	a.edit = func(u *ingest.Unit) {
		u.Agent = fmt.Sprint("old-", turn%4)
		turn++
	}
	p := newBank(episodes(2000))
	a.feed(p, 700)
	units := make([][]*ingest.Unit, 26) // by length: those of 15 steps end first
	for i := range 100 {
		u := a.unit()
		u.Agent = fmt.Sprint("new-", i)
		units[u.Length] = append(units[u.Length], u)
	}
	at := a.made
	for _, same := range units {
		for _, u := range same {
			u.Pos.Offset, at = at, at+1
			for _, f := range p.Observe(u, time.Time{}) {
				if f.To == finding.Drift {
					t.Fatalf("%s drifted at a unit of %d steps", f.Signal, u.Length)
				}
			}
		}
	}
	// A new agent is judged from its third episode on at the latest: from then on, short episodes are a drift.
	a.made = at
	a.edit = func(u *ingest.Unit) { u.Agent, u.Length = fmt.Sprint("new-", a.made%100), 15 }
	if len(alarmsIn(a.feed(p, 400))) == 0 {
		t.Error("episodes that stay short were not found")
	}
}

// If each episode has its own agent, the rule for newcomers would leave out all of them.
func TestShortLivedAgentsAreJudged(t *testing.T) {
	a := newAgent(181)
	a.edit = func(u *ingest.Unit) { u.Agent = u.Episode }
	p := newBank(episodes(2000))
	a.feed(p, 600)
	a.mean = -1
	if len(alarmsIn(a.feed(p, 60))) == 0 {
		t.Error("the drift of short-lived agents was not found")
	}
}

// Agents that become short-lived after the baseline are judged nevertheless, after some time.
func TestAgentsThatBecomeShortLivedAreJudged(t *testing.T) {
	a := newAgent(182)
	a.edit = func(u *ingest.Unit) { u.Agent = fmt.Sprint("old-", a.made%4) }
	p := newBank(episodes(2000))
	a.feed(p, 600)
	a.edit = func(u *ingest.Unit) { u.Agent = u.Episode }
	a.mean = -1
	if len(alarmsIn(a.feed(p, 250))) == 0 {
		t.Error("the drift of agents that have become short-lived was not found")
	}
}

// crowd makes the units of agents that all begin at the same time, in the order in which they end. Their lengths are
// lognormal: one in a hundred is six times the mean.
type crowd struct {
	s     *simulation
	until []int64 // by agent, the end of its episode
	long  []int64
}

const (
	crowdMean = 19.8 // mean number of steps of an episode
	crowdSD   = 25.8
)

func newCrowd(agents int, seed uint64) *crowd {
	c := &crowd{s: newSimulation(laws()[0], seed, 0), until: make([]int64, agents), long: make([]int64, agents)}
	for a := range c.until {
		c.begin(a)
	}
	return c
}

func (c *crowd) begin(agent int) {
	c.long[agent] = max(1, int64(math.Round(12*math.Exp(c.s.rng.NormFloat64()))))
	c.until[agent] += c.long[agent]
}

// next returns the agent whose episode ends next.
func (c *crowd) next() (agent int) {
	for a := range c.until {
		if c.until[a] < c.until[agent] {
			agent = a
		}
	}
	return agent
}

func (c *crowd) unit() *ingest.Unit {
	agent := c.next()
	u := c.s.unitOf(c.long[agent])
	u.Agent = fmt.Sprint(agent)
	c.begin(agent)
	return u
}

// A hundred agents begin at the same time, and their units arrive as they end. Without newcomers, the baseline has the
// lengths of the telemetry that follows, which raises no alarm.
func TestSimBaselineOfAgentsThatBeginTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const agents, m, seeds = 100, 500, 4
	sum, alarms := 0.0, 0
	for seed := range uint64(seeds) {
		c := newCrowd(agents, 240+seed)
		cfg := episodes(20_000)
		cfg.Baseline.Units = m
		p := newBank(cfg)
		units := 0
		for ; p.Accepted(c.s.group()) == ""; units++ {
			p.Observe(c.unit(), time.Time{})
		}
		g := p.groups[0]
		if g.Baseline.Units != m || g.Warmup.Early == 0 || units != m+g.Warmup.Early {
			t.Fatalf("a baseline of %d units after %d, %d left out; want %d", g.Baseline.Units, units, g.Warmup.Early, m)
		}
		i, _ := g.Find("episode_length")
		sum += g.Streams[i].Find("length").Mean
		for range 2000 {
			alarms += len(alarmsIn(p.Observe(c.unit(), time.Time{})))
		}
	}
	// With all units, it would be shorter by .2 standard deviations, or 9 standard errors.
	if off := (sum/seeds - crowdMean) / (crowdSD / math.Sqrt(seeds*m)); math.Abs(off) > 3.5 {
		t.Errorf("mean length of the baselines %.2f, %.1f standard errors from %v", sum/seeds, off, crowdMean)
	}
	if alarms > 0 {
		t.Errorf("%d alarms in %d units", alarms, seeds*2000)
	}
}

// If agents have one episode each, all units would be newcomers: none is left out.
func TestSimBaselineOfShortLivedAgents(t *testing.T) {
	a := newAgent(183)
	a.edit = func(u *ingest.Unit) { u.Agent = u.Episode }
	p := newBank(episodes(2000))
	a.feed(p, 500)
	if g := p.groups[0]; !g.Warmup.Done || g.Warmup.Early != 0 {
		t.Errorf("%d of 500 units were left out, accepted %v", g.Warmup.Early, g.Warmup.Done)
	}
}
