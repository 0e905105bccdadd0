package main

import "math"

// exceedance returns the exact probability that a window of fresh uniform values has D >= d against a baseline, given
// in ascending order. Between two points of the baseline F is constant and the window's distribution function rises.
// Therefore D < d if and only if at each point i = 1 .. m the number j of window values below it satisfies
//
//	i/m - d < j/w < (i-1)/m + d,
//
// with F equal to i/m at the point and (i-1)/m before it. The window is a Poisson process of intensity w on [0, 1]
// given that it has w points (Kolmogorov 1933). exceedance carries the probabilities of its counts from point to point
// and drops those that leave the band. It divides the probability that remains at w by the probability that the process
// has w points.
func exceedance(baseline []float64, window int, d float64) float64 {
	const slack = 1e-9 // of a count: a threshold that D can take counts as reached
	m, w := float64(len(baseline)), float64(window)
	now, next := newCounts(window), newCounts(window)
	now.chance[0] = 1
	at := 0.0
	var jumps []float64
	for i, u := range baseline {
		next.low = max(0, int(math.Floor(w*(float64(i+1)/m-d)+slack))+1)
		next.high = min(window, int(math.Ceil(w*(float64(i)/m+d)-slack))-1)
		jumps = poisson(jumps[:0], w*(u-at))
		next.follow(now, jumps)
		now, next = next, now
		at = u
	}
	next.low, next.high = window, window
	next.follow(now, poisson(jumps[:0], w*(1-at)))
	factorial, _ := math.Lgamma(w + 1)
	return 1 - next.chance[window]/math.Exp(w*math.Log(w)-w-factorial)
}

// counts holds the probability of each count from low to high; that of the others is 0.
type counts struct {
	chance    []float64
	low, high int
}

func newCounts(window int) counts {
	return counts{chance: make([]float64, window+1)}
}

// follow computes the probabilities of the counts from c.low to c.high after a random jump from those before.
func (c *counts) follow(before counts, jumps []float64) {
	for j := c.low; j <= c.high; j++ {
		sum := 0.0
		for k := max(0, j-before.high); k <= min(len(jumps)-1, j-before.low); k++ {
			sum += jumps[k] * before.chance[j-k]
		}
		c.chance[j] = sum
	}
}

// poisson appends the probabilities of 0, 1, 2 ... until they are negligible.
func poisson(chances []float64, mean float64) []float64 {
	p := math.Exp(-mean)
	for k := 1; p > 1e-19 || float64(k) <= mean; k++ {
		chances = append(chances, p)
		p *= mean / float64(k)
	}
	return chances
}
