// Package reach computes the smallest change that the armed branches of a quantity detect within a number of units.
package reach

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rewardwatch/rewardwatch/detectors"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// within are the numbers of units for which the smallest change is computed, in descending order: the change that is
// found within more units is smaller.
var within = [...]int{2000, 1000, 500, 200, 100, 50, 20}

// walk describes how the walk of one branch moves after a change.
type walk struct {
	drift, sd float64 // of its increments, in nats; sd includes the dependence of units
	height    float64 // its threshold plus the mean overshoot
}

// overshoot is how far a normal walk of unit variance is beyond a threshold on average when it first exceeds it
// (Siegmund, Sequential Analysis, 1985, X.10).
const overshoot = .5826

// foundWithin returns the probability that the walk exceeds its threshold within n units, as that of a Brownian
// motion with the same drift and variance, which has an inverse Gaussian distribution. The motion starts at 0 and,
// unlike the walk, goes below it, so the walk exceeds the threshold at least as often.
func (w walk) foundWithin(n float64) float64 {
	if w.sd == 0 {
		if w.drift*n >= w.height {
			return 1
		}
		return 0
	}
	s := w.sd * math.Sqrt(n)
	reflected := 2 * w.drift * w.height / (w.sd * w.sd)
	p := distuv.UnitNormal.CDF((w.drift*n - w.height) / s)
	if tail := distuv.UnitNormal.CDF((-w.height - w.drift*n) / s); tail > 0 {
		p += math.Exp(reflected + math.Log(tail))
	}
	return min(1, p)
}

// changedWalks describes how the armed walks of a quantity move after a change.
type changedWalks []walk

// weighted is a reading with the share of the units that have it. The weights of a change sum to the share of the
// units with any reading.
type weighted struct {
	stream.Reading
	Weight float64
	place  int // in mover.known, 0 if the reading is not kept there
}

// mover computes how far units move the walks of a quantity. Readings with the same place move them alike, so each
// place is computed only once.
type mover struct {
	test    *stream.Quantity // with no other tests than these walks
	moves   []float64        // of all branches by place; place 0 is for the last reading without one
	known   []bool           // whether the moves of a place are known
	slowest float64          // what divides the evidence at the hour at which it counts least, so that claims hold at all hours
	ranked  bool             // whether the place follows from the slot of the value
	slot    int              // of the last value, if ranked
	drift   []float64        // by branch, the mean of the moves
	squares []float64        // the mean of their squares
}

// newMover returns a mover, or nil for a quantity without walks.
func newMover(q *stream.Quantity) *mover {
	m := &mover{test: q.AgainWalks(), slowest: q.Hours.Largest()}
	m.test.Hours = nil
	walks := m.test.Walks()
	if walks == nil {
		return nil
	}
	walks.Weigh(1)
	places := 1
	if m.ranked = q.Rank() != nil && q.Season == nil; m.ranked {
		places += 2*q.Ranks.Distinct() + 1
	}
	m.grow(places)
	m.drift, m.squares = make([]float64, len(walks.Branches)), make([]float64, len(walks.Branches))
	return m
}

// grow makes room for the given number of places.
func (m *mover) grow(places int) {
	more := places - len(m.known)
	m.known = append(m.known, make([]bool, more)...)
	m.moves = append(m.moves, make([]float64, more*len(m.test.Walks().Branches))...)
}

// after returns how the armed walks move if units have these readings from now on; nil if none is armed.
func (m *mover) after(readings []weighted) (out changedWalks) {
	if m == nil {
		return nil
	}
	clear(m.drift)
	clear(m.squares)
	for i := range readings {
		w := readings[i].Weight
		for k, x := range m.of(&readings[i]) {
			m.drift[k] += w * x
			m.squares[k] += w * x * x
		}
	}
	walks := m.test.Walks()
	for i := range walks.Branches {
		if b := &walks.Branches[i]; b.Height > 0 {
			sd := math.Sqrt(max(0, m.squares[i]-m.drift[i]*m.drift[i]) * walks.Factor / m.slowest)
			out = append(out, walk{m.drift[i] / m.slowest, sd, b.Height + overshoot*sd})
		}
	}
	return out
}

// of returns by how much a reading moves each walk.
func (m *mover) of(r *weighted) []float64 {
	place := r.place
	if m.ranked {
		m.slot = detectors.SlotNear(m.test.Ranks, r.X, m.slot) // readings ascend
		place = 1 + m.slot
	}
	if place >= len(m.known) {
		m.grow(place + 1)
	}
	moves := m.moves[place*len(m.drift):][:len(m.drift)]
	if m.known[place] {
		return moves
	}
	m.known[place] = place > 0
	walks := m.test.Walks()
	for i := range walks.Branches {
		walks.Branches[i].Walk = aloft
	}
	m.test.Test(m.test.Read(r.Reading), 0, false)
	for i := range moves {
		moves[i] = walks.Branches[i].Walk - aloft
	}
	return moves
}

// aloft is a height at which a walk never falls to 0 within one unit, so that the difference is its increment.
const aloft = 1 << 20

// finds implements finder.
func (c changedWalks) finds(n float64) bool { return c.findsWithin(n) >= finding.ReachProbability }

// findsWithin returns a lower limit of the probability that the change is found within n units: that of the best branch
// alone.
func (c changedWalks) findsWithin(n float64) (p float64) {
	for _, w := range c {
		p = max(p, w.foundWithin(n))
	}
	return p
}
