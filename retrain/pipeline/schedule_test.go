package pipeline

import (
	"strings"
	"testing"
)

// GitHub starts a workflow at most every five minutes, also across midnight; other targets do not have this limit.
func TestSchedulesOfGitHubAreNotTooOften(t *testing.T) {
	for schedule, often := range map[string]bool{
		"*/5 * * * *": false, "*/4 * * * *": true, "* 3 * * *": true, "0,4 3 * * *": true, "0,5 3 * * *": false, "3,58 * * * *": false, "2,58 * * * *": true,
		"*/7 * * * *": true, // 56 and then 0
		"58 23 * * *": false, "1,58 0,23 * * *": true,
		"1,58 0,23 * * 1":     false, // the next day is not in the schedule
		"1,58 0,23 * * 1,2":   true,
		"1,58 0,23 31 * *":    false,
		"1,58 0,23 1,31 * *":  true, // from the last day of a month to the first of the next
		"1,58 0,23 28 2 *":    false,
		"1,58 0,23 28,29 2 *": true, // in a leap year
		"0 0 29 2 *":          false,
	} {
		_, err := run(t, `"0 3 * * 1"`, `"`+schedule+`"`)
		each := schedule == "* 3 * * *"
		if got := err != nil && (each || strings.Contains(err.Error(), "schedule: must leave at least 5 minutes")); got != often || err != nil && !often {
			t.Errorf("%s: %v, want too often %v", schedule, err, often)
		}
		if _, err := run(t, `"0 3 * * 1"`, `"`+schedule+`"`, "[github-actions, ", "[", trigger, ""); (err != nil) != each || each && !strings.Contains(err.Error(), "schedule: must leave enough time for training and evaluation") {
			t.Errorf("%s without GitHub: %v", schedule, err)
		}
	}
}
