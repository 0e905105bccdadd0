package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// addToBlock folds a step into its agent's block and emits the block when it is full. The step also stays in its open
// episode, which is complete if it ends after all.
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

// addToMixed folds a step into the block of its group.
func (a *Assembler) addToMixed(g *group, e *ingest.Event, emit func(*ingest.Unit)) {
	if g.Block == nil {
		g.Block = &tally{}
	}
	if u := g.Block.blockWith(e, a.names, false); u != nil {
		u.Mixed, u.Shown = true, g.policy.stepwise
		a.emit(u, g, "", e, emit)
	}
}

// blockWith folds in the next step of a block, which keeps its steps one by one if these are of one agent. It returns the
// block when that is full, else nil. No step of a block is the first one of an episode.
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

// endRound gives up the blocks of agents that took no step in this round. If that loses too many steps, it switches the
// policy to blocks of all agents.
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

// giveUp drops the agent's unfinished block and counts its steps as lost.
func (ag *agent) giveUp() {
	if ag.block != nil {
		ag.group.policy.Lost += ag.block.Steps
		ag.block = nil
	}
}
