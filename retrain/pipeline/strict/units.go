package strict

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// durations are whole minutes, hours or days.
var durations = regexp.MustCompile(`^[1-9][0-9]{0,3}[mhd]$`)

// Duration returns a duration such as 90m, 6h or 2d. Seconds and mixtures are refused: orchestrators count in minutes.
func Duration(text string) (time.Duration, error) {
	d, err := model.ParseDuration(text)
	if err != nil || !durations.MatchString(text) {
		return 0, fmt.Errorf("must be a whole number of minutes, hours or days, such as 90m, 6h or 2d, not %q", text)
	}
	return time.Duration(d), nil
}

// Runners returns how many processes of RLlib collect episodes: one processor is that of the learner.
func Runners(cpu string) (string, error) {
	n, err := strconv.Atoi(cpu)
	return strconv.Itoa(n - 1), err
}

// ComposeMemory returns a size of Kubernetes as Docker Compose writes it, where g is a power of two as well.
func ComposeMemory(s string) (string, error) {
	return strings.ToLower(strings.TrimSuffix(s, "i")), nil
}

// InUnits returns a duration and a margin in units.
func InUnits(s string, margin, unit time.Duration) (string, error) {
	d, err := Duration(s)
	if err != nil {
		return "", err
	}
	return strconv.Itoa(int((d + margin) / unit)), nil
}
