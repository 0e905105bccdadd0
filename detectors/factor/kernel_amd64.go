package factor

import "golang.org/x/sys/cpu"

// The assembly needs AVX2, which nearly all processors since 2015 have.
var (
	squaredLength = onAVX2(squaredLengthAVX2, plainSquaredLength)
	linear        = onAVX2(linearAVX2, plainLinear)
	standardize   = onAVX2(standardizeAVX2, plainStandardize)
	expect        = onAVX2(expectAVX2, plainExpect)
	score         = onAVX2(scoreAVX2, plainScore)
)

func onAVX2[F any](fast, plain F) F {
	if cpu.X86.HasAVX2 {
		return fast
	}
	return plain
}

//go:noescape
func squaredLengthAVX2(strips, x []float32) float32

//go:noescape
func linearAVX2(y, strips, x []float32)

//go:noescape
func expectAVX2(j *judge, l *leaf) bool

//go:noescape
func scoreAVX2(judges []judge, l *lanes, from, to int)

//go:noescape
func standardizeAVX2(x, centre, inverse []float32, changes, each int)
