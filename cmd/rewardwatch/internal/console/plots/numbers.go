package plots

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Pixels formats a coordinate. A value that is not finite becomes 0.
func Pixels(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		x = 0
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// Percent formats a share.
func Percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// Finite reports whether all numbers are finite.
func Finite(x ...float64) bool {
	return !slices.ContainsFunc(x, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
