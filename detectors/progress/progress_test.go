package progress

import (
	"math"
	"math/rand/v2"
	"testing"
)

// learner returns the returns of a policy as points of each units: a level by the share of the past, and noise in
// which each value keeps a share of the previous one.
func learner(rng *rand.Rand, units, each int, kept float64, level func(at float64) float64) []Point {
	var out []Point
	noise := rng.NormFloat64()
	var sum, squares float64
	for i := range units {
		noise = kept*noise + math.Sqrt(1-kept*kept)*rng.NormFloat64()
		x := level(float64(i)/float64(units)) + noise
		sum, squares = sum+x, squares+x*x
		if (i+1)%each == 0 {
			n := float64(each)
			out = append(out, Point{Units: n, Mean: sum / n, SD: math.Sqrt(max(0, squares/n-sum*sum/n/n))})
			sum, squares = 0, 0
		}
	}
	return out
}

func flat(at float64) func(float64) float64 { return func(float64) float64 { return at } }

// TestAFlatReturnIsAPlateau counts the windows whose interval misses the real change, for values that depend on
// each other within points, and beyond them.
func TestAFlatReturnIsAPlateau(t *testing.T) {
	for _, of := range []struct {
		name  string
		units int
		each  int
		kept  float64
		level float64
		most  float64 // largest share of windows
	}{
		{"independent", 2000, 40, 0, 5, .01},
		{"dependent", 2000, 40, .5, 5, .01},
		{"long dependence", 2000, 40, .95, 5, .03},
		{"around zero", 1000, 20, 0, 0, .01},
		{"negative", 1000, 20, .5, -100, .01},
		{"few", 200, 20, 0, 3, .01},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(9, uint64(of.units)))
			const runs = 4000
			missed, collapsed := 0, 0
			for range runs {
				switch p := Of(learner(rng, of.units, of.each, of.kept, flat(of.level))); p.State {
				case Plateau:
				case Collapsed:
					collapsed++
				default:
					missed++
				}
			}
			most := runs*of.most + 3*math.Sqrt(runs*of.most*(1-of.most))
			if float64(missed) > most || collapsed > runs/1000 {
				t.Errorf("%d of %d windows are no plateau, at most %.0f are expected; %d are collapsed", missed, runs, most, collapsed)
			}
			t.Logf("%d of %d windows are no plateau, %d of them collapsed", missed+collapsed, runs, collapsed)
		})
	}
}

func TestStates(t *testing.T) {
	for _, of := range []struct {
		name  string
		level func(at float64) float64
		want  State
	}{
		{"rises", func(at float64) float64 { return 10 * at }, Improving},
		{"rises from below zero", func(at float64) float64 { return 10*at - 50 }, Improving},
		{"has risen", func(at float64) float64 { return 10 * min(1, 2*at) }, Plateau},
		{"falls", func(at float64) float64 { return 20 - 8*max(0, at-.7) }, Regressing},
		{"falls below zero", func(at float64) float64 { return 10*min(1, 2*at) - 60 - 8*max(0, at-.7) }, Regressing},
		{"collapses", func(at float64) float64 {
			if at > .9 {
				return 0
			}
			return 10 * min(1, 2*at)
		}, Collapsed},
		{"collapses below zero", func(at float64) float64 {
			if at > .8 {
				return -200
			}
			return -200 + 180*min(1, 3*at)
		}, Collapsed},
		{"was always good, and collapses", func(at float64) float64 {
			if at > .8 {
				return 1
			}
			return 20
		}, Collapsed},
	} {
		t.Run(of.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			right := 0
			for range 200 {
				if Of(learner(rng, 2000, 40, .3, of.level)).State == of.want {
					right++
				}
			}
			if right < 194 {
				t.Errorf("%s in %d of 200 runs", of.want, right)
			}
		})
	}
}

// TestTheIntervalHoldsTheChange checks the interval of a rising return.
func TestTheIntervalHoldsTheChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	const runs = 2000
	held := 0
	for range runs {
		p := Of(learner(rng, 2000, 40, .4, func(at float64) float64 { return 4 * at }))
		if real := 4 * float64(p.Units) / 2000; p.Low <= real && real <= p.High {
			held++
		}
	}
	if least := runs*.98 - 3*math.Sqrt(runs*.98*.02); float64(held) < least {
		t.Errorf("%d of %d intervals hold the change, at least %.0f are expected", held, runs, least)
	}
}

func TestTooLittleIsUnknown(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, points := range [][]Point{nil, make([]Point, 50), learner(rng, 180, 20, 0, flat(1)), learner(rng, 700, 100, 0, flat(1))} {
		if p := Of(points); p != (Progress{}) {
			t.Errorf("%d points: %+v", len(points), p)
		}
	}
	var still []Point
	for range 20 {
		still = append(still, Point{Units: 50, Mean: 7})
	}
	if p := Of(still); p.State != Plateau || p.Low != 0 || p.High != 0 || p.Level != 7 || p.Best != 7 {
		t.Errorf("a return that never varies: %+v", p)
	}
}
