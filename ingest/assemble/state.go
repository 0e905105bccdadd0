package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const stateVersion = 4

// state is what a snapshot holds.
type state struct {
	Policies []*policy // by name
	Groups   []*group  // by key
	Agents   []agentState
	Recent   []ended        // oldest first
	Episodes []episodeState // in the order in which they began
}

type agentState struct {
	_            struct{} `cbor:",toarray"`
	Group        int      // place in the head
	ID           string
	Events, Most int64
	Block        *tally
	Round        int64
}

type episodeState struct {
	_          struct{} `cbor:",toarray"`
	Agent      int      // place in the head
	ID         string
	Step, Seen int64
	Tally      *tally
}

// Snapshot writes everything that the units of later events depend on. The same state gives the same bytes.
func (a *Assembler) Snapshot(w io.Writer) error {
	if err := ingest.WriteState(w, stateVersion, a.state()); err != nil {
		return fmt.Errorf("writing the state of open episodes: %w", err)
	}
	return nil
}

func (a *Assembler) state() *state {
	h := &state{Recent: a.recent.oldestFirst(), Episodes: make([]episodeState, 0, len(a.open))}
	groups, agents := map[*group]int{}, map[*agent]int{}
	for _, name := range slices.Sorted(maps.Keys(a.policies)) {
		h.Policies = append(h.Policies, a.policies[name])
	}
	for _, key := range slices.Sorted(maps.Keys(a.groups)) {
		groups[a.groups[key]] = len(h.Groups)
		h.Groups = append(h.Groups, a.groups[key])
	}
	for ep := a.starts.front; ep != nil; ep = ep.links[byStart].after {
		ag := ep.agent
		if _, ok := agents[ag]; !ok {
			agents[ag] = len(h.Agents)
			h.Agents = append(h.Agents, agentState{
				Group: groups[ag.group], ID: ag.id, Events: ag.events, Most: ag.most, Block: ag.block, Round: ag.round,
			})
		}
		h.Episodes = append(h.Episodes, episodeState{Agent: agents[ag], ID: ep.id, Step: ep.step, Seen: ep.seen, Tally: &ep.tally})
	}
	return h
}

// Restore replaces the assembler's state by that of a snapshot: the same events then give the same units as if there
// had been no restart. Where the configuration divides a policy in another way than then, its open episodes are dropped
// and counted. r must end with the snapshot. After an error the assembler is empty.
func (a *Assembler) Restore(r io.Reader) error {
	a.metrics.open.Sub(float64(len(a.open)))
	a.reset()
	if err := a.restore(r); err != nil {
		a.metrics.open.Sub(float64(len(a.open)))
		a.reset()
		return fmt.Errorf("restoring open episodes: %w", err)
	}
	return nil
}

func (a *Assembler) restore(r io.Reader) error {
	var h state
	if err := ingest.ReadState(r, stateVersion, &h); err != nil {
		return err
	}
	agents, err := a.restoreHead(&h)
	if err != nil {
		return err
	}
	for i := range h.Episodes {
		if err := a.restoreEpisode(&h.Episodes[i], agents); err != nil {
			return err
		}
	}
	a.restoreOrder()
	return nil
}

var errInconsistent = errors.New("the snapshot contradicts itself")

// restoreHead gives the agents in the order of the head, nil for those whose group is no more.
func (a *Assembler) restoreHead(h *state) ([]*agent, error) {
	if slices.Contains(h.Policies, nil) || slices.Contains(h.Groups, nil) {
		return nil, errInconsistent
	}
	for _, p := range h.Policies {
		p.divideBy(groupLabels(a.cfg.GroupBy(p.Name)))
		a.policies[p.Name] = p
	}
	for _, g := range h.Groups {
		if g.policy = a.policies[g.Group.Policy]; g.policy != nil && g.Shadow {
			g.policy = g.policy.InShadow
		}
		if g.policy == nil || g.Block != nil && !g.Block.restored() {
			return nil, errInconsistent
		}
		if divides(g.policy.by, g.Group) {
			a.groups[g.Key] = g
		}
	}
	for _, e := range h.Recent {
		a.recent.add(e)
	}
	agents := make([]*agent, len(h.Agents))
	for i, s := range h.Agents {
		if s.Group < 0 || s.Group >= len(h.Groups) || s.Block != nil && !s.Block.restored() {
			return nil, errInconsistent
		}
		if g := a.groups[h.Groups[s.Group].Key]; g != nil {
			agents[i] = s.agent(g)
		}
	}
	return agents, nil
}

func (s agentState) agent(g *group) *agent {
	key := string(appendPart([]byte(g.Key), s.ID))
	return &agent{
		key: key, id: key[len(key)-len(s.ID):], group: g, events: s.Events, most: s.Most,
		idle: list{which: byUse}, block: s.Block, round: s.Round,
	}
}

// divides reports whether a group has the labels that its policy is divided by.
func divides(by []groupLabel, g ingest.Group) bool {
	return slices.EqualFunc(by, g.Labels(), func(l groupLabel, has ingest.Label) bool { return l.name == has.Name })
}

func (a *Assembler) restoreEpisode(s *episodeState, agents []*agent) error {
	if s.Agent < 0 || s.Agent >= len(agents) {
		return errInconsistent
	}
	ag := agents[s.Agent]
	if ag == nil {
		a.metrics.dropped.Inc()
		return nil
	}
	key := string(appendPart([]byte(ag.key), s.ID))
	if a.open[key] != nil || s.Tally == nil || !s.Tally.restored() {
		return errInconsistent
	}
	a.agents[ag.key] = ag
	a.insert(&episode{
		tally: *s.Tally, key: key, id: key[len(key)-len(s.ID):], step: s.Step, seen: s.Seen, agent: ag,
	})
	if len(a.open) > a.cfg.MaxOpen {
		a.drop(a.starts.front)
	}
	return nil
}

// restoreOrder puts the episodes of each agent in order of use.
func (a *Assembler) restoreOrder() {
	open := slices.Collect(maps.Values(a.open))
	slices.SortFunc(open, func(x, y *episode) int { return cmp.Compare(x.seen, y.seen) })
	for _, ep := range open {
		ep.agent.idle.toBack(ep)
	}
}
