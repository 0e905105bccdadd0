package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// Snapshot writes all state that affects the units of later events. The same state always produces the same bytes.
func (a *Assembler) Snapshot(w io.Writer) error { return writeState(w, a.state()) }

func writeState(w io.Writer, h *stateWire) error {
	part, err := stateFormat.Encode(h)
	if err == nil {
		_, err = w.Write(part)
	}
	if err != nil {
		return fmt.Errorf("write the state of open episodes: %w", err)
	}
	return nil
}

func (a *Assembler) state() *stateWire {
	h := &stateWire{
		Recent: saved.Each(a.recent.oldestFirst(), wireOfEnded), Episodes: make([]episodeWire, 0, len(a.open)), Events: a.events, Searched: a.searched,
	}
	groups, agents := map[*group]int{}, map[*agent]int{}
	for _, name := range slices.Sorted(maps.Keys(a.policies)) {
		p := a.policies[name]
		h.Policies = append(h.Policies, p.wire())
		h.Lost = append(h.Lost, p.lostEpisodes()...)
	}
	for _, key := range slices.Sorted(maps.Keys(a.groups)) {
		groups[a.groups[key]] = len(h.Groups)
		h.Groups = append(h.Groups, a.groups[key].wire())
	}
	for ep := a.starts.front; ep != nil; ep = ep.links[byStart].after {
		ag := ep.agent
		if _, ok := agents[ag]; !ok {
			agents[ag] = len(h.Agents)
			h.Agents = append(h.Agents, ag.wire(groups[ag.group]))
		}
		if ep.rest {
			h.Rests = append(h.Rests, len(h.Episodes))
		}
		h.Episodes = append(h.Episodes, ep.wire(agents[ag]))
	}
	return h
}

// Restore replaces the assembler's state with a snapshot. Later events then produce the same units as without a
// restart. If the configuration now divides a policy differently, its open episodes are dropped and counted. r must end
// with the snapshot. After an error, the assembler is empty.
func (a *Assembler) Restore(r io.Reader) error {
	a.metrics.open.Sub(float64(len(a.open)))
	a.reset()
	if err := a.restore(r); err != nil {
		a.metrics.open.Sub(float64(len(a.open)))
		a.reset()
		return fmt.Errorf("restore open episodes: %w", err)
	}
	return nil
}

func (a *Assembler) restore(r io.Reader) error {
	part, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	h, err := stateFormat.Decode(part)
	if err != nil {
		return err
	}
	agents, err := a.restoreHead(h)
	if err != nil {
		return err
	}
	rests := map[int]bool{}
	for _, place := range h.Rests {
		rests[place] = true
	}
	for i := range h.Episodes {
		if err := a.restoreEpisode(&h.Episodes[i], agents, rests[i]); err != nil {
			return err
		}
	}
	if err := a.restoreLost(h.Lost); err != nil {
		return err
	}
	a.restoreOrder()
	return nil
}

// lostEpisodes returns the policy's lost episodes, including those of InShadow.
func (p *policy) lostEpisodes() (out []*lostWire) {
	for at := p.lost.Front(); at != nil; at = at.Next() {
		e := at.Value.(*lostEpisode)
		out = append(out, &lostWire{Key: e.Key, Step: e.Step, TS: e.TS, Policy: p.Name, Shadow: p.shadow})
	}
	if p.InShadow != nil {
		out = append(out, p.InShadow.lostEpisodes()...)
	}
	return out
}

// restoreLost restores the lost episodes of each policy.
func (a *Assembler) restoreLost(lost []*lostWire) error {
	for _, e := range lost {
		if e == nil {
			return errInconsistent
		}
		p := a.policies[e.Policy]
		if p != nil && e.Shadow {
			p = p.InShadow
		}
		if p != nil { // otherwise, it is no longer watched
			a.lost.add(&lostEpisode{Key: e.Key, Step: e.Step, TS: e.TS, policy: p})
		}
	}
	return nil
}

var errInconsistent = errors.New("the snapshot is inconsistent")

// restoreHead restores the policies, groups and agents. It returns the agents in the order of the snapshot, nil for
// those whose group no longer exists.
func (a *Assembler) restoreHead(h *stateWire) ([]*agent, error) {
	if slices.Contains(h.Policies, nil) || slices.Contains(h.Groups, nil) {
		return nil, errInconsistent
	}
	a.events, a.searched = h.Events, h.Searched
	for _, w := range h.Policies {
		p := w.live()
		if a.ignored.has(p.Name, a.cfg.Watched) {
			continue
		}
		p.divideBy(groupLabels(a.cfg.GroupBy(p.Name)))
		p.splitBy(a.cfg.SplitBy(p.Name))
		p.stepwise = a.cfg.Stepwise(p.Name)
		a.policies[p.Name] = p
	}
	for _, w := range h.Groups {
		g := w.live()
		if a.ignored.has(g.Group.Policy, a.cfg.Watched) {
			continue
		}
		if g.policy = a.policies[g.Group.Policy]; g.policy != nil && g.Shadow {
			g.policy = g.policy.InShadow
		}
		if g.policy == nil || g.Block != nil && !g.Block.restored() {
			return nil, errInconsistent
		}
		if len(g.Endings.Waits) > waitSample || g.Endings.Next < 0 || g.Endings.Next >= waitSample {
			return nil, errInconsistent
		}
		if divides(g.policy.by, g.Group) {
			a.addGroup(g)
		}
	}
	for _, w := range h.Recent {
		e := w.live()
		if !e.Came.valid() {
			return nil, errInconsistent
		}
		a.recent.add(e)
	}
	agents := make([]*agent, len(h.Agents))
	for i, w := range h.Agents {
		if w.Group < 0 || w.Group >= len(h.Groups) {
			return nil, errInconsistent
		}
		if a.elsewhere != nil && a.elsewhere(h.Groups[w.Group].Group.Policy) {
			agents[i] = &agent{} // without a group, because another assembler restores it
		}
		if g := a.groups[h.Groups[w.Group].Key]; g != nil {
			agents[i] = w.live(g)
			if block := agents[i].block; block != nil && !block.restored() {
				return nil, errInconsistent
			}
		}
	}
	return agents, nil
}

// divides reports whether the labels of a group are exactly those in by.
func divides(by []groupLabel, g ingest.Group) bool {
	return slices.EqualFunc(by, g.Labels(), func(l groupLabel, has ingest.Label) bool { return l.name == has.Name })
}

func (a *Assembler) restoreEpisode(w *episodeWire, agents []*agent, rest bool) error {
	if w.Agent < 0 || w.Agent >= len(agents) {
		return errInconsistent
	}
	ag := agents[w.Agent]
	if ag == nil {
		a.metrics.dropped.Inc()
	}
	if ag == nil || ag.group == nil {
		return nil
	}
	key := string(appendPart([]byte(ag.key), w.ID))
	sums, came := w.Tally.live(), arrived(w.Came)
	if a.open[key] != nil || sums == nil || !sums.restored() || !came.valid() {
		return errInconsistent
	}
	a.agents[ag.key] = ag
	a.insert(&episode{
		tally: *sums, key: key, id: key[len(key)-len(w.ID):], step: w.Step, came: came, seen: w.Seen, ending: ending(w.Ending), agent: ag,
		rest: rest,
	})
	a.keepToMost(nil)
	return nil
}

// restoreOrder sorts the episodes of each agent and of each group by last use.
func (a *Assembler) restoreOrder() {
	open := slices.Collect(maps.Values(a.open))
	slices.SortFunc(open, func(x, y *episode) int { return cmp.Compare(x.seen, y.seen) })
	for _, ep := range open {
		ep.agent.idle.toBack(ep)
	}
	slices.SortFunc(open, func(x, y *episode) int { return cmp.Compare(x.Turn, y.Turn) })
	for _, ep := range open {
		if !ep.Overdue {
			ep.agent.group.Endings.idle.toBack(ep)
		}
	}
}
