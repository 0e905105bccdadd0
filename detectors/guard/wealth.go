package guard

import "math"

// bets is the number of stakes. Each is half of the one before.
const bets = 8

// largestStake is below 1, so that no single value can lose all evidence.
const largestStake = .9

// mostEvidence caps the evidence of a stake, far beyond any threshold.
const mostEvidence = 1e300

// wealth is the evidence that values in [0, 1] exceed a mean that they must keep. It is a mixture of betting processes
// (Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", 2024), one for each stake and each
// time at which the values may have begun to exceed it:
//
//	bet <- bet + 1/((u+1)(u+2)) at the beginning of unit u, and for each value x
//	bet <- bet * (1 + stake (x/mean - 1))
//	evidence = mean of the bets over the stakes + 1/(u+2)
//
// While the mean of each value, given all before it, is at most the one to keep, the evidence is a nonnegative
// supermartingale that begins at 1. So the chance that it ever reaches 1/alpha is at most alpha (Ville), whatever the
// distribution and the dependence of the values.
//
// This needs the values in an order in which "all before it" does not depend on them. The order of the events of
// all agents together is such an order: let F(k) be the first k steps of the merged telemetry. The stakes are
// constants, and F(k) determines whether a unit begins before step k+1, because that depends on which episodes have
// ended. So E[bet(k+1) | F(k)] <= bet(k) for each bet, whichever agent takes step k+1 and whatever ends its
// episode. The order of the ends of episodes does not qualify: of those that end first, more end because of a cost.
// See also Howard et al., "Time-uniform Chernoff bounds via nonnegative supermartingales", 2020, on
// supermartingales and optional stopping.
type wealth struct {
	units int64
	bets  [bets]float64
	logs  [bets]float64 // of the factors that the bets were multiplied by since logs was last cleared
}

// odds holds the logarithms of the factors by which a value of 0 and a value of 1 multiply the bets of each stake.
type odds struct{ zero, one [bets]float64 }

// newOdds returns the odds for a mean above 0 and below 1.
func newOdds(mean float64) odds {
	var o odds
	stake := largestStake
	for i := range bets {
		o.zero[i], o.one[i] = math.Log1p(-stake), math.Log1p(stake*(1/mean-1))
		stake /= 2
	}
	return o
}

// begin begins a unit.
func (w *wealth) begin() {
	u := float64(w.units)
	for i := range w.bets {
		w.bets[i] += 1 / ((u + 1) * (u + 2))
	}
	w.units++
}

// bet adds n values with the sum c. The factor of values in [0, 1] with a given sum is smallest if they are 0 or 1,
// so the evidence is a lower bound for other values.
func (w *wealth) bet(o *odds, n, c float64) {
	for i := range w.bets {
		w.multiply(i, (n-c)*o.zero[i]+c*o.one[i])
	}
}

// multiply multiplies the bets of a stake by a factor with the given logarithm.
func (w *wealth) multiply(i int, log float64) {
	w.logs[i] += log
	w.bets[i] = min(mostEvidence, w.bets[i]*math.Exp(log))
}

// evidence returns the evidence, which starts at 1.
func (w *wealth) evidence() float64 {
	sum := 0.
	for _, b := range w.bets {
		sum += b / bets
	}
	return sum + 1/float64(w.units+1)
}
