package assemble

import "slices"

// An episode whose end never arrives is recognized by how long it has been idle, in events of its group. The episodes
// that end show how long one usually waits for its next event. Such episodes are only counted: they stay open, and
// their ends may still arrive.
const (
	// overdueAfter is how many usual waits an episode may be idle.
	overdueAfter = 10
	// waitSample is how many of the last ended episodes determine the usual wait, which is their usualWait quantile. It
	// takes at least leastWaits of them.
	waitSample = 100
	leastWaits = 20
	usualWait  = .95
)

// ending is the state of an open episode that shows whether its end is overdue.
type ending struct {
	Turn    int64 // events of its group up to its own last event
	Wait    int64 // the longest time between two of its events, in events of its group
	Overdue bool
	Counted bool // it is counted in the Unfinished of its group
}

// endings is the state of a group: how long its episodes wait, and how many are overdue.
type endings struct {
	Events  int64   // of the group
	Waits   []int64 // the longest waits of the last ended episodes, a ring
	Next    int     // index into Waits
	Patient int64   // how many events of the group an episode may be idle; 0 if unknown
	// SettledAt is the event of the group from which overdue episodes are found at the rate at which they are left
	// behind. While Patient grows, ends are observed and episodes without an end are not.
	SettledAt int64
	// Unfinished counts the episodes found overdue since the last unit, including abandoned ones and those dropped for
	// lack of room, minus those that went on after all.
	Unfinished int64

	idle list // of the open episodes that are not overdue
}

// step records an event of an open episode and finds the episodes whose end is overdue.
func (n *endings) step(ep *episode) {
	n.Events++
	if ep.Turn > 0 {
		ep.Wait = max(ep.Wait, n.Events-ep.Turn)
	}
	ep.Turn = n.Events
	n.resume(ep)
	n.idle.toBack(ep)
	n.findOverdue()
}

// passed records an event that was a whole episode.
func (n *endings) passed() {
	n.Events++
	n.findOverdue()
}

func (n *endings) findOverdue() {
	for front := n.idle.front; front != nil && n.Patient > 0 && n.Events-front.Turn > n.Patient; front = n.idle.front {
		n.idle.remove(front)
		front.Overdue = true
		n.count(front)
	}
}

// count counts an episode as unfinished once the usual wait has settled.
func (n *endings) count(ep *episode) {
	if n.settled() {
		ep.Counted = true
		n.Unfinished++
	}
}

func (n *endings) settled() bool { return n.Patient > 0 && n.Events > n.SettledAt }

// resume clears the overdue state of an episode that goes on or ends.
func (n *endings) resume(ep *episode) {
	if ep.Counted {
		n.Unfinished--
	}
	if ep.Overdue {
		n.idle.push(ep)
	}
	ep.Overdue, ep.Counted = false, false
}

// ended updates the usual wait with the longest one of an episode that has ended, and is not overdue.
func (n *endings) ended(wait int64) {
	if len(n.Waits) < waitSample {
		n.Waits = append(n.Waits, wait)
	} else {
		n.Waits[n.Next] = wait
	}
	n.Next = (n.Next + 1) % waitSample
	if n.Next%leastWaits == 0 {
		var room [waitSample]int64 // on the stack: with episodes that are only summaries, every 20th record gets here
		sorted := room[:copy(room[:], n.Waits)]
		slices.Sort(sorted)
		n.expect(overdueAfter * max(1, sorted[int(usualWait*float64(len(sorted)-1))]))
	}
}

// expect changes how long an episode may be idle, but only by a large factor: a small one matters little, and each
// change disturbs the count of episodes for a while.
func (n *endings) expect(idle int64) {
	if idle >= n.Patient/2 && idle <= 2*n.Patient {
		return
	}
	// Episodes waiting by then fall short of the old limit by the distance to SettledAt, and of the new one by the
	// difference as well.
	n.SettledAt = max(n.Events+1, max(n.Events, n.SettledAt)+idle-n.Patient)
	n.Patient = idle
}

// lost records an episode that is given up.
func (n *endings) lost(ep *episode) {
	if !ep.Overdue {
		n.count(ep)
	}
}

// leave removes a closed episode from the list.
func (n *endings) leave(ep *episode) {
	if !ep.Overdue {
		n.idle.remove(ep)
	}
	ep.ending = ending{}
}

// told returns the number of unfinished episodes for the next unit, or -1 before it is known. If more episodes have
// resumed than were found since, the next units make up for it.
func (n *endings) told() int64 {
	if !n.settled() {
		return -1
	}
	found := max(0, n.Unfinished)
	n.Unfinished -= found
	return found
}
