package strict

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// durations matches whole numbers of minutes, hours or days.
var durations = regexp.MustCompile(`^[1-9][0-9]{0,3}[mhd]$`)

// Duration parses a duration such as 90m, 6h or 2d. It rejects seconds and mixed units, because orchestrators count in
// minutes.
func Duration(text string) (time.Duration, error) {
	d, err := model.ParseDuration(text)
	if err != nil || !durations.MatchString(text) {
		return 0, fmt.Errorf("must be a whole number of minutes, hours or days, such as 90m, 6h or 2d, not %q", text)
	}
	return time.Duration(d), nil
}

// Runners returns the number of RLlib processes that collect episodes: all processors but one, which the learner uses.
func Runners(cpu string) (string, error) {
	n, err := strconv.Atoi(cpu)
	return strconv.Itoa(n - 1), err
}

// ComposeMemory returns a Kubernetes size in Docker Compose notation, where g is a power of two as well.
func ComposeMemory(s string) (string, error) {
	return strings.ToLower(strings.TrimSuffix(s, "i")), nil
}

// InUnits returns the sum of a duration and a margin as a whole number of units.
func InUnits(s string, margin, unit time.Duration) (string, error) {
	d, err := Duration(s)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(int((d + margin) / unit)), nil
}
