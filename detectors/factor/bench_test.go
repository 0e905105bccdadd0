package factor

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// defaultBytes is the default memory limit.
const defaultBytes = 256 << 10

// vocabulary returns a vocabulary of numbered names.
func vocabulary(observations, numbers, categories int) Vocabulary {
	v := Vocabulary{Numbers: numbers}
	for i := range observations {
		v.Names = append(v.Names, strconv.Itoa(i))
	}
	for i := range categories {
		v.Categories = append(v.Categories, strconv.Itoa(i))
	}
	return v
}

// walkers returns episodes of an agent with eight observations and three actions in an environment with nonlinear
// dynamics.
func walkers(seed uint64, n int) []Episode {
	rng := rand.New(rand.NewPCG(seed, 1))
	episodes := make([]Episode, n)
	for i := range episodes {
		o := make([]float32, 8)
		for k := range o {
			o[k] = float32(rng.NormFloat64())
		}
		for t := range 40 {
			s := Step{Key: rng.Uint64(), Number: int32(t), Observation: o}
			if o[0]+.5*float32(rng.NormFloat64()) > 0 {
				s.Category = 1 + rng.IntN(2)
			}
			next := make([]float32, 8)
			for k := range next {
				next[k] = .9*o[k] + .2*o[(k+1)%8]*o[(k+2)%8]/(1+o[k]*o[k]) + .3*float32(s.Category-1) + .1*float32(rng.NormFloat64())
			}
			s.Next, s.Reward = next, o[1]*float32(s.Category)+.1*float32(rng.NormFloat64())
			o = next
			episodes[i] = append(episodes[i], s)
		}
		last := &episodes[i][39]
		last.Next, last.Terminated = nil, true
	}
	return episodes
}

func BenchmarkStep(b *testing.B) {
	m := Learn(vocabulary(8, 0, 3), walkers(1, 500), defaultBytes)
	s := NewScorer(m)
	steps := walkers(2, 50)
	var asked, supported [Factors]int32
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Step(&steps[i%50][i/50%40], &asked, &supported)
	}
	b.ReportMetric(float64(m.Bytes())/1024, "KiB")
}

func BenchmarkScore(b *testing.B) {
	m := Learn(vocabulary(8, 0, 3), walkers(1, 500), defaultBytes)
	s := NewScorer(m)
	steps := walkers(2, 50)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Score(steps[i%50])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(40*b.N), "ns/step")
}
