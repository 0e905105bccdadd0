package assemble

import (
	stdlist "container/list"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The remaining events of a dropped episode are not an episode. They would look like a short one with a small return.
// Therefore, the assembler remembers dropped episodes until their ends arrive, at most as many as may be open. If a
// policy has lost more than that, step numbers decide, because an episode does not begin in the middle.

// lostEpisode is a dropped episode whose end has not arrived.
type lostEpisode struct {
	Key  uint64 // hash of its key
	Step int64  // last step, or -1 if it has none
	TS   int64  // time of its last event, or 0 if it has none

	policy *policy
}

// lostList is a list of *lostEpisode values.
type lostList = stdlist.List

// lostEpisodes finds lost episodes by key. When it is full, the oldest lost episode of the policy with the most is
// forgotten.
type lostEpisodes struct {
	most   int
	places map[uint64]*stdlist.Element // elements in the lists of their policies
	shares ranking
}

func newLostEpisodes(most int) *lostEpisodes {
	return &lostEpisodes{
		most: most, places: map[uint64]*stdlist.Element{}, shares: ranking{of: func(p *policy) *share { return &p.lostShare }},
	}
}

func (l *lostEpisodes) find(key uint64) *lostEpisode {
	if at := l.places[key]; at != nil {
		return at.Value.(*lostEpisode)
	}
	return nil
}

func (l *lostEpisodes) add(e *lostEpisode) {
	l.forget(e.Key)
	if len(l.places) >= l.most { // before adding e, which must be found immediately afterwards
		p := l.shares.largest()
		p.Forgetful = true
		l.forget(p.lost.Front().Value.(*lostEpisode).Key)
	}
	l.places[e.Key] = e.policy.lost.PushBack(e)
	l.shares.add(e.policy)
}

func (l *lostEpisodes) forget(key uint64) {
	at := l.places[key]
	if at == nil {
		return
	}
	p := at.Value.(*lostEpisode).policy
	p.lost.Remove(at)
	l.shares.sub(p)
	delete(l.places, key)
}

// forgetPolicy removes all lost episodes of a policy.
func (l *lostEpisodes) forgetPolicy(p *policy) {
	for at := p.lost.Front(); at != nil; at = p.lost.Front() {
		l.forget(at.Value.(*lostEpisode).Key)
	}
	l.shares.forget(p)
}

// lose closes an episode without a unit, and remembers it so that its remaining events are not taken for an episode.
func (a *Assembler) lose(ep *episode) {
	if a.cfg.Dropped != nil {
		a.cfg.Dropped(ep.First)
	}
	ep.agent.group.Endings.lost(ep)
	p := ep.agent.group.policy
	a.lost.add(&lostEpisode{Key: ingest.FNV1a(ingest.FNVBasis, []byte(ep.key)), Step: ep.step, TS: ep.EndTS, policy: p})
	a.close(ep)
}

// isRest reports whether an event without an open episode belongs to an episode whose beginning is missing.
func (a *Assembler) isRest(p *policy, e *ingest.Event) bool {
	key := a.key.hash()
	was := a.lost.find(key)
	if was == nil {
		if !p.beginsLate(e) {
			return false
		}
		was = &lostEpisode{Key: key, Step: -1, policy: p}
		a.lost.add(was)
	}
	if was.Step >= 0 && e.Step >= 0 && e.Step <= was.Step && isStep(e) {
		if again := e.TS == 0 || was.TS == 0 || e.TS <= was.TS; e.EpisodeID == "" || !again {
			a.lost.forget(key) // another episode has begun
			return false
		}
		return true
	}
	was.Step, was.TS = max(was.Step, e.Step), max(was.TS, e.TS)
	return true
}

// ignoreRest counts an event of an episode whose beginning is missing, and ends the episode if the event does.
func (a *Assembler) ignoreRest(p *policy, e *ingest.Event) {
	a.metrics.rest.Inc()
	end, over := endOf(e)
	if !over {
		return
	}
	key := a.key.hash()
	was := a.lost.find(key)
	a.recent.add(ended{Key: key, Step: was.Step, TS: was.TS, Owed: !e.HasEpisode, Summed: end == ingest.EndSummary})
	a.lost.forget(key)
	p.ended()
}

// begun records the first step of an episode of the policy.
func (p *policy) begun(step int64) {
	if step < 0 || p.Forgetful {
		return
	}
	if p.Least == 0 || step+1 < p.Least {
		p.Least, p.AtLeast, p.Begun = step+1, 0, 0
	}
	if p.Begun++; step+1 == p.Least {
		p.AtLeast++
	}
}

// beginsLate reports whether the step number of an event is in the middle of an episode. It is true only if the policy
// has lost more episodes than can be remembered, and nearly all of its episodes began with the same step.
func (p *policy) beginsLate(e *ingest.Event) bool {
	return p.Forgetful && e.Step+1 > p.Least && isStep(e) && p.AtLeast > 0 && 10*p.AtLeast >= 9*p.Begun
}
