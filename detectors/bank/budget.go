package bank

import "slices"

// How the budget of false alarms of a policy is shared out. The share of the sliding Kolmogorov-Smirnov statistic is
// kept free as long as it is only a gauge.
const (
	primaryShare = .80
	otherShare   = .15
)

// reserve is the part of a policy's budget that groups draw on which appear after the first baseline was frozen: an
// armed threshold never moves without a new baseline.
const reserve = .2

// maxBranches is how many branches a policy may arm.
const maxBranches = 1000

// grant gives a group its part of the policy's budget, at its first freeze. The groups known when the first of them
// freezes share the budget without the reserve evenly; the k-th later one gets 1/(k(k+1)) of the reserve, of which the
// sum over all k is the whole.
func (p *Policy) grant(g *group) {
	if g.Share > 0 {
		return
	}
	if !p.granted {
		p.granted = true
		for _, known := range p.groups {
			known.Share = (1 - reserve) / float64(len(p.groups))
		}
		return
	}
	p.later++
	g.Share = reserve / float64(p.later*(p.later+1))
}

// room is how many branches may be armed for a group beside those of the policy's other groups.
func (p *Policy) room(g *group) int {
	room := maxBranches
	for _, other := range p.groups {
		if other != g {
			room -= other.branchCount()
		}
	}
	return room
}

func (g *group) branchCount() int {
	n := 0
	for _, s := range g.Streams {
		s.branches(func(branch) { n++ })
	}
	return n
}

// arm shares the group's part of the budget out over its branches, evenly within the primary and within the other
// signals. Streams beyond room are left unarmed.
func (g *group) arm(room int) {
	for _, class := range []struct {
		primary bool
		share   float64
	}{{true, primaryShare}, {false, otherShare}} {
		streams, branches := g.candidates(class.primary, &room)
		rate := g.Share * class.share / float64(max(1, branches)) / g.PromisedN
		for _, s := range streams {
			for _, q := range s.Quantities {
				q.arm(rate)
			}
		}
	}
}

// byWorth lists the streams, those first whose detectors matter most where not all can be armed.
func (g *group) byWorth() []*stream {
	streams := slices.Clone(g.Streams)
	slices.SortStableFunc(streams, func(a, b *stream) int { return worth(a.Signal) - worth(b.Signal) })
	return streams
}

// worth ranks signals, the most worth first.
func worth(signal string) int {
	for rank, prefix := range []string{"return", "reward", "episode_length", actionSignal, "outcome."} {
		if signal == prefix || prefix == "outcome." && isOutcome(signal) {
			return rank
		}
	}
	return 5
}

// candidates picks the streams of a class that fit into room, and counts their branches.
func (g *group) candidates(class bool, room *int) (streams []*stream, branches int) {
	for _, s := range g.byWorth() {
		if primary(s.Signal) != class {
			continue
		}
		n := 0
		for _, q := range s.Quantities {
			n += q.candidates()
		}
		if s.OverLimit = n > *room; s.OverLimit {
			continue
		}
		*room -= n
		branches += n
		streams = append(streams, s)
	}
	return streams, branches
}
