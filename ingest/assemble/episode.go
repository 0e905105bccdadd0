package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// episode is an open episode.
type episode struct {
	tally
	key   string // of the episode in the assembler
	id    string // part of key
	step  int64  // highest step number, or -1 if it has none
	came  arrived
	seen  int64 // number of its agent's events at its own last event
	agent *agent
	rest  bool // whether its beginning is missing, so it produces no unit
	ending
	links [4]link // in the lists below
}

// addStep adds an event. It returns the number of values that exceeded the limits of a unit. A late step counts, but
// does not change the end time and versions of the episode.
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

// The lists that contain an episode.
const (
	byStart  = iota // all open episodes, oldest first
	byUse           // those of one agent, longest idle first
	byTurn          // those of one group that are not overdue, longest idle first
	byPolicy        // those of one policy, oldest first
)

// list is an intrusive doubly linked list of episodes, so adding and removing an episode takes neither an allocation
// nor a search.
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
	events int64 // number of events since its first open episode
	open   int64 // number of open episodes
	most   int64 // maximum number of episodes open at the same time
	idle   list
	block  *tally // steps since its last block; nil if there are none or its policy is not reported in blocks
	round  int64  // round of its policy in which it took its last step
}

// abandonedAfter is the maximum idle time of an episode in its agent's events, as a multiple of the length of a long
// episode.
const abandonedAfter = 10

// abandons reports whether an episode of the agent has been idle for so long, in events of the agent, that it is
// abandoned. If an agent has several open episodes, each is idle while the others step. Therefore, an episode may also
// be idle for at least ten rounds through all of them.
func (ag *agent) abandons(ep *episode) bool {
	idle := ag.events - ep.seen
	return ag.group.Longest > 0 && idle > abandonedAfter*max(ag.group.Longest, ag.most)
}
