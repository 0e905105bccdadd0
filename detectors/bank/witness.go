package bank

import (
	"math"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Witness sets a function that is called for every unit before the bank judges or collects it: once and in order, with
// blocks in the form that is judged. It is not called for units that the bank ignores because they were applied before
// or because their version is retired. The function must not keep the unit.
func (p *Policy) Witness(see func(u *ingest.Unit)) { p.witness = see }

// Applying sets a function that is called for every unit that the bank applies, once and in order, even if its group
// waits for a calibration. The units passed to the function are those that Applied covers, except for decisions that were
// joined by Join. The function must not keep the unit.
func (p *Policy) Applying(see func(u *ingest.Unit)) { p.applying = see }

// Adjusting sets a function that is called for every unit that the bank judges or learns from, with the raters' levels
// removed, before the unit is joined with others. The function must not modify the unit.
func (p *Policy) Adjusting(see func(u *ingest.Unit)) { p.adjusting = see }

// rated returns a unit of a group with the raters' levels removed.
func (p *Policy) rated(g *group, u *ingest.Unit, of lane) *ingest.Unit {
	u = g.rated(u, of)
	if p.adjusting != nil {
		p.adjusting(u)
	}
	return u
}

func (p *Policy) present(u *ingest.Unit) {
	if p.witness != nil {
		p.witness(u)
	}
}

// Value returns a unit's value for a signal: its return, its length, or the mean over its steps; NaN if it has none.
func Value(u *ingest.Unit, signal string) float64 {
	return stream.MainReading(stream.Readings(u, nil), signal)
}

// Reference describes the values of a signal in a group before a unit.
type Reference struct {
	Factor    float64   // factor by which dependence increases the variance of their mean; 1 if unknown
	Low, High float64   // lowest and highest value of the baseline and the recent units; Low > High if there are none
	Recent    []float64 // values of the recent units, at most 200, oldest first
}

// Reference returns the description of a signal's values in a group. The group must not be Absent.
func (p *Policy) Reference(key ingest.Group, signal string) Reference {
	r := Reference{Factor: 1, Low: math.Inf(1), High: math.Inf(-1)}
	g := p.byKey[key]
	if g == nil {
		return r
	}
	if g.hold != nil && g.hold.Runs() {
		<-g.hold.Hurry()
	}
	i, found := g.Find(signal)
	if !found {
		return r
	}
	r.Factor = max(r.Factor, g.Streams[i].Factor())
	q := g.Streams[i].Find(signals.MainQuantity(signal))
	if q == nil {
		return r
	}
	r.Recent = q.Recent.Last(stream.CurrentUnits)
	for _, x := range r.Recent {
		r.Low, r.High = min(r.Low, x), max(r.High, x)
	}
	if q.Ranks != nil {
		points := q.Ranks.Points
		r.Low, r.High = min(r.Low, points[0]), max(r.High, points[len(points)-1])
	}
	return r
}
