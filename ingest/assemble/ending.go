package assemble

import "slices"

// An episode whose end never arrives is recognized by how long it has been idle, measured in events of its group. The
// usual wait between events is learned from episodes that have ended. Overdue episodes are only counted. They stay
// open, and their ends may still arrive.
const (
	// overdueAfter is the maximum idle time of an episode, in usual waits.
	overdueAfter = 10
	// waitSample is the number of most recently ended episodes that determine the usual wait. The usual wait is the
	// usualWait quantile of their longest waits, and requires at least leastWaits episodes.
	waitSample = 100
	leastWaits = 20
	usualWait  = .95
)

// ending is the part of an open episode's state that shows whether its end is overdue.
type ending struct {
	Turn    int64 // the group's event count at the episode's last event
	Wait    int64 // longest wait between two of its events, in events of its group
	Overdue bool
	Counted bool // whether it is included in the group's Unfinished
}

// endings is the part of a group's state that records how long episodes wait, and how many are overdue.
type endings struct {
	Events  int64   // number of events of the group
	Waits   []int64 // longest waits of the most recently ended episodes, as a ring buffer
	Next    int     // index into Waits
	Patient int64   // maximum idle time of an episode, in events of the group; 0 if unknown
	// SettledAt is the event count of the group up to which overdue episodes are not counted. While Patient grows,
	// episodes that end are observed, but those that never end are not found yet.
	SettledAt int64
	// Unfinished counts the episodes found overdue since the last unit, including abandoned episodes and those dropped at
	// the limit, minus those that continued after all.
	Unfinished int64

	idle list // open episodes that are not overdue
}

// step records an event of an open episode, and finds episodes whose end is overdue.
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

// passed records an event that is a whole episode.
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

// count counts an episode as unfinished if the usual wait has settled.
func (n *endings) count(ep *episode) {
	if n.settled() {
		ep.Counted = true
		n.Unfinished++
	}
}

func (n *endings) settled() bool { return n.Patient > 0 && n.Events > n.SettledAt }

// resume resets the overdue state of an episode that continues or ends.
func (n *endings) resume(ep *episode) {
	if ep.Counted {
		n.Unfinished--
	}
	if ep.Overdue {
		n.idle.push(ep)
	}
	ep.Overdue, ep.Counted = false, false
}

// ended updates the usual wait with the longest wait of an ended episode. The episode must not be overdue.
func (n *endings) ended(wait int64) {
	if len(n.Waits) < waitSample {
		n.Waits = append(n.Waits, wait)
	} else {
		n.Waits[n.Next] = wait
	}
	n.Next = (n.Next + 1) % waitSample
	if n.Next%leastWaits == 0 {
		var room [waitSample]int64 // on the stack, because with summary records only, every 20th record gets here
		sorted := room[:copy(room[:], n.Waits)]
		slices.Sort(sorted)
		n.expect(overdueAfter * max(1, sorted[int(usualWait*float64(len(sorted)-1))]))
	}
}

// expect changes the maximum idle time, but only if it differs by a factor of two or more. Smaller differences matter
// little, and each change disturbs the count for a while.
func (n *endings) expect(idle int64) {
	if idle >= n.Patient/2 && idle <= 2*n.Patient {
		return
	}
	// SettledAt moves by the change of the limit, because an episode that would have reached the old limit by then reaches
	// the new one that much later.
	n.SettledAt = max(n.Events+1, max(n.Events, n.SettledAt)+idle-n.Patient)
	n.Patient = idle
}

// lost records an episode that is dropped.
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

// told returns the number of unfinished episodes to report with the next unit, or -1 if it is not known yet. If more
// episodes have continued than were found, the following units compensate for this.
func (n *endings) told() int64 {
	if !n.settled() {
		return -1
	}
	found := max(0, n.Unfinished)
	n.Unfinished -= found
	return found
}
