//go:build !amd64

package factor

var (
	squaredLength = plainSquaredLength
	linear        = plainLinear
	ranks         = plainRanks
)
