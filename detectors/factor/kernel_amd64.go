package factor

import "golang.org/x/sys/cpu"

// The assembly needs AVX2, which nearly all processors since 2015 have.
var (
	squaredLength = onAVX2(squaredLengthAVX2, plainSquaredLength)
	linear        = onAVX2(linearAVX2, plainLinear)
	ranks         = onAVX2(ranksAVX2, plainRanks)
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
func ranksAVX2(ranks, laws, keys []int32, size int)
