package detectors

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestEmpiricalARL0OfAKnownRate(t *testing.T) {
	sample := make([]float64, 200)
	sample[17] = 1 // an alarm in every 200th value on average
	alarm := func(x float64) bool { return x == 1 }
	got := EmpiricalARL0(sample, 1, 200_000, alarm, func() {})
	if math.Abs(got.Mean-200) > 4*got.StandardError || got.Values != 200_000 {
		t.Errorf("%+v, want about 200 of 200,000 values", got)
	}
	if want := 200 / math.Sqrt(1000); math.Abs(got.StandardError/want-1) > .2 {
		t.Errorf("a standard error of %v, want about %v", got.StandardError, want)
	}
	if again := EmpiricalARL0(sample, 1, 200_000, alarm, func() {}); again != got {
		t.Errorf("%+v, the second time %+v", got, again)
	}
	if other := EmpiricalARL0(sample, 2, 200_000, alarm, func() {}); other == got {
		t.Errorf("another seed gives the same %+v", other)
	}
}

// For a detector without alarms, the mean is the number of values, as a lower limit.
func TestEmpiricalARL0WithoutAlarms(t *testing.T) {
	fed, resets := 0, 0
	got := EmpiricalARL0([]float64{1}, 1, 500, func(float64) bool { fed++; return false }, func() { resets++ })
	if got.Mean != 500 || !math.IsInf(got.StandardError, 1) || got.Alarms != 0 || fed != 500 || resets != 1 {
		t.Errorf("%+v after %d values and %d resets", got, fed, resets)
	}
}

func TestEmpiricalARL0ResetsAfterEachAlarm(t *testing.T) {
	since, resets := 0, 0
	alarm := func(float64) bool { since++; return since == 10 }
	got := EmpiricalARL0([]float64{1}, 1, 1000, alarm, func() { since = 0; resets++ })
	if got.Mean != 10 || got.Alarms != 100 || resets != 101 {
		t.Errorf("%+v after %d resets, want an alarm every 10 values", got, resets)
	}
}

// The standard error is right for the gauges: over seeds, their measured means vary by about as much.
func TestEmpiricalARL0StandardErrorHoldsForGauges(t *testing.T) {
	sample := normal(rand.New(rand.NewPCG(1, 44)), 500)
	adwin, pageHinkley := NewADWIN(.9), NewPageHinkley()
	for name, c := range map[string]struct {
		alarm func(float64) bool
		reset func()
	}{
		"ADWIN":        {adwin.Add, adwin.Reset},
		"Page-Hinkley": {pageHinkley.Add, pageHinkley.Reset},
	} {
		const seeds = 60
		var rates, promises []float64
		for seed := range uint64(seeds) {
			got := EmpiricalARL0(sample, seed, 30_000, c.alarm, c.reset)
			rates, promises = append(rates, 1/got.Mean), append(promises, got.StandardError/got.Mean)
		}
		mean, sd := meanAndDeviation(rates)
		promised, _ := meanAndDeviation(promises)
		t.Logf("%s: ARL0 %.0f, relative scatter %.3f, promised %.3f", name, 1/mean, sd/mean, promised)
		if ratio := sd / mean / promised; ratio < .5 || ratio > 1.5 {
			t.Errorf("%s: the estimates scatter by %.2f times what is promised", name, ratio)
		}
	}
}

func meanAndDeviation(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(deviation)
}

// TestGaugeARL0IsThatOfTheGauges compares both gauges, measured together, with each measured separately.
func TestGaugeARL0IsThatOfTheGauges(t *testing.T) {
	cuts, alarms := 0, 0
	for name, draw := range map[string]func(*rand.Rand) float64{
		"normal":      (*rand.Rand).NormFloat64,
		"large":       func(r *rand.Rand) float64 { return 1000 * r.NormFloat64() },
		"skewed":      func(r *rand.Rand) float64 { return 30 * math.Exp(2*r.NormFloat64()) },
		"few values":  func(r *rand.Rand) float64 { return float64(r.IntN(3)) },
		"rare values": func(r *rand.Rand) float64 { return 50 * math.Floor(r.Float64()*1.01) },
		"not finite":  func(r *rand.Rand) float64 { return 20 / float64(r.IntN(5)-2) },
	} {
		for seed := range uint64(3) {
			rng, sample := rand.New(rand.NewPCG(9, seed)), make([]float64, 400)
			for i := range sample {
				sample[i] = draw(rng)
			}
			adwin, pageHinkley := NewADWIN(ADWINDelta), NewPageHinkley()
			wantA := EmpiricalARL0(sample, seed, 30_000, adwin.Add, adwin.Reset)
			wantP := EmpiricalARL0(sample, seed, 30_000, pageHinkley.Add, pageHinkley.Reset)
			if a, p := GaugeARL0(sample, seed, 30_000); a != wantA || p != wantP {
				t.Errorf("%s, seed %d: %+v and %+v, want %+v and %+v", name, seed, a, p, wantA, wantP)
			}
			cuts, alarms = cuts+wantA.Alarms, alarms+wantP.Alarms
		}
	}
	if cuts == 0 || alarms == 0 {
		t.Errorf("%d alarms of ADWIN and %d of Page-Hinkley: nothing was compared", cuts, alarms)
	}
}

// BenchmarkGaugeARL0 measures the gauges of one baseline, together and separately.
func BenchmarkGaugeARL0(b *testing.B) {
	rng, sample := rand.New(rand.NewPCG(9, 9)), make([]float64, 500)
	for i := range sample {
		sample[i] = rng.NormFloat64()
	}
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			GaugeARL0(sample, 0, 30_000)
		}
	})
	b.Run("apart", func(b *testing.B) {
		for b.Loop() {
			adwin, pageHinkley := NewADWIN(ADWINDelta), NewPageHinkley()
			EmpiricalARL0(sample, 0, 30_000, adwin.Add, adwin.Reset)
			EmpiricalARL0(sample, 0, 30_000, pageHinkley.Add, pageHinkley.Reset)
		}
	})
}
