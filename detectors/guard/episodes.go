package guard

import (
	"cmp"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// mostWaiting bounds the number of episodes that wait for an earlier one to end.
const mostWaiting = 4096

// episodeKey identifies an open episode.
type episodeKey struct{ agent, episode string }

// value is what is known about the return of an episode.
type value uint8

const (
	open value = iota // not yet known
	none              // the episode has none
	good              // at least the limit
	small
)

// episodes puts the returns of episodes into the order in which the episodes began, although they end in another
// order. Bets must not follow the order of the ends: of episodes that are open together, those that end first are
// mostly those that were cut short, for whatever reason. Whether an episode begins, and when, does not depend on
// its return.
//
// An open episode does not hold up evidence, because bets only grow with the number of small returns. If the known
// returns would prove that the limit is exceeded even if all open episodes before the newest known one turned out
// good, they prove it already: the returns that are still unknown cannot change the result.
type episodes struct {
	waiting []waiting            // in the order of their beginnings; the first one is open
	first   int64                // number of the first waiting episode
	open    map[episodeKey]int64 // numbers of open episodes
	void    map[episodeKey]bool  // open episodes that no longer count
	old     map[episodeKey]bool  // the same, from before void was full

	ahead   float64 // the largest evidence of waiting episodes, if all open ones turn out good
	aheadAt int64   // number of the episode with that evidence
}

type waiting struct {
	key   episodeKey
	value value
}

func keyOf(u *ingest.Unit) episodeKey { return episodeKey{u.Agent, u.Episode} }

// began notes a step of an open episode.
func (e *episodes) began(u *ingest.Unit) {
	key := keyOf(u)
	if _, known := e.open[key]; known || e.void[key] || e.old[key] {
		return
	}
	if e.open == nil {
		e.open, e.void = map[episodeKey]int64{}, map[episodeKey]bool{}
	}
	e.open[key] = e.first + int64(len(e.waiting))
	e.waiting = append(e.waiting, waiting{key: key})
}

// leave marks an open episode as one that no longer counts.
func (e *episodes) leave(key episodeKey) {
	delete(e.open, key)
	if len(e.void) >= mostWaiting { // episodes that never end must not fill the memory
		e.old, e.void = e.void, map[episodeKey]bool{}
	}
	e.void[key] = true
}

// ended notes the end of an episode, and reports whether the episode counts. If its beginning was not seen, the
// episode begins now, but it does not count if its steps were shown or if it was left before.
func (e *episodes) ended(u *ingest.Unit, v value) (counts bool) {
	key := keyOf(u)
	if n, known := e.open[key]; known {
		delete(e.open, key)
		e.waiting[n-e.first].value = v
		return v != none
	}
	if e.void[key] || e.old[key] || u.Shown {
		delete(e.void, key)
		delete(e.old, key)
		return false
	}
	if v != none {
		e.waiting = append(e.waiting, waiting{key: key, value: v})
	}
	return v != none
}

// next removes the first waiting episode if its value is known, and returns the value. An episode that too many
// others wait for counts as good.
func (e *episodes) next() (v value, known bool) {
	switch {
	case len(e.waiting) == 0:
		return open, false
	case e.waiting[0].value != open:
		v = e.waiting[0].value
	case len(e.waiting) <= mostWaiting:
		return open, false
	default:
		e.leave(e.waiting[0].key)
		v = good
	}
	e.waiting[0] = waiting{}
	e.waiting = e.waiting[1:]
	e.first++
	if e.first > e.aheadAt {
		e.ahead = 0
	}
	return v, true
}

// look updates the evidence of the waiting episodes, based on that of the episodes before them. Only a small return
// adds to it.
func (e *episodes) look(w wealth, o *odds) {
	e.ahead = 0
	for i := range e.waiting {
		switch v := e.waiting[i].value; v {
		case none:
		case small:
			w.begin()
			w.bet(o, 1, 1)
			if now := w.evidence(); now > e.ahead {
				e.ahead, e.aheadAt = now, e.first+int64(i)
			}
		default:
			w.begin()
			w.bet(o, 1, 0)
		}
	}
}

// reset forgets all returns. Open episodes no longer count, because they began before the reset.
func (e *episodes) reset() {
	for key := range e.open {
		e.leave(key)
	}
	e.first += int64(len(e.waiting))
	e.waiting, e.ahead = nil, 0
}

// valueOf returns the value of an episode from its cost, which has at most one value.
func valueOf(of cost) value {
	switch {
	case of.n == 0:
		return none
	case of.c > 0:
		return small
	}
	return good
}

// foldReturn adds the return of an episode that has ended, and reports whether it counts.
func (g *guard) foldReturn(u *ingest.Unit) bool {
	of := returnCost(g.limit.ReturnBelow.Number(), u)
	g.invalid += of.invalid
	if g.limit.Share == 0 { // the first small return trips the guard, in whatever order the episodes began
		if of.n > 0 {
			g.next(u)
		}
		g.n, g.c = g.n+of.n, g.c+of.c
		return of.n > 0
	}
	counts := g.episodes.ended(u, valueOf(of))
	g.settle()
	if !counts {
		return false
	}
	if of.c > 0 {
		g.episodes.look(g.wealth, &g.odds)
	}
	g.n, g.c = g.n+of.n, g.c+of.c
	for i := range bets { // the estimates of the onset follow the order of the ends
		g.wealth.logs[i] = (of.n-of.c)*g.odds.zero[i] + of.c*g.odds.one[i]
	}
	return true
}

// settle bets on the returns of the first waiting episodes, as far as they are known.
func (g *guard) settle() {
	for v, known := g.episodes.next(); known; v, known = g.episodes.next() {
		switch v {
		case none:
			continue
		case small:
			g.wealth.begin()
			g.wealth.bet(&g.odds, 1, 1)
		default:
			g.wealth.begin()
			g.wealth.bet(&g.odds, 1, 0)
		}
	}
}

// stepOfEpisode notes a step of an open episode for a limit on returns.
func (g *guard) stepOfEpisode(u *ingest.Unit) {
	if g.limit.Share > 0 {
		g.episodes.began(u)
		g.settle()
	}
}

type episodesWire struct {
	Waiting []waitingWire `cbor:"1,keyasint,omitzero"`
	First   int64         `cbor:"2,keyasint,omitzero"`
	Void    []waitingWire `cbor:"3,keyasint,omitzero"`
	Old     []waitingWire `cbor:"4,keyasint,omitzero"`
	Ahead   float64       `cbor:"5,keyasint,omitzero"`
	AheadAt int64         `cbor:"6,keyasint,omitzero"`
}

type waitingWire struct {
	Agent   string `cbor:"1,keyasint,omitzero"`
	Episode string `cbor:"2,keyasint,omitzero"`
	Value   value  `cbor:"3,keyasint,omitzero"`
}

func keysOf(keys map[episodeKey]bool) (out []waitingWire) {
	for key := range keys {
		out = append(out, waitingWire{Agent: key.agent, Episode: key.episode})
	}
	slices.SortFunc(out, func(a, b waitingWire) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Episode, b.Episode))
	})
	return out
}

func keysIn(from []waitingWire) map[episodeKey]bool {
	out := make(map[episodeKey]bool, len(from))
	for _, w := range from {
		out[episodeKey{w.Agent, w.Episode}] = true
	}
	return out
}

func (e *episodes) wire() episodesWire {
	out := episodesWire{First: e.first, Void: keysOf(e.void), Old: keysOf(e.old), Ahead: e.ahead, AheadAt: e.aheadAt}
	for _, w := range e.waiting {
		out.Waiting = append(out.Waiting, waitingWire{w.key.agent, w.key.episode, w.value})
	}
	return out
}

func (w *episodesWire) live() episodes {
	out := episodes{first: w.First, open: map[episodeKey]int64{}, void: keysIn(w.Void), old: keysIn(w.Old), ahead: w.Ahead, aheadAt: w.AheadAt}
	for i, of := range w.Waiting {
		key := episodeKey{of.Agent, of.Episode}
		if of.Value == open {
			out.open[key] = w.First + int64(i)
		}
		out.waiting = append(out.waiting, waiting{key, of.Value})
	}
	return out
}
