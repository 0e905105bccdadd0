package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Witness has every unit that the bank folds in presented before it is: once, in order, and blocks as they are judged. It is not
// for those that the bank leaves out, as they were applied before or their version was followed by another one. The unit must
// not be kept.
func (p *Policy) Witness(see func(u *ingest.Unit)) { p.witness = see }

func (p *Policy) present(u *ingest.Unit) {
	if p.witness != nil {
		p.witness(u)
	}
}

// Value is what a unit has for a signal: its return, its length, or the mean over its steps. It is NaN where it has none.
func Value(u *ingest.Unit, signal string) float64 {
	return mainReading(readings(u, nil), signal)
}

// Reference is what is known of the values of a signal in a group before a unit.
type Reference struct {
	Factor    float64   // by which dependence inflates the variance of their mean, 1 where none is known
	Low, High float64   // the lowest and highest one of the baseline and of the newest units; Low > High where there is none
	Recent    []float64 // of the newest units, at most 200, the oldest first
}

// Reference gives it. The group must not be Absent.
func (p *Policy) Reference(key ingest.Group, signal string) Reference {
	r := Reference{Factor: 1, Low: math.Inf(1), High: math.Inf(-1)}
	g := p.byKey[key]
	if g == nil {
		return r
	}
	i, found := g.find(signal)
	if !found {
		return r
	}
	r.Factor = max(r.Factor, g.Streams[i].factor())
	q := g.Streams[i].find(mainQuantity(signal))
	if q == nil {
		return r
	}
	r.Recent = q.Recent.last(currentUnits)
	for _, x := range r.Recent {
		r.Low, r.High = min(r.Low, x), max(r.High, x)
	}
	if q.Ranks != nil {
		points := q.Ranks.Points
		r.Low, r.High = min(r.Low, points[0]), max(r.High, points[len(points)-1])
	}
	return r
}
