// Package assemble builds units from the events of one partition. Units are finished episodes or, for policies whose
// episodes do not end, blocks of steps. Steps are aggregated as they are read, so the state of an open episode does not
// grow with its length.
package assemble

import (
	"encoding/binary"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/intern"
)

const (
	defaultMaxOpen      = 100_000
	defaultLengthSample = 500
	defaultMaxGroups    = 20_000
	maxSpare            = 1024 // episodes kept for reuse
)

// Config configures an Assembler.
type Config struct {
	// GroupBy returns the labels that divide a policy into groups: "env", or "labels.x" for the event label x, which is
	// called "label_x" in the group. It must always return the same labels for a policy. nil means "env" for every policy.
	GroupBy func(policy string) []string
	// SplitBy returns the event labels that the units of a policy's episodes keep, in the form of GroupBy. It must always
	// return the same labels for a policy. nil means none.
	SplitBy func(policy string) []string
	// Stepwise reports whether each step of a policy is also emitted as a separate unit with EndOpen, before any unit that
	// it ends. It must always return the same result for a policy. nil means false for every policy.
	Stepwise func(policy string) bool
	// Watched reports whether a policy is monitored. Events of other policies are counted and leave no state. It must
	// always return the same result for a policy. nil means true for every policy.
	Watched func(policy string) bool
	// MaxOpen is the maximum number of open episodes. If it is exceeded, the oldest open episode of the policy with the
	// most open episodes is dropped. 0 means 100,000.
	MaxOpen int
	// MaxGroups is the maximum number of groups. 0 means 20,000.
	MaxGroups int
	// MaxPolicies is the maximum number of policies. 0 means the value of MaxGroups.
	MaxPolicies int
	// LengthSample is the number of episodes of a group that must end before any can be abandoned. 0 means 500.
	LengthSample int
	// Dropped, if not nil, is called for every episode that is abandoned or dropped without a unit, with the position of
	// its first event.
	Dropped func(first ingest.Position)
	// FollowRests treats the remaining events of a dropped episode as an episode that produces no unit, so that Dropped is
	// called when it ends. Otherwise, those events are ignored.
	FollowRests bool
}

// Assembler aggregates the events of one partition into units. It is not safe for concurrent use.
//
// A group, an agent_id, an episode_id and the shadow flag identify an episode. It ends with terminated, truncated or an
// episode record or, without an episode_id, before a step that does not increase. With an episode_id, such a step is
// either late, and still included, or a duplicate. A step after the end of its episode is skipped as late. An episode
// is abandoned if it stays idle while its agent sends ten times as many events as a long episode of its group has. Only
// the events determine which episodes end, are dropped or are ignored. Each case is counted.
//
// It is large because the rules for the ends of episodes share the open episodes and the counters.
type Assembler struct {
	cfg     Config
	metrics *Metrics
	over    *Over // nil if nothing is counted
	names   *names
	// elsewhere reports whether another assembler restores a policy of the snapshot. nil means false for every policy.
	elsewhere func(policy string) bool

	policies    map[string]*policy
	last        *policy // of the previous event
	groups      map[string]*group
	agents      map[string]*agent
	open        map[string]*episode
	starts      list
	shares      ranking // of open episodes
	recent      *memory
	lost        *lostEpisodes
	spare       []*episode
	spareAgents []*agent // without open episodes, kept for reuse
	ignored     unwatched
	events      int64 // of watched policies, so far
	searched    int64 // value of events at the last search for groups to expire

	key address // of the current event
	ord int32   // number of units that the current event has ended

	decision ingest.Decision // last decision that was passed on
	values   []float64       // reused memory for the values of decision
	texts    intern.Texts    // agents and episodes of whole episodes
}

// New returns an assembler without state.
func New(cfg Config, m *Metrics) *Assembler {
	if cfg.GroupBy == nil {
		cfg.GroupBy = func(string) []string { return []string{"env"} }
	}
	if cfg.SplitBy == nil {
		cfg.SplitBy = func(string) []string { return nil }
	}
	if cfg.Stepwise == nil {
		cfg.Stepwise = func(string) bool { return false }
	}
	if cfg.MaxGroups <= 0 {
		cfg.MaxGroups = defaultMaxGroups
	}
	if cfg.MaxPolicies <= 0 {
		cfg.MaxPolicies = cfg.MaxGroups
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
	a.starts, a.recent, a.lost = list{which: byStart}, newMemory(), newLostEpisodes(a.cfg.MaxOpen)
	a.shares = ranking{of: func(p *policy) *share { return &p.openShare }}
	a.events, a.searched = 0, 0
}

// Close removes the assembler's open episodes from the metrics. Do not use the assembler afterwards.
func (a *Assembler) Close() {
	a.metrics.open.Sub(float64(len(a.open)))
	a.reset()
}

// Open returns the number of open episodes.
func (a *Assembler) Open() int { return len(a.open) }

// address is the key of an episode. The keys of its group and its agent are prefixes of this key.
type address struct {
	bytes          []byte
	group, agent   int    // lengths of the prefixes for the group and the agent
	agentAt, ownAt int    // offsets of agent_id and episode_id
	in             *group // nil if it is not known yet, or if there is none
	sum            uint64
	summed         bool // whether sum is known
}

// set builds the key of an event's episode. Each part is preceded by its length, so no two episodes can have the same
// key.
func (k *address) set(p *policy, e *ingest.Event) {
	if k.in = p.recentFor(e); k.in != nil {
		k.bytes = append(k.bytes[:0], k.in.Key...)
	} else {
		k.setGroup(p, e)
	}
	k.group = len(k.bytes)
	k.bytes = appendPart(k.bytes, e.AgentID)
	k.agent = len(k.bytes)
	k.agentAt = k.agent - len(e.AgentID)
	k.bytes = appendPart(k.bytes, e.EpisodeID)
	k.ownAt = len(k.bytes) - len(e.EpisodeID)
	k.summed = false
}

// setGroup builds the key of an event's group.
func (k *address) setGroup(p *policy, e *ingest.Event) {
	k.bytes = appendPart(k.bytes[:0], p.Name)
	for _, l := range p.by {
		k.bytes = appendPart(k.bytes, l.of(e))
	}
	if p.shadow {
		k.bytes = appendPart(k.bytes, shadowLabel)
	}
}

// hash returns the hash of the key. It is computed only once.
func (k *address) hash() uint64 {
	if k.summed {
		return k.sum
	}
	if k.summed = true; k.in != nil {
		k.sum = ingest.FNV1a(k.in.sum, k.bytes[k.group:])
	} else {
		k.sum = ingest.FNV1a(ingest.FNVBasis, k.bytes)
	}
	return k.sum
}

func appendPart(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// partsOf returns the parts of the key of a group; nil if the key, which may come from a checkpoint, is damaged.
func partsOf(key string) (parts []string) {
	for len(key) > 0 {
		size, n := binary.Uvarint([]byte(key[:min(len(key), binary.MaxVarintLen64)]))
		if n <= 0 || size > uint64(len(key)-n) {
			return nil
		}
		end := n + int(size)
		parts, key = append(parts, key[n:end]), key[end:]
	}
	return parts
}

// Fold processes the next event of the partition. It passes the units that the event ends, at most two, to emit, which
// then owns them. For a Stepwise policy, it also passes a unit with the step. Fold retains only interned strings of the
// event. A step of an open episode takes one map lookup and no allocation, unless it is emitted as a unit.
//
// Fold returns the position of the first event of the episode that the event belongs to. taken is false if the event
// was ignored. The event may have ended that episode.
func (a *Assembler) Fold(e *ingest.Event, emit func(*ingest.Unit)) (first ingest.Position, taken bool) {
	return a.FoldApart(e, emit, nil)
}

// FoldApart is like Fold, but if decided is not nil, it passes most decisions to decided instead of emit. A decision is
// valid until decided returns.
func (a *Assembler) FoldApart(e *ingest.Event, emit func(*ingest.Unit), decided func(*ingest.Decision)) (first ingest.Position, taken bool) {
	p := a.policy(e.Policy)
	if p == nil {
		return first, false
	}
	a.events++
	p = p.of(e)
	p.count(e.TS)
	a.ord = 0
	a.key.set(p, e)
	ep, whole := a.episodeOf(p, e, emit)
	if whole {
		return a.foldWhole(p, e, emit, decided)
	}
	if ep == nil {
		return first, false
	}
	first = ep.First
	a.add(ep, e)
	if p.stepwise && isStep(e) {
		a.show(ep, e, emit, decided)
	}
	if end, ok := endOf(e); ok {
		a.end(ep, end, e, emit)
		return first, true
	}
	a.keepToMost(ep)
	switch {
	case p.Blocks && p.Mixed:
		a.addToMixed(ep.agent.group, e, emit)
	case p.Blocks:
		a.addToBlock(ep.agent, e, emit)
	default:
		ep.agent.block, ep.agent.group.Block = nil, nil // otherwise, a later block would begin with steps from before the end
	}
	return first, true
}

// episodeOf finds or opens the episode of an event, and ends the previous one if the event shows that it is over. It
// returns nil if the event is ignored, or if the event is a whole episode, which is never opened.
func (a *Assembler) episodeOf(p *policy, e *ingest.Event, emit func(*ingest.Unit)) (ep *episode, whole bool) {
	ep = a.open[string(a.key.bytes)]
	switch {
	case ep == nil && a.afterItsEnd(e):
		return nil, false
	case ep == nil:
		return a.beginOrIgnore(p, e)
	case !repeats(ep, e):
		return ep, false
	case e.EpisodeID == "":
		a.end(ep, ingest.EndStep, e, emit)
		return a.begin(p, e), false
	}
	switch ep.came.order(e.Step, ep.step) {
	case late:
		return ep, false
	case tooLate:
		a.late(ep.agent)
	default:
		a.duplicate(ep.agent)
	}
	return nil, false
}

// beginOrIgnore opens the episode of an event, unless the episode's beginning is missing or the event is a whole
// episode. If the policy is reported in blocks, its steps count in any case. An episode without its beginning is then
// also opened, but produces no unit when it ends.
func (a *Assembler) beginOrIgnore(p *policy, e *ingest.Event) (ep *episode, whole bool) {
	rest := a.isRest(p, e)
	if rest && !p.Blocks && !a.cfg.FollowRests {
		a.ignoreRest(p, e)
		return nil, false
	}
	if !rest && a.isWhole(e) {
		return nil, true
	}
	ep = a.begin(p, e)
	if ep != nil && rest {
		ep.rest = true
		a.lost.forget(a.key.hash())
	}
	return ep, false
}

// keepToMost drops one open episode if there are too many: the oldest of the policy with the most open episodes. If
// that one is inHand, which is the newest episode, the oldest of all is dropped instead.
func (a *Assembler) keepToMost(inHand *episode) {
	if len(a.open) <= a.cfg.MaxOpen {
		return
	}
	oldest := a.shares.largest().starts.front
	if oldest == inHand {
		oldest = a.starts.front
	}
	a.over.episode()
	a.drop(oldest)
}

// policy returns the state of a policy. It returns nil if the policy's events are ignored, and counts them.
func (a *Assembler) policy(name string) *policy {
	before := a.last
	if before != nil && before.Name == name {
		return before
	}
	if before != nil && before.next != nil && before.next.Name == name && !before.next.gone {
		a.last = before.next
		return a.last
	}
	p := a.policies[name]
	if p == nil {
		if a.ignored.has(name, a.cfg.Watched) {
			a.metrics.unmatched.Inc()
			return nil
		}
		if len(a.policies) >= a.cfg.MaxPolicies && !a.expire(name) {
			a.metrics.noGroup.Inc()
			a.over.policy()
			a.events++ // otherwise, no group would become idle while only such policies arrive
			return nil
		}
		p = newPolicy(strings.Clone(name), groupLabels(a.cfg.GroupBy(name)), false)
		p.split, p.stepwise = a.cfg.SplitBy(name), a.cfg.Stepwise(name)
		a.policies[p.Name] = p
	}
	if before != nil {
		before.next = p
	}
	a.last = p
	return p
}

// Watches reports whether the assembler has the state of any watched policy: an event of the policy has arrived, and
// the policy has not expired since.
func (a *Assembler) Watches() bool { return len(a.policies) > 0 }

// repeats reports whether an event is a step whose number is not greater than the last one.
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

// afterItsEnd reports whether an event follows the end of its episode. It may be a summary that did not come with the
// end, or a step or summary that is late or repeated. If the event's time is after the end, the episode ID is used
// again, for example by programs that count from 0 after every start.
func (a *Assembler) afterItsEnd(e *ingest.Event) bool {
	key := a.key.hash()
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
	twice := e.EpisodeID != "" && (e.TS == 0 || e.TS <= was.TS || was.TS == 0)
	if twice && !step && !was.Summed {
		a.metrics.lateSummary.Inc()
		return true
	}
	if twice && (!step || e.Step >= 0 && was.has(e)) {
		ag := a.agents[string(a.key.bytes[:a.key.agent])]
		if step && (e.Step > was.Step || was.Came.order(e.Step, was.Step) != repeated) {
			a.late(ag)
		} else {
			a.duplicate(ag)
		}
		return true
	}
	a.recent.forget(key)
	return false
}

// leftOut counts steps that were skipped as duplicates or as too late.
type leftOut struct {
	Duplicates, Late int64
}

func (l *leftOut) add(other leftOut) {
	l.Duplicates, l.Late = l.Duplicates+other.Duplicates, l.Late+other.Late
}

// duplicate counts the current event as one that has arrived before.
func (a *Assembler) duplicate(ag *agent) {
	a.metrics.duplicate.Inc()
	a.leaveOut(ag, leftOut{Duplicates: 1})
}

// late counts the current step as one that arrived after the end of its episode or too far behind the other steps.
func (a *Assembler) late(ag *agent) {
	a.metrics.late.Inc()
	a.leaveOut(ag, leftOut{Late: 1})
}

// leaveOut adds n to the agent's most recently used episode and to the current block. Without an agent, the next unit
// of the group reports it.
func (a *Assembler) leaveOut(ag *agent, n leftOut) {
	if ag == nil {
		if g := a.groups[string(a.key.bytes[:a.key.group])]; g != nil {
			g.LeftOut.add(n)
		}
		return
	}
	ag.idle.back.LeftOut.add(n)
	if ag.block != nil {
		ag.block.LeftOut.add(n)
	} else if ag.group.Block != nil {
		ag.group.Block.LeftOut.add(n)
	}
}

// begin opens the episode of an event. It returns nil if there are too many groups.
func (a *Assembler) begin(p *policy, e *ingest.Event) *episode {
	g := a.group(p, e)
	if g == nil {
		a.metrics.noGroup.Inc()
		a.over.group()
		return nil
	}
	ep := a.take()
	ep.key = string(a.key.bytes)
	ep.id = ep.key[a.key.ownAt:]
	ep.step = -1
	ep.agent = a.agentOf(g, ep.key)
	ep.begin(e)
	ep.rest = false
	ep.Early = g.Longest == 0
	p.begun(e.Step)
	a.insert(ep)
	return ep
}

// group returns the group of an event. It adds the group if there is none; nil if there are too many.
func (a *Assembler) group(p *policy, e *ingest.Event) *group {
	if a.key.in != nil {
		return a.key.in
	}
	if g := a.groups[string(a.key.bytes[:a.key.group])]; g != nil {
		p.recent, a.key.in = g, g
		return g
	}
	if len(a.groups) >= a.cfg.MaxGroups && !a.expire(p.Name) {
		return nil
	}
	labels := make([]ingest.Label, len(p.by))
	for i, l := range p.by {
		labels[i] = ingest.Label{Name: l.name, Value: l.of(e)}
	}
	g := &group{Key: string(a.key.bytes[:a.key.group]), Group: ingest.NewGroup(p.Name, labels...), Shadow: p.shadow, policy: p}
	g.Endings.idle.which = byTurn
	a.addGroup(g)
	p.recent, a.key.in = g, g
	return g
}

func (a *Assembler) addGroup(g *group) {
	g.sum, g.parts = ingest.FNV1a(ingest.FNVBasis, []byte(g.Key)), partsOf(g.Key)
	a.groups[g.Key] = g
}

// agentOf returns the agent of the current event. It adds a new agent. key is the event's key as a string that may be
// retained.
func (a *Assembler) agentOf(g *group, key string) *agent {
	key = key[:a.key.agent]
	ag := a.agents[key]
	if ag == nil {
		ag = a.takeAgent()
		*ag = agent{key: key, id: key[a.key.agentAt:], group: g, idle: list{which: byUse}}
		a.agents[key] = ag
	}
	return ag
}

func (a *Assembler) takeAgent() *agent {
	if n := len(a.spareAgents); n > 0 {
		ag := a.spareAgents[n-1]
		a.spareAgents = a.spareAgents[:n-1]
		return ag
	}
	return &agent{}
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
	p := ep.agent.group.policy
	p.starts.push(ep)
	a.shares.add(p)
	ep.agent.idle.push(ep)
	if !ep.Overdue {
		ep.agent.group.Endings.idle.push(ep)
	}
	ep.agent.open++
	ep.agent.most = max(ep.agent.most, ep.agent.open)
	a.metrics.open.Inc()
}

// close removes an open episode, and its agent if it has no other open episodes.
func (a *Assembler) close(ep *episode) {
	ag := ep.agent
	delete(a.open, ep.key)
	a.starts.remove(ep)
	ag.group.policy.starts.remove(ep)
	a.shares.sub(ag.group.policy)
	ag.idle.remove(ep)
	ag.group.Endings.leave(ep)
	ag.open--
	if ag.open == 0 {
		ag.giveUp()
		delete(a.agents, ag.key)
		if *ag = (agent{}); len(a.spareAgents) < maxSpare {
			a.spareAgents = append(a.spareAgents, ag)
		}
	}
	a.metrics.open.Dec()
	ep.key, ep.id, ep.agent = "", "", nil
	a.putBack(ep)
}

// putBack keeps an episode for reuse.
func (a *Assembler) putBack(ep *episode) {
	if len(a.spare) < maxSpare {
		a.spare = append(a.spare, ep)
	}
}

func (a *Assembler) drop(ep *episode) {
	a.metrics.dropped.Inc()
	a.lose(ep)
}

// add adds an event to its open episode, and drops the agent's episodes that are abandoned as of this event.
func (a *Assembler) add(ep *episode, e *ingest.Event) {
	if ignored := ep.addStep(e, a.names); ignored > 0 {
		a.metrics.noSignal.Add(float64(ignored))
	}
	ag := ep.agent
	ag.group.Used = a.events
	ag.events++
	ep.seen = ag.events
	ag.idle.toBack(ep)
	ag.group.Endings.step(ep)
	for ag.abandons(ag.idle.front) {
		a.metrics.abandoned.Inc()
		if !ag.idle.front.Early {
			ag.group.Abandoned++
		}
		a.lose(ag.idle.front)
	}
}

// end closes an open episode and emits its unit. e is the event at which it ends. With EndStep, e belongs to the next
// episode.
func (a *Assembler) end(ep *episode, end ingest.End, e *ingest.Event, emit func(*ingest.Unit)) {
	a.conclude(ep, ep.agent.group, ep.agent.id, end, e, emit)
	a.close(ep)
}

// conclude does the work of end, except for closing the episode.
func (a *Assembler) conclude(ep *episode, g *group, agent string, end ingest.End, e *ingest.Event, emit func(*ingest.Unit)) {
	g.Endings.resume(ep)
	g.Endings.ended(ep.Wait)
	g.policy.ended()
	owed := !ep.HasSummary && end != ingest.EndStep
	if ep.id != "" || owed {
		a.recent.add(ended{
			Key: a.key.hash(), Step: ep.step, Came: ep.came.kept(), TS: ep.EndTS, Owed: owed, Summed: end == ingest.EndSummary,
		})
	}
	if ep.rest && a.cfg.Dropped != nil {
		a.cfg.Dropped(ep.First)
	}
	if ep.rest {
		return
	}
	u := ep.unit(end)
	u.Shown = g.policy.stepwise && ep.agent != nil
	if end != ingest.EndStep { // with EndStep, e belongs to the next episode
		u.Labels = LabelsOf(g.policy.split, e)
	}
	a.emitEpisode(u, g, agent, ep.id, e, emit)
}

// emitEpisode emits the unit of an episode that has ended.
func (a *Assembler) emitEpisode(u *ingest.Unit, g *group, agent, id string, e *ingest.Event, emit func(*ingest.Unit)) {
	u.Episode = id
	g.ended(u.Length, a.cfg.LengthSample)
	a.emit(u, g, agent, e, emit)
}

func (a *Assembler) emit(u *ingest.Unit, g *group, agent string, e *ingest.Event, emit func(*ingest.Unit)) {
	u.Group, u.Shadow, u.Agent = g.Group, g.Shadow, agent
	u.Duplicates, u.Late = u.Duplicates+g.LeftOut.Duplicates, u.Late+g.LeftOut.Late
	u.Abandoned = g.Abandoned
	g.LeftOut, g.Abandoned = leftOut{}, 0
	u.Unfinished = g.Endings.told()
	u.Pos, u.Ord = e.Pos, a.ord
	a.ord++
	a.metrics.ends[u.End].Inc()
	emit(u)
}
