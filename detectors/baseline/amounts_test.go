package baseline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/signals"
	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// purchases returns a stream of 1,000 values, of which the first usual values are 0.
func purchases(signal string, usual int, amount func(*rand.Rand) float64) *stream.Stream {
	rng := rand.New(rand.NewPCG(80, 1))
	q := &stream.Quantity{Name: signals.MainQuantity(signal)}
	for i := range 1000 {
		o := stream.Observed{Unit: int32(i)}
		if i >= usual {
			o.X = amount(rng)
		}
		q.Warm = append(q.Warm, o)
	}
	return &stream.Stream{Signal: signal, Quantities: []*stream.Quantity{q}}
}

// withSteps gives each unit of a stream the given number of steps, of which one differs from the usual value 0.
func withSteps(s *stream.Stream, steps float64) *stream.Stream {
	mean, sd := s.Quantities[0], &stream.Quantity{Name: signals.StepSD}
	for i := range mean.Warm {
		o := mean.Warm[i]
		mean.Warm[i].X /= steps
		o.X *= math.Sqrt((1 - 1/steps) / steps)
		sd.Warm = append(sd.Warm, o)
	}
	s.Quantities = append(s.Quantities, sd)
	return s
}

// In units of several steps, the steps that differ from the usual value count: their reward is the amount. Amounts that
// are always the same are not learned.
func TestAmountsOfSteps(t *testing.T) {
	differ := func(rng *rand.Rand) float64 { return float64(10 + rng.IntN(30)) }
	one, several := purchases("reward", 700, differ), withSteps(purchases("reward", 700, differ), 20)
	want, got := Amounts(one, nil).Quantity(signals.Amount)[0].Warm, Amounts(several, nil).Quantity(signals.Amount)[0].Warm
	if !slices.Equal(got, want) || len(want) != 300 {
		t.Errorf("amounts %v, want %v", got, want)
	}
	clicks := withSteps(purchases("reward", 700, func(*rand.Rand) float64 { return .3 }), 20)
	if q := Amounts(clicks, nil).Quantity(signals.Amount); q != nil {
		t.Errorf("clicks have the amounts %v", q[0].Warm)
	}
}

func TestWhatHasAmounts(t *testing.T) {
	differ := func(rng *rand.Rand) float64 { return rng.ExpFloat64() }
	reward := purchases("reward", 900, differ)
	ofSteps := purchases("outcome.click", 700, differ)
	for i := range ofSteps.Quantities[0].Warm {
		ofSteps.Quantities[0].Warm[i].Steps = 20
	}
	for name, c := range map[string]struct {
		of     *stream.Stream
		others []*stream.Stream
		want   int // number of amounts; 0 for no lesson
	}{
		"a tenth of the rewards":      {reward, nil, 100},
		"just enough":                 {purchases("reward", 960, differ), nil, 40},
		"fewer than enough":           {purchases("reward", 961, differ), nil, 0},
		"less than a third is usual":  {purchases("reward", 299, differ), nil, 0},
		"nearly a third":              {purchases("reward", 300, differ), nil, 700},
		"rewards of 0 and 1":          {purchases("reward", 700, func(*rand.Rand) float64 { return 1 }), nil, 0},
		"an outcome":                  {purchases("outcome.revenue", 850, differ), nil, 150},
		"a share of steps":            {ofSteps, nil, 0},
		"the return with rewards":     {purchases("return", 850, differ), []*stream.Stream{reward}, 0},
		"the return alone":            {purchases("return", 850, differ), nil, 150},
		"an observation":              {purchases("observation.0", 850, differ), nil, 0},
		"a signal that was not there": {&stream.Stream{Signal: "reward"}, nil, 0},
		"nothing but the usual value": {purchases("reward", 1000, differ), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := Amounts(c.of, append(c.others, c.of)).Quantity(signals.Amount)
			if (len(q) > 0) != (c.want > 0) || len(q) > 0 && len(q[0].Warm) != c.want {
				t.Fatalf("%+v, want %d amounts", q, c.want)
			}
			if len(q) > 0 && (q[0].Warm[0].Unit != int32(1000-c.want) || q[0].Warm[0].X == 0) {
				t.Errorf("the first amount is %+v", q[0].Warm[0])
			}
		})
	}
}
