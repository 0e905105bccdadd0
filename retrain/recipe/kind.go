package recipe

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a recipe orders.
type Kind string

// The kinds of orders. All but Retrain are for policies that learn all the time.
const (
	Retrain          Kind = "retrain"
	Freeze           Kind = "freeze"            // stop learning
	RollBack         Kind = "rollback"          // return to an earlier version
	Resume           Kind = "resume"            // learn again
	LowerExploration Kind = "lower_exploration" // explore less
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Retrain, Freeze, RollBack, Resume, LowerExploration} }

// fault returns what is wrong with the kind in a file, where "" inherits that of the parent.
func (k Kind) fault() string {
	if k == "" || slices.Contains(Kinds(), k) {
		return ""
	}
	var names []string
	for _, known := range Kinds() {
		names = append(names, string(known))
	}
	return fmt.Sprintf("must be one of %s, not %q", strings.Join(names, ", "), k)
}
