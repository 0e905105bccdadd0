//go:build benchdetection

package detectors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// cvmPeer is the two-sample statistic of Cramer and von Mises (Anderson, Annals of Mathematical Statistics 1962) of the
// last observations against a baseline.
func cvmPeer(baseline, window int) peer {
	start := func(baseline []float64, _ *rand.Rand) watch {
		slices.Sort(baseline)
		var last []float64
		sorted := make([]float64, window)
		return func(x float64) float64 {
			last = append(last, x)
			if len(last) < window {
				return math.Inf(-1)
			}
			last = last[len(last)-window:]
			copy(sorted, last)
			slices.Sort(sorted)
			return cramerVonMises(baseline, sorted)
		}
	}
	return peer{name: fmt.Sprintf("CvM, window %d", window), baseline: baseline, start: start}
}

// cramerVonMises is T = U/(nm(n+m)) - (4nm-1)/(6(n+m)), U = n sum (r_i - i)^2 + m sum (s_j - j)^2, where r_i and s_j are
// the ranks of the two sorted samples without ties in both together.
func cramerVonMises(a, b []float64) float64 {
	n, m := float64(len(a)), float64(len(b))
	ofA, ofB := 0.0, 0.0
	j := 0
	for i, x := range a {
		for ; j < len(b) && b[j] < x; j++ {
			ofB += float64(i * i) // its rank is i+j+1
		}
		ofA += float64(j * j)
	}
	for ; j < len(b); j++ {
		ofB += n * n
	}
	return (n*ofA+m*ofB)/(n*m*(n+m)) - (4*n*m-1)/(6*(n+m))
}
