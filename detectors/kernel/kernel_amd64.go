package kernel

import "golang.org/x/sys/cpu"

// The assembly needs AVX2, which nearly all processors since 2015 have. It does not check lengths.
var (
	Passed = OnAVX2(passedAVX2, plainPassed) // see plainPassed
	SumsOf = OnAVX2(sumsOfAVX2, plainSumsOf) // see plainSumsOf
	Found  = OnAVX2(foundAVX2, plainFound)   // see plainFound
)

// OnAVX2 returns the fast function if the processor has AVX2, and the plain one otherwise.
func OnAVX2[F any](fast, plain F) F {
	if cpu.X86.HasAVX2 {
		return fast
	}
	return plain
}

func sumsOfAVX2(table []Term, at []int32, times, weight []float64) (sums Sums) {
	sumsAVX2(table, at, times, weight, &sums)
	return sums
}

//go:noescape
func passedAVX2(moves []Scores, units []int32, s *Scores) (bits int64)

//go:noescape
func sumsAVX2(table []Term, at []int32, times, weight []float64, sums *Sums)

//go:noescape
func foundAVX2(c *Course, logs []float64) (found int)
