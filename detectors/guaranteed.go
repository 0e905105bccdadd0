package detectors

import (
	"errors"
	"fmt"
	"math"
)

// Side is the side of its mean on which a Guaranteed test looks for change.
type Side uint8

// The sides: a conditional mean below the given one, above it, or either.
const (
	Below Side = iota
	Above
	Both
)

// guaranteedBets is the number of stakes of a Guaranteed test on one side.
const guaranteedBets = 8

// largestStake is the first of the stakes; each is half of the one before. It is below 1, so that no single value can
// lose all evidence.
const largestStake = .9

// mostEvidence caps the evidence of a stake, far above any threshold, so that it cannot overflow in a long run.
const mostEvidence = 1e300

// ErrNotInUnitInterval is returned for a value that a Guaranteed test does not accept.
var ErrNotInUnitInterval = errors.New("not between 0 and 1")

// Guaranteed tests whether values in [0, 1] keep a mean mu that is known rather than estimated. It is the
// Shiryaev-Roberts e-detector (Shin, Ramdas & Rinaldo, "E-detectors: a nonparametric framework for sequential change
// detection", 2022). For a stake lambda,
//
//	above:  L = 1 + lambda (x/mu - 1)              below:  L = 1 + lambda ((1-x)/(1-mu) - 1)
//	R <- L (R + 1),   alarm: mean of the R over the stakes (and sides) >= N
//
// While the mean of each value given all before it is at most mu (above), at least mu (below) or mu (both), L has a
// conditional mean of at most 1. Therefore the mean of the R after t values is at most t, and the mean number of values
// to an alarm is at least N, whatever the distribution and the dependence of the values. The stakes are .9, .45, .225,
// ...
//
// N counts values. Exported fields are saved.
type Guaranteed struct {
	Mean float64 // mu
	N    float64 // threshold: the mean number of values to a false alarm is at least this
	Side Side
	Up   [guaranteedBets]float64 // R by stake, for a mean above; 0 if that side is not tested
	Down [guaranteedBets]float64 // R by stake, for a mean below
}

// NewGuaranteed returns a test of a mean strictly between 0 and 1 against an N above 1, or an error for other
// values.
func NewGuaranteed(mean, n float64, side Side) (*Guaranteed, error) {
	switch {
	case !(mean > 0 && mean < 1):
		return nil, fmt.Errorf("mean %v: must be greater than 0 and less than 1", mean)
	case !(n > 1) || n > mostEvidence:
		return nil, fmt.Errorf("%v values between false alarms: must be greater than 1 and at most %g", n, mostEvidence)
	case side > Both:
		return nil, fmt.Errorf("unknown side %d", side)
	}
	return &Guaranteed{Mean: mean, N: n, Side: side}, nil
}

// Observe adds a value. It refuses NaN and values outside [0, 1] with ErrNotInUnitInterval and does not change:
// clipping the value instead would break the guarantee.
func (g *Guaranteed) Observe(x float64) error {
	if !(x >= 0 && x <= 1) {
		return fmt.Errorf("value %v: %w", x, ErrNotInUnitInterval)
	}
	if g.Side != Below {
		bet(&g.Up, x/g.Mean-1)
	}
	if g.Side != Above {
		bet(&g.Down, (1-x)/(1-g.Mean)-1)
	}
	return nil
}

// bet updates the evidence of every stake with a value's gain, which is at least -1 and has mean 0 or less without a
// change.
func bet(evidence *[guaranteedBets]float64, gain float64) {
	stake := largestStake
	for i := range evidence {
		evidence[i] = min(mostEvidence, (1+stake*gain)*(evidence[i]+1))
		stake /= 2
	}
}

// Evidence returns the mean of R over the stakes and the sides tested; an alarm is an evidence of at least N.
func (g *Guaranteed) Evidence() float64 {
	share := 1. / guaranteedBets
	if g.Side == Both {
		share /= 2
	}
	sum := 0.0
	for i := range g.Up {
		sum += share*g.Up[i] + share*g.Down[i]
	}
	return sum
}

// Score returns log Evidence / log N, or 0 if that is negative; 1 is the threshold.
func (g *Guaranteed) Score() float64 {
	return max(0, math.Log(g.Evidence())/math.Log(g.N))
}

// Cap lowers evidence above the threshold to the threshold, so that it falls after an alarm as soon as the mean is kept
// again.
func (g *Guaranteed) Cap() {
	if over := g.Evidence() / g.N; over > 1 {
		for i := range g.Up {
			g.Up[i] /= over
			g.Down[i] /= over
		}
	}
}

// Reset sets all evidence back to zero.
func (g *Guaranteed) Reset() {
	g.Up, g.Down = [guaranteedBets]float64{}, [guaranteedBets]float64{}
}
