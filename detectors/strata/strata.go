// Package strata records the kinds of units in a baseline, by their labels and by the observations of single decisions,
// and splits the change in a quantity into the part due to their mix and the part within them.
package strata

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Bounds of what a group keeps: the most dimensions, the most strata of one besides the rest, the fewest units of the
// baseline that make a stratum, and the most cells over all quantities, of 24 bytes each.
const (
	mostDimensions = 6
	mostStrata     = 15
	leastUnits     = 10
	mostCells      = 1024
)

const observationPrefix = "observation."

// Dimension divides units into strata: by the value of a label or of an observation. Units with a value that is not
// in Values form the last stratum.
type Dimension struct {
	Name   string // labels.<name>, env or observation.<name>
	Values []string
}

// Quantity is the baseline of a quantity, by dimension and stratum.
type Quantity struct {
	Signal, Name string
	Cells        [][]mix.Cell
}

// Strata is the baseline of a group by its strata, and the strata of its last units. Exported fields are saved.
type Strata struct {
	Dimensions []Dimension
	Quantities []Quantity
	Recent     []byte // the strata of the last stream.TrailUnits units: a ring by ordinal, with a byte per dimension
	Next       int64  // ordinal of the next unit
}

// Collected is the part of a unit of a baseline that determines its strata.
type Collected struct {
	Labels []ingest.Label
	Single bool // whether it has one step
}

// Learn learns the strata from the collected units of a baseline, whose tests have been frozen; nil if nothing
// divides the units. Only the observations of single decisions divide units, because later observations of an
// episode depend on what the policy did before. next is the ordinal of the next unit.
func Learn(streams []*stream.Stream, units []Collected, e stream.Ends, next int64) *Strata {
	s := &Strata{Next: next}
	var places [][]byte // by dimension and unit
	add := func(name string, values []string) {
		if kept := commonest(values); len(kept) > 0 && len(s.Dimensions) < mostDimensions {
			d := Dimension{name, kept}
			s.Dimensions, places = append(s.Dimensions, d), append(places, d.placesOf(values))
		}
	}
	for _, name := range labelsOf(units) {
		values := make([]string, len(units))
		for i := range units {
			values[i] = valueOf(units[i].Labels, name)
		}
		add(name, values)
	}
	if !slices.ContainsFunc(units, func(c Collected) bool { return !c.Single }) {
		for _, of := range streams {
			if q := of.Find(signals.MainQuantity(of.Signal)); q != nil && strings.HasPrefix(of.Signal, observationPrefix) && len(q.Warm) == len(units) {
				add(of.Signal, observed(q))
			}
		}
	}
	if len(places) == 0 {
		return nil
	}
	s.count(streams, places, e)
	return s
}

// count computes the cells of the quantities of the baseline, beginning with the signals that people look at first.
func (s *Strata) count(streams []*stream.Stream, places [][]byte, e stream.Ends) {
	cells := 0
	for i := range s.Dimensions {
		cells += s.Dimensions[i].strata()
	}
	ranked := slices.Clone(streams)
	slices.SortStableFunc(ranked, func(a, b *stream.Stream) int { return cmp.Compare(signals.Rank(a.Signal), signals.Rank(b.Signal)) })
	for _, of := range ranked {
		for _, q := range of.Quantities {
			if !hasMean(of.Signal, q) || q.Ranks == nil || (len(s.Quantities)+1)*cells > mostCells {
				continue
			}
			sums := Quantity{Signal: of.Signal, Name: q.Name}
			for i := range s.Dimensions {
				sums.Cells = append(sums.Cells, make([]mix.Cell, s.Dimensions[i].strata()))
			}
			for k, r := range q.WarmReadings(e) {
				for i := range places {
					sums.Cells[i][places[i][q.Warm[k].Unit]].Add(q.Adjusted(r))
				}
			}
			s.Quantities = append(s.Quantities, sums)
		}
	}
}

// hasMean reports whether people look at the mean of a quantity: the main quantity of a signal, or the share of an
// action.
func hasMean(signal string, q *stream.Quantity) bool {
	switch {
	case q.Mix != nil || signals.IsLaw(signal):
		return false
	case signal == signals.Action && q.IsOfAction():
		return true
	}
	return q.Name == signals.MainQuantity(signal)
}

// Add records the strata of a unit. Units come in the order of their ordinals, without gaps.
func (s *Strata) Add(u *ingest.Unit, ordinal int64) {
	if s == nil {
		return
	}
	n := len(s.Dimensions)
	if s.Recent == nil {
		s.Recent = make([]byte, n*stream.TrailUnits)
	}
	at := int(ordinal%stream.TrailUnits) * n
	for i := range s.Dimensions {
		s.Recent[at+i] = s.Dimensions[i].of(u)
	}
	s.Next = ordinal + 1
}

// Split returns how the change of a quantity since a unit is divided, over at most the last stream.TrailUnits
// units: by the dimension whose mix explains it, or else by the one that explains most of it. If the named quantity
// has no baseline by strata, Split uses the main quantity of the signal; if that has none either, it returns nil.
func (s *Strata) Split(of *stream.Stream, name string, onset int64) *mix.Split {
	if s == nil {
		return nil
	}
	k := s.find(of.Signal, name)
	if k < 0 {
		k = s.find(of.Signal, signals.MainQuantity(of.Signal))
	}
	if k < 0 {
		return nil
	}
	base := &s.Quantities[k]
	q := of.Find(base.Name)
	if q == nil || q.Ranks == nil {
		return nil
	}
	values, ordinals := q.Trace.Since(max(onset, s.Next-stream.TrailUnits))
	var best *mix.Split
	for i := range s.Dimensions {
		if d := &s.Dimensions[i]; d.Name != of.Signal && len(values) > 0 {
			if split := s.by(i, base, values, ordinals, q.Factor()); best == nil || better(&split, best) {
				best = &split
			}
		}
	}
	return best
}

// better reports whether a split explains more than another one.
func better(split, than *mix.Split) bool {
	if split.Explained() != than.Explained() {
		return split.Explained()
	}
	if split.Contributes() != than.Contributes() {
		return split.Contributes()
	}
	return math.Abs(split.Within) < math.Abs(than.Within)
}

// by splits the change to the given values by one dimension.
func (s *Strata) by(dimension int, base *Quantity, values []float64, ordinals []int64, factor float64) mix.Split {
	d := &s.Dimensions[dimension]
	after := make([]mix.Cell, d.strata())
	for i, x := range values {
		at := int(ordinals[i]%stream.TrailUnits) * len(s.Dimensions)
		after[s.Recent[at+dimension]].Add(x)
	}
	split, most := mix.Of(base.Cells[dimension], after, factor)
	split.Quantity, split.By = base.Name, d.Name
	if most >= 0 && most < len(d.Values) {
		if split.Stratum = d.Values[most]; split.Stratum == "" {
			split.Stratum = "none"
		}
	}
	return split
}

func (s *Strata) find(signal, quantity string) int {
	return slices.IndexFunc(s.Quantities, func(q Quantity) bool { return q.Signal == signal && q.Name == quantity })
}

// strata returns the number of strata, including the last one for all other values.
func (d *Dimension) strata() int { return len(d.Values) + 1 }

// of returns the stratum of a unit.
func (d *Dimension) of(u *ingest.Unit) byte {
	if !strings.HasPrefix(d.Name, observationPrefix) {
		return d.place(valueOf(u.Labels, d.Name))
	}
	for i := range u.Numeric {
		if n := &u.Numeric[i]; n.Signal == d.Name && u.Length == 1 {
			var number [32]byte
			return d.placeOfText(strconv.AppendFloat(number[:0], n.Mean, 'g', -1, 64))
		}
	}
	return byte(len(d.Values))
}

func (d *Dimension) place(value string) byte {
	if i := slices.Index(d.Values, value); i >= 0 {
		return byte(i)
	}
	return byte(len(d.Values))
}

// placeOfText is place for a text in bytes. It does not allocate.
func (d *Dimension) placeOfText(text []byte) byte {
	for i, value := range d.Values {
		if value == string(text) {
			return byte(i)
		}
	}
	return byte(len(d.Values))
}

func (d *Dimension) placesOf(values []string) []byte {
	out := make([]byte, len(values))
	for i, v := range values {
		out[i] = d.place(v)
	}
	return out
}

// commonest returns the values that make strata, the most common first; nil if there are fewer than two, or if the rest is
// more than half of all.
func commonest(values []string) []string {
	counts := map[string]int{}
	for _, v := range values {
		counts[v]++
	}
	var kept []string
	for v, n := range counts {
		if n >= leastUnits {
			kept = append(kept, v)
		}
	}
	slices.SortFunc(kept, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	kept = kept[:min(len(kept), mostStrata)]
	covered := 0
	for _, v := range kept {
		covered += counts[v]
	}
	if len(kept) < 2 || 2*covered < len(values) {
		return nil
	}
	return kept
}

// labelsOf returns the names of the labels of all units, in order of their first use.
func labelsOf(units []Collected) (names []string) {
	for i := range units {
		for _, l := range units[i].Labels {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

func valueOf(labels []ingest.Label, name string) string {
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// observed returns the values of an observation in the baseline.
func observed(q *stream.Quantity) []string {
	values := make([]string, len(q.Warm))
	for i, o := range q.Warm {
		values[i] = numberOf(o.X)
	}
	return values
}

func numberOf(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
