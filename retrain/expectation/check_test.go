package expectation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

func repeated(x float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = x
	}
	return out
}

func alternating(x, y float64, n int) []float64 {
	out := repeated(x, n)
	for i := 1; i < n; i += 2 {
		out[i] = y
	}
	return out
}

func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name      string
		condition Condition
		low, high float64 // of the reference; no reference if both are 0
		values    []float64
		want      Verdict
		after     int
	}{
		{"a mean above", Condition{"mean", ">", 480, 200}, 0, 0, alternating(495, 505, 200), Met, 20},
		{"a mean below", Condition{"mean", ">", 480, 200}, 0, 0, alternating(455, 465, 200), Missed, 20},
		{"a mean that is to be small", Condition{"mean", "<", 480, 200}, 0, 0, alternating(455, 465, 200), Met, 20},
		{"a mean at the value", Condition{"mean", ">", 480, 200}, 0, 0, alternating(470, 490, 200), Inconclusive, 200},
		{"fewer than a mean needs", Condition{"mean", ">", 480, 19}, 0, 0, alternating(495, 505, 19), Inconclusive, 19},
		{"values that never differ are waited for", Condition{"mean", ">", 480, 50}, 0, 0, repeated(500, 50), Met, 50},
		{"and may be at the value", Condition{"mean", ">=", 500, 50}, 0, 0, repeated(500, 50), Met, 50},
		{"but not above it", Condition{"mean", ">", 500, 50}, 0, 0, repeated(500, 50), Missed, 50},
		{"the reference has failures", Condition{"mean", ">", 480, 50}, 8, 500, repeated(500, 50), Inconclusive, 50},
		{"which more units rule out", Condition{"mean", ">", 480, 200}, 8, 500, repeated(500, 200), Met, 102},
		{"ones alone may yet have a zero", Condition{"mean", ">", .9, 20}, 0, 0, repeated(1, 20), Inconclusive, 20},
		{"a median above", Condition{"median", ">", 1, 100}, 0, 0, repeated(2, 100), Met, 12},
		{"a median that ties with the value", Condition{"median", ">", 1, 100}, 0, 0, repeated(1, 100), Missed, 12},
		{"a median of at least the value", Condition{"median", ">=", 1, 100}, 0, 0, repeated(1, 100), Met, 12},
		{"a median of at most the value", Condition{"median", "<=", 1, 100}, 0, 0, repeated(1, 100), Met, 12},
		{"a median below", Condition{"median", "<", 1, 100}, 0, 0, repeated(1, 100), Missed, 12},
		{"a tenth above", Condition{"q10", ">", 1, 100}, 0, 0, repeated(2, 100), Met, 50},
		{"a tenth below", Condition{"q10", ">", 1, 100}, 0, 0, repeated(0, 100), Missed, 5},
		{"a spread below", Condition{"sd", "<", 1, 200}, 0, 0, alternating(-.1, .1, 200), Met, 20},
		{"a spread above", Condition{"sd", "<", 1, 200}, 0, 0, alternating(-3, 3, 200), Missed, 20},
		{"no spread at all", Condition{"sd", "<=", 0, 30}, 0, 0, repeated(3, 30), Met, 30},
	} {
		c := New(tc.condition)
		if tc.low != tc.high {
			c.Refer(1, tc.low, tc.high)
		}
		for _, x := range tc.values {
			c.Add(math.NaN())
			c.Add(x)
		}
		if c.Verdict != tc.want || c.Units() != tc.after {
			t.Errorf("%s: %q after %d units (%s), want %q after %d", tc.name, c.Verdict, c.Units(), c.Evidence("return", "episodes"), tc.want, tc.after)
		}
	}
}

func TestEvidenceInWords(t *testing.T) {
	for _, tc := range []struct {
		condition Condition
		values    []float64
		want      string
	}{
		{Condition{"mean", ">", 480, 200}, nil, "no values of return in episodes"},
		{Condition{"mean", ">", 480, 200}, []float64{1, 2}, "the mean of return over 2 episodes is 1.5; a result needs at least 20 episodes"},
		{
			Condition{"mean", ">", 480, 200},
			alternating(495, 505, 20),
			"the mean of return over 20 episodes is 500 (95% confidence interval: 493.4 to 506.6)",
		},
		{
			Condition{"median", ">", 480, 200},
			alternating(1, 505, 20),
			"50.0% of the values of return over 20 episodes are at or below 480 (95% confidence interval: 21.3% to 78.7%); if 480 were the median, it would be 50.0%",
		},
		{
			Condition{"sd", "<", 480, 200},
			alternating(1, 3, 20),
			"the sd of return over 20 episodes is 1.026 (95% confidence interval: 0.713 to 1.75)",
		},
	} {
		c := New(tc.condition)
		for _, x := range tc.values {
			c.Add(x)
		}
		if got := c.Evidence("return", "episodes"); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

// If the true share is the tested one, the mixture is a martingale: its mean is 1 after any number of units, and
// smaller if the share lies on the other side.
func TestShareMixtureIsAMartingale(t *testing.T) {
	const n = 12
	mean := func(p, truth float64, below bool) float64 {
		sum := 0.
		for k := range n + 1 {
			c := New(Condition{Statistic: "median", Comparison: ">", Over: 50})
			c.Below, c.Values.N = int64(k), n
			binomial, _ := math.Lgamma(n + 1)
			hits, _ := math.Lgamma(float64(k + 1))
			others, _ := math.Lgamma(float64(n - k + 1))
			probability := math.Exp(binomial - hits - others + float64(k)*math.Log(truth) + float64(n-k)*math.Log1p(-truth))
			sum += probability * math.Exp(c.evidence(p, p, below))
		}
		return sum
	}
	for _, p := range []float64{.1, .5, .9} {
		for _, below := range []bool{true, false} {
			if got := mean(p, p, below); math.Abs(got-1) > 1e-9 {
				t.Errorf("share %g, below %t: mean %g, want 1", p, below, got)
			}
		}
		if got := mean(p, p+.05, true); got > 1 {
			t.Errorf("share %g, below, truth above: mean %g, want at most 1", p, got)
		}
		if got := mean(p, p-.05, false); got > 1 {
			t.Errorf("share %g, above, truth below: mean %g, want at most 1", p, got)
		}
	}
}

// The ends of the interval are the means whose Bayes factor against the mixture is 1/alpha.
func TestHalfWidthInvertsTheBayesFactor(t *testing.T) {
	const over = 200
	for _, n := range []float64{8, 20, 33.3, 200, 5000} {
		g := spread() / over
		square := n * math.Pow(halfWidth(n, over), 2)
		factor := math.Pow(1+n*g, -.5) * math.Pow((1+square/(n-1))/(1+square/((n-1)*(1+n*g))), n/2)
		if math.Abs(factor*alpha-1) > 1e-9 {
			t.Errorf("after %g units: Bayes factor %g, want %g", n, factor, 1/alpha)
		}
	}
	if w := halfWidth(2, over); !math.IsInf(w, 1) {
		t.Errorf("after 2 units: half width %g, want none", w)
	}
}

func TestIntervalIsNarrowestAtTheEnd(t *testing.T) {
	at := halfWidth(1000, 1000)
	for _, over := range []float64{500, 800, 1250, 2000} {
		if other := halfWidth(1000, over); other <= at {
			t.Errorf("tuned for %g units: half width %g after 1000, tuned for them %g", over, other, at)
		}
	}
}

// The worst known unit only widens the interval.
func TestIntervalContainsTheOneWithoutAllowance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := New(Condition{"mean", ">", 0, 100})
	for range 100 {
		c.Add(rng.ExpFloat64())
		if c.Units() < leastUnits || c.Verdict != Open {
			continue
		}
		low, high := c.Interval()
		half := halfWidth(float64(c.Values.N), 100) * math.Sqrt(c.Values.M2/float64(c.Values.N-1))
		if low > c.Values.Mean-half || high < c.Values.Mean+half {
			t.Errorf("after %d units %g to %g, want more than %g about %g", c.Units(), low, high, half, c.Values.Mean)
		}
	}
}

// A check that was saved and restored after any unit ends in the same state, bit for bit.
func TestCheckIsRestored(t *testing.T) {
	format := saved.Format[Wire]{Version: 1}
	for _, statistic := range []string{"mean", "median", "sd", "q10", "q90"} {
		rng := rand.New(rand.NewPCG(3, 4))
		whole := New(Condition{statistic, ">", .8, 60})
		whole.Refer(1.2, math.Inf(1), 7)
		parts := *whole
		for range 60 {
			x := rng.ExpFloat64()
			whole.Add(x)
			parts.Add(x)
			part, err := format.Encode(parts.Wire())
			if err != nil {
				t.Fatal(err)
			}
			wire, err := format.Decode(part)
			if err != nil {
				t.Fatal(err)
			}
			parts = *wire.Live()
			if parts != *whole {
				t.Fatalf("%s: restored %+v, want %+v", statistic, parts, *whole)
			}
		}
		if whole.Verdict == Open {
			t.Errorf("%s: open after all units", statistic)
		}
	}
}

func TestSimFalseVerdictsAreRare(t *testing.T) {
	const runs, over = 500, 200
	most := alpha/2 + 3*math.Sqrt(alpha/2*(1-alpha/2)/runs) // upper limit for the estimate if the true probability is alpha/2
	for _, statistic := range []string{"mean", "median", "q10", "sd"} {
		for _, l := range laws() {
			if _, has := l.truth(statistic); !has || l.beyond(statistic) {
				continue
			}
			r := l.simulate(statistic, over, runs, 0)
			if r.met > most || r.missed > most {
				t.Errorf("%s of %s: falsely met %.4f, falsely missed %.4f, want at most %.4f", statistic, l.name, r.met, r.missed, most)
			}
		}
	}
}

func TestPower(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, tc := range []struct {
		statistic string
		shift     float64
		least     float64 // least share of the runs that are met: three standard errors below the measured one
	}{
		{"mean", .25, .65}, {"mean", .5, .99}, {"median", .25, .49}, {"median", .5, .98}, {"q10", .5, .74},
	} {
		if r := laws()[0].simulate(tc.statistic, 200, 1000, tc.shift); r.met < tc.least {
			t.Errorf("%s, %g sd above the value: met %.3f, want at least %.2f", tc.statistic, tc.shift, r.met, tc.least)
		}
	}
}

// The earlier level is an estimate itself: units with the distribution of the sample are rarely found to be worse.
func TestLevelBeforeHasAnError(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	const runs, over = 1000, 200
	most := alpha/2 + 3*math.Sqrt(alpha/2*(1-alpha/2)/runs)
	for _, tc := range []struct {
		statistic, comparison string
		fall                  float64
		least, most           float64 // share of the runs that are found to be worse
	}{
		{"mean", ">", 0, 0, most}, {"mean", ">", -1, .99, 1.01}, {"median", ">", 0, 0, most}, {"median", ">", -1, .95, 1.01}, {"sd", "<", 0, 0, most},
	} {
		worse := make([]float64, runs)
		parallel(runs, func(i int) {
			rng := rand.New(rand.NewPCG(uint64(i), 11))
			sample := make([]float64, 200)
			for k := range sample {
				sample[k] = rng.NormFloat64()
			}
			before := New(Condition{tc.statistic, tc.comparison, 5, over}).Before(sample)
			for before.Verdict == Open {
				before.Add(rng.NormFloat64() + tc.fall)
			}
			if before.Verdict == Missed {
				worse[i] = 1
			}
		})
		share := 0.
		for _, w := range worse {
			share += w / runs
		}
		if share < tc.least || share > tc.most {
			t.Errorf("%s %g sd lower than before: called worse in %.3f, want %.3f to %.3f", tc.statistic, -tc.fall, share, tc.least, tc.most)
		}
	}
	if b := New(Condition{"mean", ">", 5, over}).Before(make([]float64, leastUnits-1)); b != nil {
		t.Errorf("a level of few units: %+v", b)
	}
}

func TestStatisticOfASample(t *testing.T) {
	sample := []float64{9, 1, 2, 8, 3, 7, 4, 6, 5, 10}
	for statistic, want := range map[string]float64{"mean": 5.5, "sd": 3.0276503540974917, "q10": 1, "median": 5, "q90": 9} {
		if got := (Condition{Statistic: statistic}).of(sample); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", statistic, got, want)
		}
	}
}

// The estimate of a mean and of an sd is known; for a quantile, only the number of units below the value is.
func TestEstimate(t *testing.T) {
	for statistic, want := range map[string]float64{"mean": 3, "sd": 2, "median": 0} {
		c := New(Condition{Statistic: statistic, Comparison: ">", Value: want, Over: 200}) // nothing decides it
		if _, known := c.Estimate(); known {
			t.Errorf("%s: an estimate without units", statistic)
		}
		for i := range 100 {
			c.Add(float64(1 + 4*(i%2)))
		}
		got, known := c.Estimate()
		if known != (want != 0) || math.Abs(got-want) > .0101 {
			t.Errorf("%s: %g, %t, want %g", statistic, got, known, want)
		}
	}
}

// Bounds have three significant digits, unless the interval is so narrow that both would look alike.
func TestBoundsAreShort(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{.0048973, 3.7319, "0.0049 to 3.73"},
		{480.41, 499.33, "480.4 to 499.3"},
		{1.0001234, 1.0009876, "1.0001 to 1.001"},
		{0, 1, "0 to 1"},
		{2, 2, "2 to 2"},
		{math.Inf(-1), math.Inf(1), "-Inf to +Inf"},
	} {
		if got := bound(c.low, c.high-c.low) + " to " + bound(c.high, c.high-c.low); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}
