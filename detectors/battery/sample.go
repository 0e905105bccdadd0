package battery

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/factor"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Column names a quantity of a signal.
type Column struct{ Signal, Quantity string }

// Sample holds the readings of many units. Drawing units from it is much faster than computing them.
type Sample struct {
	Columns []Column
	Units   [][]stream.Reading // by unit and column; NaN if the unit lacks the quantity
	Row     int                // number of units drawn in a row: more than one if they depend on each other
}

// NewSample reads units in the same way as the tests. row is the Row of the sample.
func NewSample(tests *Battery, units []*ingest.Unit, row int) *Sample {
	s, known := &Sample{Row: row}, map[Column]int{}
	memory := stream.Scratch{Laws: factor.Memory{Own: &factor.Laws{}}} // several samples may be read at the same time
	for at, u := range units {
		values := make([]stream.Reading, len(s.Columns))
		for i := range values {
			values[i].X = math.NaN()
		}
		for _, r := range tests.Readings(u, &memory) {
			c := Column{r.Signal, r.Quantity}
			i, have := known[c]
			if !have {
				i = len(s.Columns)
				known[c], s.Columns, values = i, append(s.Columns, c), append(values, stream.Reading{})
			}
			values[i] = r
		}
		memory.Laws.Own.Observe(memory.Laws.Last, int64(at))
		s.Units = append(s.Units, values)
	}
	for i, values := range s.Units {
		for len(values) < len(s.Columns) {
			values = append(values, stream.Reading{X: math.NaN()})
		}
		s.Units[i] = values
	}
	return s
}

// In returns the sample with the given columns, in their order.
func (s *Sample) In(columns []Column) *Sample {
	out := &Sample{Columns: columns, Row: s.Row, Units: make([][]stream.Reading, len(s.Units))}
	from := make([]int, len(columns))
	for i, c := range columns {
		from[i] = slices.Index(s.Columns, c)
	}
	for i, row := range s.Units {
		for _, k := range from {
			r := stream.Reading{X: math.NaN()}
			if k >= 0 {
				r = row[k]
			}
			out.Units[i] = append(out.Units[i], r)
		}
	}
	return out
}

// Draws returns units one by one: Row of them in a row, each row from a random place.
func (s *Sample) Draws(rng *rand.Rand) func() []stream.Reading {
	i, left := 0, 0
	return func() []stream.Reading {
		if left == 0 {
			i, left = rng.IntN(len(s.Units)), s.Row
		}
		row := s.Units[i]
		i, left = (i+1)%len(s.Units), left-1
		return row
	}
}

// Resampled returns a sample of the same size drawn from this one, as a bootstrap replicate.
func (s *Sample) Resampled(rng *rand.Rand) *Sample {
	out := &Sample{Columns: s.Columns, Row: s.Row, Units: make([][]stream.Reading, len(s.Units))}
	next := s.Draws(rng)
	for i := range out.Units {
		out.Units[i] = next()
	}
	return out
}
