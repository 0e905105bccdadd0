package detectors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// plainEvidence returns log B of values as the product of their predictive densities, which are Student's.
func plainEvidence(scores []float64) float64 {
	mean, weight, shape, scale := 0., float64(onsetWeight), float64(onsetShape), float64(onsetScale)
	sum := 0.0
	for _, z := range scores {
		predictive := distuv.StudentsT{Mu: mean, Sigma: math.Sqrt(scale * (weight + 1) / (shape * weight)), Nu: 2 * shape}
		sum += predictive.LogProb(z) - distuv.UnitNormal.LogProb(z)
		scale += weight * (z - mean) * (z - mean) / (2 * (weight + 1))
		mean = (weight*mean + z) / (weight + 1)
		weight++
		shape += .5
	}
	return sum
}

func TestOnsetEvidenceIsThatOfTheProductOfPredictions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, sample := range [][]float64{normal(rng, 200), tied(rng, 300)} {
		ranks := NewRanks(sample)
		mean, square := 0., 0.
		for _, x := range sample {
			mean += ranks.own(x).z / float64(len(sample))
		}
		for _, x := range sample {
			square += (ranks.own(x).z - mean) * (ranks.own(x).z - mean) / float64(len(sample))
		}
		evidence := newOnsetEvidence(ranks)
		var scores []float64
		for _, x := range tied(rng, 60) {
			evidence.add(x)
			scores = append(scores, (ranks.of(x).z-mean)/math.Sqrt(square))
			if got, want := evidence.logRatio(), plainEvidence(scores); math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("log B of %d values %v, want %v", len(scores), got, want)
			}
		}
	}
}

// The evidence of an atom follows Laplace's rule of succession: after a change it starts without data, before it
// with the baseline.
func TestOnsetEvidenceOfAnAtom(t *testing.T) {
	rare := make([]float64, 300)
	rare[0], rare[1] = 1, 2
	for name, sample := range map[string][]float64{"nearly constant": rare, "two values": {0, 1, 0, 0, 1, 0, 0}} {
		evidence := newOnsetEvidence(NewRanks(sample))
		var baseAtom, baseOther, atom, other float64
		for _, x := range sample {
			if x == 0 {
				baseAtom++
			} else {
				baseOther++
			}
		}
		want := 0.0
		for _, x := range []float64{0, 5, 0, 0, -3, 2, 0, 7} {
			evidence.add(x)
			changed, unchanged := (other+1)/(atom+other+2), (baseOther+other+1)/(baseAtom+baseOther+atom+other+2)
			if x == 0 {
				want += math.Log((1 - changed) / (1 - unchanged))
				atom++
			} else {
				want += math.Log(changed / unchanged)
				other++
			}
			if got := evidence.logRatio(); math.Abs(got-want) > 1e-9 {
				t.Fatalf("%s: log B %v after %v, want %v", name, got, x, want)
			}
		}
	}
}

// The other values have separate scores, so a change of only these values is detected.
func TestOnsetBesideAnAtom(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	spent := func(n int, more float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			if rng.Float64() < .4 {
				x[i] = math.Exp(more + .5*rng.NormFloat64())
			}
		}
		return x
	}
	ranks := NewRanks(spent(500, 0))
	if o := FindOnset(append(spent(200, 0), spent(100, 1)...), ranks, 1, 200); o.From > 200 || o.To < 200 || o.To-o.From > 30 {
		t.Errorf("onset %+v, want it around 200", o)
	}
}

// onsetAtAlarm passes values to a test until it raises an alarm for a change after 400 values. It returns how far
// the estimate, the ends of its interval and the start of the walk lie from the change, and the delay. Runs with an
// earlier alarm are drawn again.
func onsetAtAlarm(rng *rand.Rand, ranks *Ranks, test *RankTest, changed func() float64) (o Onset, start, delay int) {
	const change = 400
	for {
		test.Reset()
		var values []float64
		for {
			x := rng.NormFloat64()
			if len(values) >= change {
				x = changed()
			}
			test.Observe(x, int64(len(values)), false)
			values = append(values, x)
			if top := furthest(test); top.Score() >= 1 {
				if len(values) <= change {
					break
				}
				skip := max(0, len(values)-512)
				o = FindOnset(values[skip:], ranks, test.Factor, int(top.StartedAt)-skip)
				o.At, o.From, o.To = o.At+skip-change, o.From+skip-change, o.To+skip-change
				return o, int(top.StartedAt) - change, len(values) - change
			}
		}
	}
}

func furthest(test *RankTest) *CUSUM {
	top := &test.Branches[0]
	for i := range test.Branches {
		if b := &test.Branches[i]; b.Score() > top.Score() {
			top = b
		}
	}
	return top
}

func TestSimOnsetIntervalHoldsTheChange(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	changes := []struct {
		name    string
		mean    float64
		sd      float64
		largest float64 // mean error of the estimate in values, 3 standard errors above what was measured over 8,000 runs
	}{
		{"mean +0.5 sd", .5, 1, 19},
		{"mean +1 sd", 1, 1, 4.2},
		{"mean +2 sd", 2, 1, 1.4},
		{"spread x2", 0, 2, 5.5},
		{"spread x0.5", 0, .5, 4.8},
	}
	const runs, perBaseline = 1000, 20
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			var held, width, off, walkOff, delays float64
			for range runs / perBaseline {
				sample := normal(rng, 500)
				ranks := NewRanks(sample)
				test := NewRankTest(sample, ranks, 1)
				test.Arm(1. / 20_000 / 110)
				for range perBaseline {
					o, start, delay := onsetAtAlarm(rng, ranks, test, func() float64 { return c.mean + c.sd*rng.NormFloat64() })
					if o.From <= 0 && o.To >= 0 {
						held++
					}
					width += float64(o.To-o.From+1) / runs
					off += math.Abs(float64(o.At)) / runs
					walkOff += math.Abs(float64(start)) / runs
					delays += float64(delay) / runs
				}
			}
			t.Logf("interval of %.1f values holds the change in %.1f%% of %d alarms; estimate off by %.1f, last zero by %.1f; delay %.1f",
				width, 100*held/runs, runs, off, walkOff, delays)
			if least := .9 - 3*math.Sqrt(.9*.1/runs); held/runs < least {
				t.Errorf("the 90%% interval holds the change in %.1f%% of alarms", 100*held/runs)
			}
			if off > c.largest {
				t.Errorf("the estimate is off by %.1f values, want at most %.1f", off, c.largest)
			}
		})
	}
}

// Clicks: a long run of equal values between two clicks is not a change.
func TestSimOnsetIntervalHoldsTheChangeOfClicks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs, perBaseline, change, height = 1000, 20, 400, 8
	for _, c := range []struct{ p, changed float64 }{{.08, .2}, {.3, .6}, {.3, .15}, {.5, .25}} {
		t.Run(fmt.Sprintf("%v to %v", c.p, c.changed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(8, 8))
			clicks := func(n int, p float64) []float64 {
				x := make([]float64, n)
				for i := range x {
					if rng.Float64() < p {
						x[i] = 1
					}
				}
				return x
			}
			held, width := 0., 0.
			for range runs / perBaseline {
				ranks := NewRanks(clicks(1000, c.p))
				for range perBaseline {
					values, sum := clicks(change, c.p), 0.
					for sum < height {
						x := clicks(1, c.changed)
						values = append(values, x...)
						sum = max(0, sum+math.Log((1-c.changed)/(1-c.p))+x[0]*math.Log(c.changed*(1-c.p)/(c.p*(1-c.changed))))
					}
					skip := max(0, len(values)-512)
					o := FindOnset(values[skip:], ranks, 1, change-skip)
					if o.From+skip <= change && change <= o.To+skip {
						held++
					}
					width += float64(o.To-o.From+1) / runs
				}
			}
			t.Logf("interval of %.1f values holds the change in %.1f%% of %d alarms", width, 100*held/runs, runs)
			if held/runs < .9-3*math.Sqrt(.9*.1/runs) {
				t.Errorf("the 90%% interval holds the change in %.1f%% of alarms", 100*held/runs)
			}
		})
	}
}

func TestOnsetOfFewValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	ranks := NewRanks(normal(rng, 500))
	before := normal(rng, 60)
	for changed := 1; changed <= 4; changed++ {
		values := append(before[:60:60], []float64{5, 6, 4, 7}[:changed]...)
		o := FindOnset(values, ranks, 1, 60)
		if o.From > o.At || o.At > o.To || o.From < 0 || o.To >= len(values) {
			t.Fatalf("%d changed values: onset %+v of %d values", changed, o, len(values))
		}
		if changed >= 3 && o.At != 60 {
			t.Errorf("%d changed values: onset at %d, want 60", changed, o.At)
		}
	}
	for _, start := range []int{-5, 0, 7} {
		if o := FindOnset([]float64{3}, ranks, 1, start); o != (Onset{}) {
			t.Errorf("one value and a walk from %d: onset %+v", start, o)
		}
	}
}

func TestOnsetOfASlowDriftLiesOnIt(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	ranks := NewRanks(normal(rng, 500))
	for range 50 {
		values := normal(rng, 400)
		for i := 100; i < 400; i++ {
			values[i] += 1.5 * float64(i-100) / 300
		}
		if o := FindOnset(values, ranks, 1, 170); o.From > o.At || o.At > o.To || o.At < 60 || o.At > 330 {
			t.Errorf("onset %+v of a drift between 100 and 400", o)
		}
	}
}

// Dependent values are weaker evidence, so the interval is wider.
func TestOnsetOfDependentValuesIsLessCertain(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	ranks := NewRanks(normal(rng, 500))
	values := normal(rng, 200)
	for i := 150; i < 200; i++ {
		values[i]++
	}
	sharp, vague := FindOnset(values, ranks, 1, 150), FindOnset(values, ranks, 3, 150)
	if vague.At != sharp.At || vague.To-vague.From <= sharp.To-sharp.From {
		t.Errorf("onset %+v with a factor of 3, %+v without", vague, sharp)
	}
}

func TestOnsetOfNovelValuesInANearlyConstantQuantity(t *testing.T) {
	sample := make([]float64, 300)
	sample[10] = 1
	values := make([]float64, 100)
	for _, i := range []int{80, 81, 83, 84, 86, 87, 88, 90, 91, 93, 94, 96, 98, 99} {
		values[i] = 3
	}
	if o := FindOnset(values, NewRanks(sample), 1, 80); o.At != 80 || o.From < 60 || o.To > 84 {
		t.Errorf("onset %+v, want 80", o)
	}
}

// If clicks stop, the onset is near the last one, not where the baseline's upper limit no longer explains the
// absence.
func TestOnsetOfRareValuesThatStop(t *testing.T) {
	ranks := NewRanks(rareSample(500, 19))
	rng := rand.New(rand.NewPCG(64, 0))
	for run := range 20 {
		values := make([]float64, 600)
		for i := range 260 {
			if rng.Float64() < .038 {
				values[i] = 1
			}
		}
		o := FindOnset(values, ranks, 1, 260)
		if o.At < 100 || o.At > 320 || o.From > 260 || o.To < 240 {
			t.Errorf("run %d: %+v, want it around 260", run, o)
		}
	}
}
