package assemble

// episode is one that has begun and not ended.
type episode struct {
	tally
	key   string // of the episode in the assembler
	id    string // part of key
	step  int64  // number of its last step, -1 without one
	seen  int64  // events of its agent up to its own last one
	agent *agent
	links [2]link // in the lists below
}

type link struct{ before, after *episode }

// The lists that an episode stands in.
const (
	byStart = iota // all open episodes, the one that began first in front
	byUse          // those of one agent, the one idle for longest in front
)

// list is threaded through the episodes, so that joining and leaving it takes no memory and no search.
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

// agent is kept while it has open episodes.
type agent struct {
	key    string // of the agent in the assembler
	id     string // part of key
	group  *group
	events int64 // since it is kept
	open   int64 // episodes
	most   int64 // of them at a time
	idle   list
	block  *tally // of the steps since its last block, nil where there are none or its policy is not shown in blocks
	round  int64  // of its policy, in which it took its last step
}

// abandonedAfter is how many lengths of a long episode an episode may be idle for, in events of its agent.
const abandonedAfter = 10

// abandons reports whether an episode of the agent has seen none of so many of the agent's events that it will see no
// more. Where an agent plays several episodes at a time, each is idle while the others step, so it is given ten rounds of
// them all at least.
func (ag *agent) abandons(ep *episode) bool {
	idle := ag.events - ep.seen
	return ag.group.Longest > 0 && idle > abandonedAfter*max(ag.group.Longest, ag.most)
}
