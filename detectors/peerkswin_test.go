//go:build benchdetection

package detectors

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The settings of KSWIN in river: a window of peerKSWINWindow observations. The last peerKSWINPart of them are
// tested against as many that are drawn from the others.
const (
	peerKSWINWindow = 100
	peerKSWINPart   = 30
)

// peerKSWINUsual is the statistic with a p-value below river's alpha of .005 (p = .0065 at 13/30 and .0025 at
// 14/30).
const peerKSWINUsual = 14

// kswinPeer is Raab, Heusinger & Schleif's windowed Kolmogorov-Smirnov test (Neurocomputing 2020). Its statistic,
// the largest difference of the two counting functions, is a whole number. A random fraction is added to it, so
// that a threshold between two numbers is an alarm at the lower one with some probability, and every ARL0 can be
// reached.
func kswinPeer() peer {
	return peer{name: "KSWIN", start: func(_ []float64, rng *rand.Rand) watch {
		var window []float64
		earlier, latest := make([]float64, peerKSWINWindow-peerKSWINPart), make([]float64, peerKSWINPart)
		return func(x float64) float64 {
			window = append(window, x)
			if len(window) < peerKSWINWindow {
				return math.Inf(-1)
			}
			window = window[len(window)-peerKSWINWindow:]
			copy(latest, window[peerKSWINWindow-peerKSWINPart:])
			copy(earlier, window)
			for i := range peerKSWINPart {
				j := i + rng.IntN(len(earlier)-i)
				earlier[i], earlier[j] = earlier[j], earlier[i]
			}
			return float64(largestGap(earlier[:peerKSWINPart], latest)) + rng.Float64()
		}
	}}
}

// largestGap is the largest difference between the counting functions of two samples without ties, which it sorts.
func largestGap(a, b []float64) int {
	slices.Sort(a)
	slices.Sort(b)
	i, j, gap := 0, 0, 0
	for i < len(a) && j < len(b) {
		if a[i] < b[j] {
			i++
		} else {
			j++
		}
		gap = max(gap, i-j, j-i)
	}
	return gap
}
