// Package assemble makes units of the events of one partition: finished episodes, and blocks of steps where no episode
// ends. Steps are summed up where they are read; what is kept of an open episode does not grow with its length.
package assemble

import (
	"encoding/binary"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	defaultMaxOpen      = 100_000
	defaultLengthSample = 500
	maxGroups           = 20_000 // policies as well; events of others are ignored and counted
	maxSpare            = 1024   // episodes kept to be used again
)

// Config says how events belong together.
type Config struct {
	// GroupBy gives the labels that divide a policy into groups: "env", or "labels.x" for the label x of its events,
	// which the group calls "label_x". It must give the same answer as long as the assembler lives. nil means "env"
	// for every policy.
	GroupBy func(policy string) []string
	// MaxOpen is how many episodes may be open at a time; one more drops the one that began first. 0 means 100,000.
	MaxOpen int
	// LengthSample is how many episodes of a group must have ended before others can be too old. 0 means 500.
	LengthSample int
	// Dropped is told of every episode that is given up without a unit, abandoned or one too many, by the place of its
	// first event. It may be nil.
	Dropped func(first ingest.Position)
}

// Assembler folds the events of one partition into units. It is for one goroutine.
//
// An episode is known by its group, agent_id and episode_id, and by whether it is in shadow. It ends at terminated or truncated, with an episode
// record, or, without an episode_id, before a step that does not increase. With an episode_id such a step is a
// duplicate. An episode that is idle while its agent goes through ten lengths of a long episode of its group is
// abandoned. What ends, is dropped or is ignored depends on the events alone, and is counted.
type Assembler struct {
	cfg     Config
	metrics *Metrics
	names   *names

	policies map[string]*policy
	last     *policy // of the event before
	groups   map[string]*group
	agents   map[string]*agent
	open     map[string]*episode
	starts   list
	recent   *memory
	spare    []*episode

	key address // of the event being folded
	ord int32   // units that it has ended
}

// New makes an assembler that has seen nothing.
func New(cfg Config, m *Metrics) *Assembler {
	if cfg.GroupBy == nil {
		cfg.GroupBy = func(string) []string { return []string{"env"} }
	}
	if cfg.MaxOpen <= 0 {
		cfg.MaxOpen = defaultMaxOpen
	}
	if cfg.LengthSample <= 0 {
		cfg.LengthSample = defaultLengthSample
	}
	a := &Assembler{cfg: cfg, metrics: m, names: newNames()}
	a.reset()
	return a
}

func (a *Assembler) reset() {
	a.policies, a.last = map[string]*policy{}, nil
	a.groups, a.agents, a.open = map[string]*group{}, map[string]*agent{}, map[string]*episode{}
	a.starts, a.recent = list{which: byStart}, newMemory()
}

// Close takes the assembler's open episodes out of the metrics. It may not be used afterwards.
func (a *Assembler) Close() {
	a.metrics.open.Sub(float64(len(a.open)))
	a.reset()
}

// Open gives the number of open episodes.
func (a *Assembler) Open() int { return len(a.open) }

// address is the key of an episode. The group's key and the agent's are its beginnings.
type address struct {
	bytes          []byte
	group, agent   int // where the keys of the group and of the agent end
	agentAt, ownAt int // where the texts of agent_id and episode_id begin
}

// set writes the parts with their lengths before them, so that no two episodes share a key whatever their names hold.
func (k *address) set(p *policy, e *ingest.Event) {
	k.bytes = appendPart(k.bytes[:0], p.Name)
	for _, l := range p.by {
		k.bytes = appendPart(k.bytes, l.of(e))
	}
	if p.shadow {
		k.bytes = appendPart(k.bytes, shadowLabel)
	}
	k.group = len(k.bytes)
	k.bytes = appendPart(k.bytes, e.AgentID)
	k.agent = len(k.bytes)
	k.agentAt = k.agent - len(e.AgentID)
	k.bytes = appendPart(k.bytes, e.EpisodeID)
	k.ownAt = len(k.bytes) - len(e.EpisodeID)
}

func appendPart(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// Fold takes in the next event of the partition and hands the units that it ends to emit, at most two, which then
// belong to the receiver. Of the event only interned strings are kept. A step of an episode that is open takes one
// look into a map and no memory.
//
// Fold gives the place of the first event of the episode that the event has become a part of, and false where it was
// ignored. The episode may have ended with it.
func (a *Assembler) Fold(e *ingest.Event, emit func(*ingest.Unit)) (first ingest.Position, taken bool) {
	p := a.policy(e.Policy)
	if p == nil {
		a.metrics.noGroup.Inc()
		return first, false
	}
	p = p.of(e)
	p.count()
	a.ord = 0
	a.key.set(p, e)
	ep := a.episodeOf(p, e, emit)
	if ep == nil {
		return first, false
	}
	first = ep.First
	a.add(ep, e)
	if end, ok := endOf(e); ok {
		a.end(ep, end, e, emit)
		return first, true
	}
	if len(a.open) > a.cfg.MaxOpen {
		a.drop(a.starts.front)
	}
	switch {
	case p.Blocks && p.Mixed:
		a.addToMixed(ep.agent.group, e, emit)
	case p.Blocks:
		a.addToBlock(ep.agent, e, emit)
	default:
		ep.agent.block, ep.agent.group.Block = nil, nil // or a later block would begin with steps from before an end
	}
	return first, true
}

// episodeOf finds or opens the episode of an event, and ends the one before it that the event shows to be over. nil
// means that the event is ignored.
func (a *Assembler) episodeOf(p *policy, e *ingest.Event, emit func(*ingest.Unit)) *episode {
	ep := a.open[string(a.key.bytes)]
	switch {
	case ep == nil && a.afterItsEnd(e):
		return nil
	case ep == nil:
		return a.begin(p, e)
	case !repeats(ep, e):
		return ep
	case e.EpisodeID != "":
		a.duplicate(ep.agent)
		return nil
	default:
		a.end(ep, ingest.EndStep, e, emit)
		return a.begin(p, e)
	}
}

// policy finds what is remembered of a policy. nil means that there are too many already.
func (a *Assembler) policy(name string) *policy {
	if a.last != nil && a.last.Name == name {
		return a.last
	}
	p := a.policies[name]
	if p == nil {
		if len(a.policies) >= maxGroups {
			return nil
		}
		name = strings.Clone(name)
		p = &policy{Name: name, by: groupLabels(a.cfg.GroupBy(name))}
		a.policies[name] = p
	}
	a.last = p
	return p
}

// repeats reports whether a step does not increase.
func repeats(ep *episode, e *ingest.Event) bool {
	return e.Step >= 0 && ep.step >= 0 && e.Step <= ep.step && isStep(e)
}

func endOf(e *ingest.Event) (ingest.End, bool) {
	switch {
	case e.Terminated:
		return ingest.EndTerminated, true
	case e.Truncated:
		return ingest.EndTruncated, true
	case e.HasEpisode:
		return ingest.EndSummary, true
	}
	return 0, false
}

// afterItsEnd recognises what comes after its episode has ended: the summary that the end did not carry, and steps and
// summaries that were delivered again. An event that is later than the end by its clock uses the id anew, as programs
// do that count from 0 whenever they start.
func (a *Assembler) afterItsEnd(e *ingest.Event) bool {
	key := hash(a.key.bytes)
	was := a.recent.find(key)
	if was == nil {
		return false
	}
	step := isStep(e)
	if !step && was.Owed {
		a.metrics.lateSummary.Inc()
		was.Owed, was.Summed, was.TS = false, true, max(was.TS, e.TS)
		return true
	}
	again := e.EpisodeID != "" && (e.TS == 0 || e.TS <= was.TS || was.TS == 0)
	if again && !step && !was.Summed {
		a.metrics.lateSummary.Inc()
		return true
	}
	if again && (!step || e.Step >= 0 && e.Step <= was.Step) {
		a.duplicate(a.agents[string(a.key.bytes[:a.key.agent])])
		return true
	}
	a.recent.forget(key)
	return false
}

// duplicate takes note of the event being folded, which had come before. What the agent is at tells of it, or the next
// unit of the group where the agent, which is nil then, is at nothing.
func (a *Assembler) duplicate(ag *agent) {
	a.metrics.duplicate.Inc()
	if ag == nil {
		if g := a.groups[string(a.key.bytes[:a.key.group])]; g != nil {
			g.Duplicates++
		}
		return
	}
	ag.idle.back.Duplicates++
	if ag.block != nil {
		ag.block.Duplicates++
	} else if ag.group.Block != nil {
		ag.group.Block.Duplicates++
	}
}

// begin opens the episode of an event. nil means that there are too many groups already.
func (a *Assembler) begin(p *policy, e *ingest.Event) *episode {
	g := a.group(p, e)
	if g == nil {
		a.metrics.noGroup.Inc()
		return nil
	}
	ep := a.take()
	ep.key = string(a.key.bytes)
	ep.id = ep.key[a.key.ownAt:]
	ep.step = -1
	ep.agent = a.agentOf(g, ep.key)
	ep.begin(e)
	ep.Early = g.Longest == 0
	a.insert(ep)
	return ep
}

func (a *Assembler) group(p *policy, e *ingest.Event) *group {
	if g := a.groups[string(a.key.bytes[:a.key.group])]; g != nil {
		return g
	}
	if len(a.groups) >= maxGroups {
		return nil
	}
	labels := make([]ingest.Label, len(p.by))
	for i, l := range p.by {
		labels[i] = ingest.Label{Name: l.name, Value: l.of(e)}
	}
	g := &group{Key: string(a.key.bytes[:a.key.group]), Group: ingest.NewGroup(p.Name, labels...), Shadow: p.shadow, policy: p}
	a.groups[g.Key] = g
	return g
}

// agentOf finds or keeps the agent of the event being folded. key is a text of the event's key that may be kept.
func (a *Assembler) agentOf(g *group, key string) *agent {
	key = key[:a.key.agent]
	ag := a.agents[key]
	if ag == nil {
		ag = &agent{key: key, id: key[a.key.agentAt:], group: g, idle: list{which: byUse}}
		a.agents[key] = ag
	}
	return ag
}

func (a *Assembler) take() *episode {
	if n := len(a.spare); n > 0 {
		ep := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return ep
	}
	return &episode{}
}

func (a *Assembler) insert(ep *episode) {
	a.open[ep.key] = ep
	a.starts.push(ep)
	ep.agent.idle.push(ep)
	ep.agent.open++
	ep.agent.most = max(ep.agent.most, ep.agent.open)
	a.metrics.open.Inc()
}

// close forgets an open episode, and its agent if that was its last one.
func (a *Assembler) close(ep *episode) {
	ag := ep.agent
	delete(a.open, ep.key)
	a.starts.remove(ep)
	ag.idle.remove(ep)
	ag.open--
	if ag.open == 0 {
		ag.giveUp()
		delete(a.agents, ag.key)
	}
	a.metrics.open.Dec()
	ep.key, ep.id, ep.agent = "", "", nil
	if len(a.spare) < maxSpare {
		a.spare = append(a.spare, ep)
	}
}

// lose closes an episode of which no unit is made.
func (a *Assembler) lose(ep *episode) {
	if a.cfg.Dropped != nil {
		a.cfg.Dropped(ep.First)
	}
	a.close(ep)
}

func (a *Assembler) drop(ep *episode) {
	a.metrics.dropped.Inc()
	a.lose(ep)
}

// add folds an event into its open episode, and drops episodes of the agent that it shows to be abandoned.
func (a *Assembler) add(ep *episode, e *ingest.Event) {
	if ignored := ep.add(e, a.names); ignored > 0 {
		a.metrics.noSignal.Add(float64(ignored))
	}
	if e.Step >= 0 {
		ep.step = e.Step
	}
	ag := ep.agent
	ag.events++
	ep.seen = ag.events
	ag.idle.toBack(ep)
	for ag.abandons(ag.idle.front) {
		a.metrics.abandoned.Inc()
		if !ag.idle.front.Early {
			ag.group.Abandoned++
		}
		a.lose(ag.idle.front)
	}
}

// end makes a unit of an open episode. e is the event at which it ends, which is not part of it at an EndStep.
func (a *Assembler) end(ep *episode, end ingest.End, e *ingest.Event, emit func(*ingest.Unit)) {
	u := ep.unit(end)
	u.Episode = ep.id
	g := ep.agent.group
	g.ended(u.Length, a.cfg.LengthSample)
	g.policy.ended()
	owed := !ep.HasSummary && end != ingest.EndStep
	if ep.id != "" || owed {
		a.recent.add(ended{
			Key: hash(a.key.bytes), Step: ep.step, TS: ep.EndTS, Owed: owed, Summed: end == ingest.EndSummary,
		})
	}
	a.emit(u, g, ep.agent.id, e, emit)
	a.close(ep)
}

func (a *Assembler) emit(u *ingest.Unit, g *group, agent string, e *ingest.Event, emit func(*ingest.Unit)) {
	u.Group, u.Shadow, u.Agent = g.Group, g.Shadow, agent
	u.Duplicates += g.Duplicates
	u.Abandoned = g.Abandoned
	g.Duplicates, g.Abandoned = 0, 0
	u.Pos, u.Ord = e.Pos, a.ord
	a.ord++
	a.metrics.ends[u.End].Inc()
	emit(u)
}
