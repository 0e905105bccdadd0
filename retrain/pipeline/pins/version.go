package pins

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	oneBound  = pattern.MustCompile(`^(>=|<=|===?|~=|!=|\^|>|<|~|=)?\s*v?([0-9][0-9A-Za-z.*+-]*)$`)
	unsettled = pattern.MustCompile(`[0-9.](?:a|b|c|rc|alpha|beta|pre|preview|dev)[0-9]*`)
)

// Exact returns the version of a specification that allows only one, or "".
func Exact(wanted string) string {
	m := oneBound.FindStringSubmatch(strings.TrimSpace(wanted))
	if m == nil || m[1] != "" && !strings.HasPrefix(m[1], "=") || strings.Contains(m[2], "*") {
		return ""
	}
	return m[2]
}

// Lowest returns the lowest version that a specification mentions as allowed, or "".
func Lowest(wanted string) string {
	for part := range strings.SplitSeq(wanted, ",") {
		if m := oneBound.FindStringSubmatch(strings.TrimSpace(part)); m != nil && slices.Contains([]string{">=", "~=", "^", "~", "", "=", "==", "==="}, m[1]) {
			return strings.TrimSuffix(m[2], ".*")
		}
	}
	return ""
}

// Allowed reports whether a version satisfies a specification in PEP 440 or Poetry syntax. Alternatives are separated
// by ||. Invalid specifications allow nothing.
func Allowed(wanted, version string) bool {
	for alternative := range strings.SplitSeq(wanted, "||") {
		if allBounds(alternative, version) {
			return true
		}
	}
	return false
}

func allBounds(wanted, version string) bool {
	if wanted = strings.TrimSpace(wanted); wanted == "" || wanted == "*" {
		return true
	}
	for part := range strings.SplitSeq(wanted, ",") {
		part = strings.TrimSpace(part)
		if part == "" { // a trailing comma
			continue
		}
		m := oneBound.FindStringSubmatch(part)
		if m == nil || !within(m[1], m[2], version) {
			return false
		}
	}
	return true
}

// within reports whether a version satisfies a single bound.
func within(operator, bound, text string) bool {
	prefix, star := strings.CutSuffix(bound, ".*")
	b, version := numbers(prefix), numbers(text)
	if len(b) == 0 {
		return false
	}
	same := func(n int) bool { return slices.Equal(padded(version, n)[:n], padded(b, n)[:n]) }
	order := Compare(text, prefix)
	switch operator {
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	case "!=":
		return star && !same(len(b)) || !star && order != 0
	case "~=":
		return order >= 0 && same(len(b)-1)
	case "^": // up to the first number that is not zero
		n := 1 + slices.IndexFunc(b, func(x int) bool { return x != 0 })
		return order >= 0 && same(max(1, n))
	case "~":
		return order >= 0 && same(min(2, len(b)))
	}
	return star && same(len(b)) || !star && order == 0
}

// Compare returns -1, 0 or 1 if the first version is before, the same as, or after the second. Pre-releases come before
// the release, and local parts are ignored.
func Compare(a, b string) int {
	x, y := numbers(a), numbers(b)
	n := max(len(x), len(y))
	return cmp.Or(slices.Compare(padded(x, n), padded(y, n)), stage(a)-stage(b))
}

// stage returns -1 for a pre-release, 1 for a post-release, and 0 for a release.
func stage(version string) int {
	switch {
	case unsettled.MatchString(version):
		return -1
	case strings.Contains(version, "post"):
		return 1
	}
	return 0
}

func padded(numbers []int, n int) []int {
	return append(slices.Clone(numbers), make([]int, max(0, n-len(numbers)))...)
}

// numbers returns the release numbers of a version.
func numbers(version string) []int {
	version, _, _ = strings.Cut(version, "+")
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
		if digits != part {
			break
		}
	}
	return out
}
