package bank

import (
	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// actionShares are the shares of actions that are judged: of the commonest categories of the baseline, and of all others
// together, in this order.
type actionShares struct {
	names []string       // of the quantities
	place map[string]int // of the categories with a name of their own; unjudged of the second of two
}

// unjudged is the place of a category whose share says nothing that another's does not: of two categories one says it all.
const unjudged = -1

func newActionShares(categories []string) *actionShares {
	a := &actionShares{place: map[string]int{}}
	for i, c := range categories[:min(len(categories), judgedActions)] {
		if len(categories) == 2 && i == 1 {
			a.place[c] = unjudged
			continue
		}
		a.place[c] = i
		a.names = append(a.names, shareName(c))
	}
	a.names = append(a.names, shareName(otherAction))
	return a
}

func shareName(category string) string { return "share of " + category }

// among appends the shares of the judged actions among those of a unit that ended at ts to the readings; nothing where it
// has none.
func (a *actionShares) among(actions []ingest.Count, ts int64, with *scratch) {
	total, other := int64(0), len(a.names)-1
	hits := append(with.hits[:0], make([]int64, len(a.names))...)
	with.hits = hits
	for _, c := range actions {
		total += c.N
		if at, listed := a.place[c.Name]; !listed {
			hits[other] += c.N
		} else if at != unjudged {
			hits[at] += c.N
		}
	}
	if total == 0 {
		return
	}
	for i, n := range hits {
		with.values = append(with.values, reading{
			signal: actionSignal, quantity: a.names[i], x: float64(n) / float64(total), ts: ts,
			steps: float64(total),
		})
	}
}

// shareScores lets the samples of the group share their tables of normal scores, of which there is one for each size. It
// makes those that restored samples lack.
func (g *group) shareScores() {
	first := map[int]*detectors.Ranks{}
	share := func(r *detectors.Ranks) {
		if r == nil {
			return
		}
		if other := first[r.Len()]; other != nil {
			r.ShareScores(other)
			return
		}
		r.Prepare()
		first[r.Len()] = r
	}
	for _, s := range g.Streams {
		for _, q := range s.Quantities {
			share(q.Ranks)
		}
	}
	if g.LikeActions != nil {
		share(g.LikeActions.Ranks)
	}
}
