package detectors

import (
	"math"
	"testing"
)

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{
		{0, 4, "0"},
		{.25, 4, "0.25"},
		{1.23456, 4, "1.235"},
		{-1234.56, 4, "-1235"},
		{1234.56, 3, "1235"},
		{1500, 3, "1500"},
		{9999.6, 4, "10000"},
		{21543.2, 4, "21543"},
		{-2.5e6, 4, "-2500000"},
		{9.99e14, 4, "999000000000000"},
		{1e15, 4, "1e+15"},
		{1.2345e-5, 4, "1.234e-05"},
		{math.Inf(1), 4, "+Inf"},
		{math.NaN(), 4, "NaN"},
	} {
		if got := Figure(c.x, c.digits); got != c.want {
			t.Errorf("%v to %d digits is %q, want %q", c.x, c.digits, got, c.want)
		}
	}
}
