package blocks

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// randomDecision returns a decision of one of several partitions, versions and kinds. Rare ones lack an action or have
// other signals.
func randomDecision(rng *rand.Rand, n int64, versions int) *ingest.Decision {
	s := &ingest.DecisionShape{
		Versions: ingest.Versions{Policy: strconv.Itoa(rng.IntN(versions))}, Unfinished: rng.Int64N(4) - 1, End: ingest.End(rng.IntN(3)),
		Kind: ingest.ActionCategory, Acts: rng.IntN(8) > 0,
	}
	if !s.Acts {
		s.Kind = ingest.ActionNone
	}
	d := &ingest.Decision{
		Shape: s, Agent: strconv.FormatInt(n, 10), TS: 5 * n, Pos: ingest.Position{Partition: ingest.Partition(rng.IntN(3)), Offset: n}, Ord: rng.Int32N(2),
		Reading: 9, Run: rng.Int64N(2), Reward: rng.NormFloat64(), Action: string(rune('a' + rng.IntN(4))),
	}
	for i, name := range []string{"outcome.click", "observation.x", "outcome.sale"} {
		if rng.IntN(3) > 0 {
			d.Values[len(s.Signals)] = float64(i) + math.Floor(3*rng.Float64())
			s.Signals = append(s.Signals, ingest.DecisionSignal{Name: name, Outer: name == "observation.x"})
		}
	}
	return d
}

// withoutShapes returns a joiner without the shapes that only Join remembers.
func withoutShapes(j Joiner) Joiner {
	j.slots = slices.Clone(j.slots)
	for i := range j.slots {
		j.slots[i].shape = nil
	}
	return j
}

// Join has the same effect as Add, bit for bit, for as many decisions as it accepts: all but the first and the last of
// each block and the last of each round.
func TestJoinEqualsAdd(t *testing.T) {
	for name, c := range map[string]struct {
		versions int
		mixed    bool
		least    float64
	}{"few versions": {2, false, .8}, "mixed": {2000, true, .8}, "many versions": {300, false, .3}, "too many versions": {5000, false, .3}} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(12, uint64(c.versions)))
			slow, fast := Joiner{Size: 16, Decisions: true, Mixed: c.mixed}, Joiner{Size: 16, Decisions: true, Mixed: c.mixed}
			joined := 0
			var shape *ingest.DecisionShape
			const n = 3 * RoundLength
			for i := range int64(n) {
				d := randomDecision(rng, i, c.versions)
				if shape != nil && rng.IntN(2) == 0 { // decisions share shapes, even over partitions
					d.Shape = shape
				}
				shape = d.Shape
				want := slow.Add(d.Unit())
				if fast.Join(d) {
					joined++
					if want != nil {
						t.Fatal("a complete block was not returned")
					}
				} else if got := fast.Add(d.Unit()); !reflect.DeepEqual(got, want) {
					t.Fatalf("decision %d: %+v, want %+v", i, got, want)
				}
				if i%997 == 0 && !reflect.DeepEqual(withoutShapes(fast), withoutShapes(slow)) {
					t.Fatalf("decision %d: the joiners differ", i)
				}
			}
			if !reflect.DeepEqual(withoutShapes(fast), withoutShapes(slow)) {
				t.Error("the joiners differ")
			}
			if share := float64(joined) / n; share < c.least {
				t.Errorf("%g of the decisions were joined directly", share)
			}
		})
	}
}

// A block that has propensities leaves decisions to Add, which keeps their actions in step with them.
func TestJoinNeedsABlockWithoutPropensity(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	j := Joiner{Size: 8, Decisions: true, Mixed: true}
	d := randomDecision(rng, 0, 1)
	u := d.Unit()
	u.Propensity = &ingest.Propensity{Steps: 1}
	j.Add(u)
	if j.Join(d) {
		t.Error("the decision was joined")
	}
}
