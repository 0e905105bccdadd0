package factor

//go:noescape
func squaredLength(triangle, x []float32, bound float32) float32

//go:noescape
func linear(y, beta, x []float32)
