package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// ReasonsText lists in parentheses the reasons why records were refused, or returns "" if there are none.
func ReasonsText(refused map[ingest.Reason]int64) string {
	if len(refused) == 0 {
		return ""
	}
	var parts []string
	for reason, n := range refused {
		parts = append(parts, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(parts)
	return " (" + strings.Join(parts, ", ") + ")"
}

// NotTakenText says how many records the mapping has left out, or returns "" if there are none.
func NotTakenText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; the mapping skips %d others", n)
}

// LabelsText lists labels, sorted by name, or returns "-" if there are none.
func LabelsText(labels map[string]string) string {
	var parts []string
	for name, value := range labels {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return Dash(strings.Join(parts, ","))
}

// Dash returns "-" for "".
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Printable replaces invisible characters.
func Printable(s string) string { return words.Printable(s) }

// Percent formats a share as a percentage.
func Percent(share wire.Number) string { return words.Short(100*float64(share)) + "%" }

// Figure formats a number, or returns "-" if there is none.
func Figure(x *wire.Number) string {
	if x == nil {
		return "-"
	}
	return words.Short(float64(*x))
}

// Plural returns a number followed by a noun in the singular or plural.
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
