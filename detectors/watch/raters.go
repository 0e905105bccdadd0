package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Raters is the label of the rater by outcome that people rate.
type Raters map[string]string

// mostRated bounds the outcomes that people rate.
const mostRated = 8

// Labels returns the labels of raters, sorted.
func (r Raters) Labels() []string { return slices.Compact(slices.Sorted(maps.Values(r))) }

// Rate reports whether people rate a signal.
func (r Raters) Rate(signal string) bool {
	outcome, is := strings.CutPrefix(signal, "outcome.")
	return is && r[outcome] != ""
}

// KeptLabels returns the labels that units keep: those of causes.split_by, and of raters.
func (c *Config) KeptLabels() []string {
	out := slices.Clone(c.Causes.SplitBy)
	for _, label := range c.Raters.Labels() {
		if !slices.Contains(out, label) {
			out = append(out, label)
		}
	}
	return out
}

func (r Raters) check(groupBy []string, report func(path, msg string)) {
	if len(r) > mostRated {
		report("raters", fmt.Sprintf("must list at most %d outcomes", mostRated))
	}
	for _, outcome := range slices.Sorted(maps.Keys(r)) {
		at := "raters." + outcome
		switch name, isLabel := strings.CutPrefix(r[outcome], "labels."); {
		case outcome == "" || strings.HasPrefix(outcome, "outcome."):
			report(at, "must be the name of an outcome, without the prefix outcome.")
		case !isLabel || name == "":
			report(at, fmt.Sprintf(`must be "labels.<name>", not %q`, r[outcome]))
		case slices.Contains(groupBy, r[outcome]):
			report(at, fmt.Sprintf("%q is in group_by, so it has the same value throughout a group", r[outcome]))
		}
	}
}
