//go:build benchdetection

package detectors

import (
	"math"
	"math/rand/v2"
)

// The settings of ADWIN in river and MOA: buckets of one size before two are merged, observations between checks of
// cuts, least observations of a part, and observations before the first check.
const (
	peerADWINBuckets = 5
	peerADWINClock   = 32
	peerADWINPart    = 5
	peerADWINGrace   = 10
)

// peerADWIN is Bifet & Gavalda's adaptive window (SIAM Data Mining 2007) as in river: an exponential histogram of
// sums in which every cut between two buckets is tested. It never shrinks here, because it would do so only at its
// first alarm.
type peerADWIN struct {
	rows                   [][]peerADWINBucket // row i: buckets of 2^i observations, oldest first
	width, total, variance float64             // of the window; variance is the sum of squares about the mean
	tick                   int
}

type peerADWINBucket struct{ total float64 }

// adwinPeer has the statistic log(1/delta) of the smallest delta at which a cut is an alarm. ADWIN's bound is so
// wide that frequent alarms need a delta above 1, which is no longer a probability.
func adwinPeer() peer {
	return peer{name: "ADWIN", start: func([]float64, *rand.Rand) watch { return (&peerADWIN{}).observe }}
}

func (a *peerADWIN) observe(x float64) float64 {
	a.insert(x)
	a.tick++
	if a.tick%peerADWINClock != 0 || a.width <= peerADWINGrace {
		return math.Inf(-1)
	}
	return a.surest()
}

func (a *peerADWIN) insert(x float64) {
	a.width++
	if a.width > 1 {
		off := x - a.total/(a.width-1)
		a.variance += (a.width - 1) * off * off / a.width
	}
	a.total += x
	a.push(0, peerADWINBucket{x})
	for row := 0; len(a.rows[row]) > peerADWINBuckets; row++ {
		merged := peerADWINBucket{a.rows[row][0].total + a.rows[row][1].total}
		a.rows[row] = append(a.rows[row][:0], a.rows[row][2:]...)
		a.push(row+1, merged)
	}
}

func (a *peerADWIN) push(row int, b peerADWINBucket) {
	if row == len(a.rows) {
		a.rows = append(a.rows, nil)
	}
	a.rows[row] = append(a.rows[row], b)
}

// surest returns log(1/delta) of the cut with the most evidence.
func (a *peerADWIN) surest() float64 {
	best := math.Inf(-1)
	oldN, oldTotal := 0.0, 0.0
	for row := len(a.rows) - 1; row >= 0; row-- {
		size := math.Ldexp(1, row)
		for _, b := range a.rows[row] {
			oldN += size
			oldTotal += b.total
			newN := a.width - oldN
			if oldN < peerADWINPart || newN < peerADWINPart {
				continue
			}
			best = max(best, a.evidence(oldN, newN, math.Abs(oldTotal/oldN-(a.total-oldTotal)/newN)))
		}
	}
	return best
}

// evidence solves difference = sqrt(2 m v d) + 2/3 m d for d, where v is the window's variance and d = log(2
// log(width)/delta), and returns log(1/delta).
func (a *peerADWIN) evidence(oldN, newN, difference float64) float64 {
	m := 1/(oldN-peerADWINPart+1) + 1/(newN-peerADWINPart+1)
	square, linear := 2*m*a.variance/a.width, 2*m/3
	root := (math.Sqrt(square+4*linear*difference) - math.Sqrt(square)) / (2 * linear)
	return root*root - math.Log(2*math.Log(a.width))
}
