package detectors

import (
	"math"
	"strconv"
	"strings"
)

// Figure formats a number for people with the given number of significant digits. Large numbers are whole and have all
// of their digits, as is usual for returns of games: 21540, not 2.15e+04. Only numbers beyond 1e15 have an exponent.
func Figure(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'g', digits, 64)
	if strings.Contains(s, "e+") && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return s
}
