package bank

import (
	"fmt"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// A hundred agents begin at once, after the baseline, and their units come as they end: the short episodes first.
func TestNewAgentsAreNoDrift(t *testing.T) {
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
				if f.To == Drift {
					t.Fatalf("%s drifted at a unit of %d steps", f.Signal, u.Length)
				}
			}
		}
	}
	// A new agent is judged from its third episode on at the latest: short ones are a drift then.
	a.made = at
	a.edit = func(u *ingest.Unit) { u.Agent, u.Length = fmt.Sprint("new-", a.made%100), 15 }
	if len(alarmsIn(a.feed(p, 400))) == 0 {
		t.Error("episodes that stay short were not found")
	}
}

// Where each episode has an agent of its own, the rule would leave out all of them.
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

// Agents that become short-lived after the baseline are judged all the same, after a while.
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
