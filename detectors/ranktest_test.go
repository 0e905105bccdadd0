package detectors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func continuousOwn(m int) []rank {
	own := make([]rank, m)
	for i := range own {
		own[i] = rank{(float64(i) + .5) / float64(m), normalScore((float64(i) + .5) / float64(m))}
	}
	return own
}
func TestX(t *testing.T) {
	own := continuousOwn(2000)
	for _, b := range allBranches() {
		fmt.Println(b, b.calibrate(own).LogA)
		for m := 10; m < 400; m++ {
			if b.calibrate2(continuousOwn(m)).carries(m, 1) {
				fmt.Println(" arms at", m)
				break
			}
		}
	}
	_ = math.Pi
	_ = rand.Int
}
func (b Branch) calibrate2(own []rank) calibration {
	m := float64(len(own))
	mean := 0.
	for _, r := range own {
		mean += math.Exp(b.increment(r))
	}
	c := calibration{C: math.Log(mean / m)}
	s := 0.
	for _, r := range own {
		g := b.increment(r) - c.C
		s += math.Exp(2 * g)
		c.Info += math.Exp(g) * g / m
	}
	c.Chi = math.Sqrt(s/m - 1)
	return c
}
