// Package guard judges limits that people set on what a policy does, such as the share of unsafe actions, and trips if
// there is proof that a limit is exceeded. A policy that keeps a limit trips its guard with a chance of at most alpha
// over the whole life of the guard, whatever the distribution and the dependence of its steps, of however many agents,
// and whatever ends their episodes. See wealth.
package guard

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// State is the state of a guard, or the worst one of a policy's guards.
type State uint8

// The states. OK and Warn follow the evidence. A guard that has tripped stays in the state of its limit until it is
// released. Hold asks agents to stop learning and exploring, Fallback to use the safe policy.
const (
	OK State = iota
	Warn
	Hold
	Fallback
)

// String returns the name of the state as in the configuration.
func (s State) String() string { return [...]string{"ok", "warn", "hold", "fallback"}[s] }

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// stateOf is the inverse of String; OK for any other text.
func stateOf(name string) State {
	for s := Warn; s <= Fallback; s++ {
		if s.String() == name {
			return s
		}
	}
	return OK
}

// guard judges one limit. It counts units from its beginning, or from when it last tripped or was released.
type guard struct {
	limit watch.GuardLimit
	odds  odds // of a limit on a share

	wealth   wealth
	open     bool     // the unit that began last continues: all steps until an episode ends are one unit
	habits   habits   // for limits on entropy and largest_share
	episodes episodes // for limits on return_below
	cases    cases    // for limits on causes
	n, c     float64  // values and their sum since the beginning
	invalid  int64

	state   State
	tripped bool
	since   finding.UnitRef // when the state began
	trip    Trip            // the last one

	starts [bets]start     // of each stake
	cost   finding.UnitRef // newest unit with evidence against the policy, or the unit before the first one
}

// start estimates since when a limit has been exceeded, like a CUSUM of the logarithms of one stake.
type start struct {
	sum    float64
	n, c   float64         // values since then, and their sum
	at     finding.UnitRef // newest unit at which sum was 0
	before finding.UnitRef // cost of the guard at that unit
}

// Trip is what a guard had seen when it tripped.
type Trip struct {
	At, Onset     finding.UnitRef // the unit that proved it, and an estimate of the first one beyond the limit
	OnsetFrom     finding.UnitRef // the first unit that may have been beyond the limit
	Before, After ingest.Versions // of the incident that tripped a limit on causes
	N, C          float64         // values, and their sum, since Onset, or since the guard began if that is At
	Why           string          // in words
	Cause         string          // of the incident that tripped a limit on causes
}

func newGuard(l watch.GuardLimit) *guard {
	g := &guard{limit: l}
	if l.Share > 0 {
		g.odds = newOdds(l.Share)
	}
	return g
}

// observe adds a unit, and reports whether the guard tripped or was released.
func (g *guard) observe(u *ingest.Unit, at finding.UnitRef) (tripped, released bool) {
	switch ofReturn := g.limit.ReturnBelow != ""; {
	case len(g.limit.Causes) > 0:
		return false, g.outlive(u, at)
	case u.End == ingest.EndOpen && ofReturn:
		g.stepOfEpisode(u)
		return false, false
	case u.Shown && !ofReturn: // each of its steps was counted
		ended := g.open
		g.open = false
		return false, ended && g.tripped && g.mayRelease(g.evidence(), at)
	}
	n, c, first := g.n, g.c, g.n == 0
	if !g.fold(u) {
		return false, false
	}
	e := g.evidence()
	g.follow(at, cost{n: g.n - n, c: g.c - c}, first)
	if g.tripped {
		return false, g.mayRelease(e, at)
	}
	if e >= 1/g.limit.Alpha {
		g.tripNow(u, at)
		return true, false
	}
	switch {
	case g.state == OK && e >= 1/math.Sqrt(g.limit.Alpha):
		g.state, g.since = Warn, at
	case g.state == Warn && e <= 1:
		g.state, g.since = OK, at
	}
	return false, false
}

// fold adds the values of the unit that the limit is about, and reports whether there are any.
func (g *guard) fold(u *ingest.Unit) bool {
	var of cost
	switch l := &g.limit; {
	case l.Entropy > 0:
		return g.foldEntropy(u)
	case l.ReturnBelow != "":
		return g.foldReturn(u)
	case l.LargestShare:
		leader, known := g.habits.leader()
		g.habits.learn(u.Actions)
		if !known {
			return false
		}
		of = actionCost(u.Actions, func(name string) bool { return name == leader })
	default:
		of = costOf(l, u)
	}
	g.invalid += of.invalid
	if of.n == 0 {
		return false
	}
	g.n, g.c = g.n+of.n, g.c+of.c
	g.next(u)
	if g.limit.Share > 0 {
		g.wealth.bet(&g.odds, of.n, of.c)
	}
	return true
}

// next prepares the bets on a unit. The steps of open episodes are bet on one by one, in their order, and begin a unit if
// they are the first ones after an episode has ended.
func (g *guard) next(u *ingest.Unit) {
	g.wealth.logs = [bets]float64{}
	if step := u.End == ingest.EndOpen; !step || !g.open {
		g.wealth.begin()
		g.open = step
	}
}

// foldEntropy bets on how well the actions before predict those of the unit. If the entropy of each action given those
// before it is at least the limit, so is the mean surprise of any prediction from them (Gibbs). 1 - surprise/largest is
// then in [0, 1], with a mean of at most 1 - limit/largest.
func (g *guard) foldEntropy(u *ingest.Unit) bool {
	if len(u.Actions) == 0 {
		return false
	}
	g.next(u)
	keep := 1 - g.limit.Entropy/largestSurprise
	for _, a := range u.Actions {
		s := g.habits.surprise(a.Name)
		value, n := 1-s/largestSurprise, float64(a.N)
		g.n, g.c = g.n+n, g.c+n*s
		stake := largestStake
		for i := range bets {
			g.wealth.multiply(i, n*math.Log1p(stake*(value/keep-1)))
			stake /= 2
		}
	}
	g.habits.learn(u.Actions)
	return true
}

// evidence returns the evidence that the limit is exceeded. With a share of 0, one value above 0 proves it.
func (g *guard) evidence() float64 {
	if len(g.limit.Causes) > 0 {
		return g.evidenceOfCases()
	}
	if g.limit.Entropy == 0 && g.limit.Share == 0 {
		if g.c > 0 {
			return mostEvidence
		}
		return 1
	}
	return max(g.wealth.evidence(), g.episodes.ahead)
}

// follow updates the starts with the unit that was added last and its cost.
func (g *guard) follow(at finding.UnitRef, of cost, first bool) {
	if first { // the limit may have been exceeded since before it
		g.cost = at
		g.cost.Ordinal--
		for i := range g.starts {
			g.starts[i] = start{at: g.cost, before: g.cost}
		}
	}
	for i := range g.starts {
		if s := &g.starts[i]; s.sum+g.wealth.logs[i] > 0 {
			s.sum, s.n, s.c = s.sum+g.wealth.logs[i], s.n+of.n, s.c+of.c
		} else {
			*s = start{at: at, before: g.cost}
		}
	}
	if g.wealth.logs[bets-1] > 0 {
		g.cost = at
	}
}

// began returns the start of the stake with the most evidence.
func (g *guard) began() start {
	best := g.starts[0]
	for _, of := range g.starts[1:] {
		if of.sum > best.sum {
			best = of
		}
	}
	return best
}

func (g *guard) tripNow(u *ingest.Unit, at finding.UnitRef) {
	from := g.began()
	g.trip = Trip{At: at, Onset: at, OnsetFrom: at, N: g.n, C: g.c}
	if from.sum > 0 {
		step := u.End == ingest.EndOpen
		g.trip.Onset, g.trip.OnsetFrom = after(from.at, at, step), after(from.before, at, step)
		g.trip.N, g.trip.C = from.n, from.c // over the whole life of the guard, the limit may well be kept
	}
	g.trip.Why = tripWords(&g.limit, &g.trip)
	g.tripped, g.state, g.since = true, stateOf(g.limit.Then), at
	g.begin()
}

// after returns a reference that stands for the unit after last, but for none after at. It keeps the time and the
// offsets of last. Steps of episodes that are open at the same time have the same ordinal.
func after(last, at finding.UnitRef, step bool) finding.UnitRef {
	if !step && last.Ordinal+1 >= at.Ordinal {
		return at
	}
	return finding.UnitRef{Ordinal: min(last.Ordinal+1, at.Ordinal), Pos: last.Pos, First: last.First, TS: last.TS}
}

// begin discards the evidence.
func (g *guard) begin() {
	g.wealth, g.open, g.starts, g.n, g.c = wealth{}, false, [bets]start{}, 0, 0
	g.episodes.reset()
}

// mayRelease releases the guard if its limit says so: after enough units within the limit, with no evidence against
// it. If the limit is still exceeded, the units count again from zero.
func (g *guard) mayRelease(evidence float64, at finding.UnitRef) bool {
	after := g.limit.ReleaseAfter
	if after == 0 {
		return false
	}
	units := g.wealth.units
	if g.limit.OfEpisodes() { // bets wait for episodes that began before, some of which never end; limits on causes have no bets
		units = int64(g.n)
	}
	enough := units >= after && !g.open
	if evidence >= 1/g.limit.Alpha || enough && (evidence > 1 || !g.within()) {
		g.begin()
		return false
	}
	if enough {
		g.release(at)
	}
	return enough
}

// within reports whether the values since the guard began are on average within the limit.
func (g *guard) within() bool {
	if g.limit.Entropy > 0 {
		return g.c >= g.limit.Entropy*g.n
	}
	return g.c <= g.limit.Share*g.n
}

func (g *guard) release(at finding.UnitRef) {
	g.tripped, g.state, g.since = false, OK, at
	g.begin()
}
