package expectation

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Evidence describes what the check has seen of a signal, such as "the mean of return over 87 episodes is 491.2 (95%
// confidence interval: 483.1 to 499.3)". unit is the word for units.
func (c *Check) Evidence(signal, unit string) string {
	n := strconv.Itoa(c.Units()) + " " + unit
	if c.Units() == 0 {
		return fmt.Sprintf("no values of %s in %s", signal, unit)
	}
	if p, is := c.Condition.share(); is {
		return c.shareEvidence(p, signal, n)
	}
	estimate, _ := c.Estimate()
	text := fmt.Sprintf("the %s of %s over %s is %s", c.Condition.Statistic, signal, n, number(estimate))
	if c.Units() < leastUnits {
		return fmt.Sprintf("%s; a result needs at least %d %s", text, leastUnits, unit)
	}
	low, high := c.Interval()
	return fmt.Sprintf("%s (95%% confidence interval: %s to %s)", text, bound(low, high-low), bound(high, high-low))
}

func (c *Check) shareEvidence(p float64, signal, n string) string {
	side := "below"
	if c.Condition.atMost() {
		side = "at or below"
	}
	low, high := c.shareInterval(p)
	return fmt.Sprintf("%[3]s%% of the values of %[1]s over %[2]s are %[4]s %[5]s (95%% confidence interval: %[6]s%% to %[7]s%%); if %[5]s were the %[8]s, it would be %[9]s%%",
		signal, n, percent(float64(c.Below)/float64(c.Values.N)), side, number(c.Condition.Value), percent(low), percent(high),
		c.Condition.Statistic, percent(p))
}

// bound formats a bound of an interval: three significant digits, and more if the interval is narrow for its place.
func bound(x, width float64) string {
	digits := 3
	if place := math.Log10(math.Abs(x)) - math.Log10(width); place >= 1 && !math.IsInf(place, 0) {
		digits = min(5, digits+int(place))
	}
	return detectors.Figure(x, digits)
}

func number(x float64) string { return detectors.Figure(x, 5) }

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) }
