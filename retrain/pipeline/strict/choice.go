package strict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// NoneOf returns the fault of a value that is none of those known, "" if it is one.
func NoneOf(known []string, value string) string {
	if slices.Contains(known, value) {
		return ""
	}
	hint := ""
	if near := nearest.Of(value, slices.Values(known)); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Sprintf("must be one of %s, not %q%s", strings.Join(known, ", "), value, hint)
}
