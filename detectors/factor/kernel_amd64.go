package factor

import "github.com/rewardwatch/rewardwatch/detectors/kernel"

// The assembly needs AVX2, which nearly all processors since 2015 have.
var (
	squaredLength = kernel.OnAVX2(squaredLengthAVX2, plainSquaredLength)
	linear        = kernel.OnAVX2(linearAVX2, plainLinear)
	standardize   = kernel.OnAVX2(standardizeAVX2, plainStandardize)
	expect        = kernel.OnAVX2(expectAVX2, plainExpect)
	score         = kernel.OnAVX2(scoreAVX2, plainScore)
	addLanes      = kernel.OnAVX2(addAVX2, plainAdd)
)

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

//go:noescape
func addAVX2(s *sums, l *lanes, n int)
