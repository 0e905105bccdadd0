//go:build !amd64

package factor

func squaredLength(triangle, x []float32, bound float32) float32 {
	return plainSquaredLength(triangle, x, bound)
}

func linear(y, beta, x []float32) { plainLinear(y, beta, x) }
