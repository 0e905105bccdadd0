package assemble

import (
	stdlist "container/list"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The events that follow after an episode was given up are not an episode: they would pass for a short one with a small
// return. So the assembler remembers given-up episodes until their ends arrive, at most as many as may be open. For a
// policy that has lost more than that, step numbers decide: an episode does not begin in the middle.

// lostEpisode is an episode that was given up and whose end has not arrived.
type lostEpisode struct {
	Key  uint64 // hash of its key
	Step int64  // its last step, -1 without one
	TS   int64  // of its last event, 0 without one

	policy *policy
}

// lostList is a list of *lostEpisode.
type lostList = stdlist.List

// lostEpisodes finds lost episodes by key. When it is full, the policy that has the most forgets its oldest.
type lostEpisodes struct {
	most   int
	places map[uint64]*stdlist.Element // in the lists of their policies
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
	if len(l.places) >= l.most { // before adding e, which must be found right after
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

// lose closes an episode without a unit and remembers it, so that its remaining events do not pass for an episode.
func (a *Assembler) lose(ep *episode) {
	if a.cfg.Dropped != nil {
		a.cfg.Dropped(ep.First)
	}
	ep.agent.group.Endings.lost(ep)
	p := ep.agent.group.policy
	a.lost.add(&lostEpisode{Key: hash([]byte(ep.key)), Step: ep.step, TS: ep.EndTS, policy: p})
	a.close(ep)
}

// isRest reports whether an event that matches no open episode belongs to one whose beginning is missing.
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

// begun records the step with which an episode of the policy began.
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

// beginsLate reports whether the step number places an event in the middle of an episode. It is true only for a policy
// that has lost more episodes than can be remembered, and whose episodes nearly all began with the same step.
func (p *policy) beginsLate(e *ingest.Event) bool {
	return p.Forgetful && e.Step+1 > p.Least && isStep(e) && p.AtLeast > 0 && 10*p.AtLeast >= 9*p.Begun
}
