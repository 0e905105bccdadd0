package detectors

import (
	"math"
	"math/rand/v2"
)

// ARL0 is the measured mean number of values between false alarms of a detector.
type ARL0 struct {
	Mean          float64 // values fed, divided by alarms
	StandardError float64 // of Mean, if the times between alarms are exponential; infinite without an alarm
	Values        int     // values fed
	Alarms        int     // alarms among them; without one, Mean is Values, a lower limit
}

// EmpiricalARL0 measures the mean time between the false alarms of a detector on the distribution of a sample. It
// passes the detector values drawn from the sample with replacement. The detector is reset before the first value and
// after each alarm. The number of values is exact, which bounds the cost. The last run is cut off without an alarm; its
// values count, as estimation under censoring of exponential times requires (Epstein & Sobel 1953). Without an alarm,
// the true mean is above a third of Values with 95% confidence. The same seed produces the same result.
//
// The drawn values are independent. A stream whose values depend on each other has more false alarms than this. The
// sample must not be empty.
func EmpiricalARL0(sample []float64, seed uint64, values int, alarm func(x float64) bool, reset func()) ARL0 {
	rng := rand.New(rand.NewPCG(seed, 0))
	alarms := 0
	reset()
	for range values {
		if alarm(sample[rng.IntN(len(sample))]) {
			alarms++
			reset()
		}
	}
	return newARL0(values, alarms)
}

func newARL0(values, alarms int) ARL0 {
	if alarms == 0 {
		return ARL0{Mean: float64(values), StandardError: math.Inf(1), Values: values}
	}
	mean := float64(values) / float64(alarms)
	return ARL0{Mean: mean, StandardError: mean / math.Sqrt(float64(alarms)), Values: values, Alarms: alarms}
}

// GaugeARL0 measures for ADWIN, with its default delta, and for Page-Hinkley the same as EmpiricalARL0, but in less
// time: both receive the same draws, and an ADWIN that is reset at its first drift needs no variances of buckets.
func GaugeARL0(sample []float64, seed uint64, values int) (adwin, pageHinkley ARL0) {
	rng := rand.New(rand.NewPCG(seed, 0))
	a, p := firstWindow{ADWIN: *NewADWIN(ADWINDelta)}, NewPageHinkley()
	cuts, alarms := 0, 0
	for range values {
		x := sample[rng.IntN(len(sample))]
		if a.Add(x) {
			cuts++
			a.Reset()
		}
		if p.Add(x) {
			alarms++
			p.Reset()
		}
	}
	return newARL0(values, cuts), newARL0(values, alarms)
}
