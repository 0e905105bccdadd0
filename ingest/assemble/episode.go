package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// episode is an episode that has begun and not ended.
type episode struct {
	tally
	key   string // of the episode in the assembler
	id    string // part of key
	step  int64  // the highest of its step numbers, -1 without one
	came  arrived
	seen  int64 // events of its agent up to its own last event
	agent *agent
	rest  bool // its beginning is missing: it produces no unit
	ending
	links [4]link // in the lists below
}

// addStep folds in an event and returns the number of values for which it had no room. A late step counts, but the
// newest step determines how recent the episode is.
func (ep *episode) addStep(e *ingest.Event, n *names) (ignored int) {
	if e.Step < 0 || e.Step > ep.step || !isStep(e) {
		ignored = ep.add(e, n)
	} else {
		end, versions := ep.EndTS, ep.Versions
		ignored = ep.add(e, n)
		ep.EndTS, ep.Versions = max(end, ep.EndTS), versions
	}
	ep.keep(e)
	switch {
	case e.Step < 0:
	case ep.step < 0:
		ep.came.first(e.Step)
	case isStep(e):
		ep.came.add(e.Step, ep.step)
	}
	ep.step = max(ep.step, e.Step)
	return ignored
}

type link struct{ before, after *episode }

// The lists that an episode is on.
const (
	byStart  = iota // all open episodes, oldest first
	byUse           // those of one agent, idle for longest first
	byTurn          // those of one group that are not overdue, idle for longest first
	byPolicy        // those of one policy, oldest first
)

// list links the episodes themselves, so that adding and removing one costs no allocation and no search.
type list struct {
	which       int
	front, back *episode
}

func (l *list) push(ep *episode) {
	ep.links[l.which] = link{before: l.back}
	if l.back == nil {
		l.front = ep
	} else {
		l.back.links[l.which].after = ep
	}
	l.back = ep
}

func (l *list) remove(ep *episode) {
	at := ep.links[l.which]
	if at.before == nil {
		l.front = at.after
	} else {
		at.before.links[l.which].after = at.after
	}
	if at.after == nil {
		l.back = at.before
	} else {
		at.after.links[l.which].before = at.before
	}
	ep.links[l.which] = link{}
}

func (l *list) toBack(ep *episode) {
	if l.back != ep {
		l.remove(ep)
		l.push(ep)
	}
}

// agent is the state of an agent that has open episodes.
type agent struct {
	key    string // of the agent in the assembler
	id     string // part of key
	group  *group
	events int64 // since its first open episode
	open   int64 // episodes
	most   int64 // most episodes open at a time
	idle   list
	block  *tally // of the steps since its last block; nil if there are none or its policy is not shown in blocks
	round  int64  // of its policy in which it took its last step
}

// abandonedAfter is how many lengths of a long episode an episode may be idle, in events of its agent.
const abandonedAfter = 10

// abandons reports whether an episode of the agent has been idle for so many of the agent's events that it is given up.
// Where an agent plays several episodes at a time, each is idle while the others step. So an episode may miss at least
// ten rounds of them all.
func (ag *agent) abandons(ep *episode) bool {
	idle := ag.events - ep.seen
	return ag.group.Longest > 0 && idle > abandonedAfter*max(ag.group.Longest, ag.most)
}
