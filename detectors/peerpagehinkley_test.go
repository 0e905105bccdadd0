//go:build benchdetection

package detectors

import (
	"math"
	"math/rand/v2"
)

// The settings of Page-Hinkley in river.
const (
	peerPageHinkleyDelta  = .005
	peerPageHinkleyForget = .9999
	peerPageHinkleyGrace  = 30
	peerPageHinkleyUsual  = 50
)

// pageHinkleyPeer is the two-sided test of Page and Hinkley (Biometrika 1954, 1971) as in river: how far the sum of
// deviations from the running mean is above its minimum, or below its maximum.
func pageHinkleyPeer() peer {
	return peer{name: "Page-Hinkley", start: func([]float64, *rand.Rand) watch {
		n, mean, up, down := 0.0, 0.0, 0.0, 0.0
		least, most := math.Inf(1), math.Inf(-1)
		return func(x float64) float64 {
			n++
			mean += (x - mean) / n
			up = peerPageHinkleyForget*up + x - mean - peerPageHinkleyDelta
			down = peerPageHinkleyForget*down + x - mean + peerPageHinkleyDelta
			least, most = min(least, up), max(most, down)
			if n < peerPageHinkleyGrace {
				return math.Inf(-1)
			}
			return max(up-least, most-down)
		}
	}}
}
