//go:build !amd64

package factor

var (
	squaredLength = plainSquaredLength
	linear        = plainLinear
	standardize   = plainStandardize
	expect        = plainExpect
	score         = plainScore
	addLanes      = plainAdd
)
