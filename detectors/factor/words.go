package factor

import (
	"fmt"
	"strconv"

	"github.com/rewardwatch/rewardwatch/detectors"
)

// Words returns a sentence that describes the example.
func (e *Example) Words() string {
	now, then := e.Actual, e.Expected
	switch e.Factor {
	case Start:
		if e.Share {
			return fmt.Sprintf("a value of %s has a share of %s, compared with %s before", e.Name, percent(now), percent(then))
		}
		if e.Otherwise {
			return "episodes start with a different spread in observation." + e.Name
		}
		return fmt.Sprintf("episodes start with observation.%s at %s on average, compared with %s before", e.Name, short(now), short(then))
	case Policy:
		switch {
		case e.Share:
			return fmt.Sprintf("in the same situations, the policy chose %s %s of the time, compared with %s before", e.Name, percent(now), percent(then))
		case e.Otherwise:
			return fmt.Sprintf("in the same situations, action%s has a different spread", dotted(e.Name))
		}
		return fmt.Sprintf("in the same situations, action%s is %s on average, compared with %s before", dotted(e.Name), short(now), short(then))
	case Dynamics:
		switch {
		case e.Share:
			return fmt.Sprintf("after the same actions in the same situations, the episode ends %s of the time, compared with %s before", percent(now), percent(then))
		case e.Otherwise:
			return fmt.Sprintf("the same actions in the same situations change observation.%s differently", e.Name)
		}
		return fmt.Sprintf("after the same actions in the same situations, observation.%s changes by %s on average, compared with %s before",
			e.Name, short(now), short(then))
	}
	if e.Otherwise {
		return "the same steps earn different rewards"
	}
	return fmt.Sprintf("the same steps earn %s on average, compared with %s before", short(now), short(then))
}

func dotted(name string) string {
	if name == "" {
		return ""
	}
	return "." + name
}

// percent formats a share as a percentage with two significant digits.
func percent(x float64) string { return strconv.FormatFloat(100*x, 'g', 2, 64) + "%" }

// short formats a number with three significant digits.
func short(x float64) string { return detectors.Figure(x, 3) }
