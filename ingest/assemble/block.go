package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// addToBlock adds a step to its agent's block, and emits the block if it is full. The step also remains part of its
// open episode, which is then complete if it ends after all.
func (a *Assembler) addToBlock(ag *agent, e *ingest.Event, emit func(*ingest.Unit)) {
	p := ag.group.policy
	ag.round = p.Round
	if ag.block == nil {
		ag.block = &tally{}
	}
	if u := ag.block.blockWith(e, a.names, true); u != nil {
		u.Shown = p.stepwise
		a.emit(u, ag.group, ag.id, e, emit)
	}
	if p.Steps++; p.Steps >= blockRound {
		a.endRound(p)
	}
}

// addToMixed adds a step to the block of its group.
func (a *Assembler) addToMixed(g *group, e *ingest.Event, emit func(*ingest.Unit)) {
	if g.Block == nil {
		g.Block = &tally{}
	}
	if u := g.Block.blockWith(e, a.names, false); u != nil {
		u.Mixed, u.Shown = true, g.policy.stepwise
		a.emit(u, g, "", e, emit)
	}
}

// blockWith adds the next step to a block. It returns the unit of the block if it is full, otherwise nil. keeps is
// whether to keep steps individually, for blocks of a single agent. The first step of an episode is never part of a
// block.
func (t *tally) blockWith(e *ingest.Event, n *names, keeps bool) *ingest.Unit {
	if t.Steps == 0 {
		t.begin(e)
	}
	t.add(e, n)
	if keeps {
		t.keep(e)
	}
	if t.Steps < BlockSteps {
		return nil
	}
	u := t.unit(ingest.EndBlock)
	u.HasReturn, u.Return = false, 0
	if u.Steps != nil {
		for i := range u.Steps.At {
			u.Steps.At[i]++
		}
	}
	t.Steps = 0
	return u
}

// endRound drops the unfinished blocks of agents that took no step in this round. If too many steps are lost this way,
// it switches the policy to blocks that mix all agents.
func (a *Assembler) endRound(p *policy) {
	for _, ag := range a.agents {
		if ag.group.policy == p && ag.round < p.Round {
			ag.giveUp()
		}
	}
	if p.Mixed = float64(p.Lost) > mixedShare*float64(p.Steps); p.Mixed {
		for _, ag := range a.agents {
			if ag.group.policy == p {
				ag.block = nil
			}
		}
	}
	p.Round, p.Steps, p.Lost = p.Round+1, 0, 0
}

// giveUp drops the agent's unfinished block, and counts its steps as lost.
func (ag *agent) giveUp() {
	if ag.block != nil {
		ag.group.policy.Lost += ag.block.Steps
		ag.block = nil
	}
}
