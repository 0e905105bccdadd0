package kernel

import "golang.org/x/sys/cpu"

// The assembly needs AVX2, which nearly all processors since 2015 have. It does not check lengths.
var (
	Passed = onAVX2(passedAVX2, plainPassed) // see plainPassed
	SumsOf = onAVX2(sumsOfAVX2, plainSumsOf) // see plainSumsOf
	Found  = onAVX2(foundAVX2, plainFound)   // see plainFound
)

func onAVX2[F any](fast, plain F) F {
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
