package keywords

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// NoneOf returns a message if a value is not one of the known values, or "".
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

// Name returns what is wrong with the name of a hyperparameter. A training with its own command may accept other names
// than the library.
func Name(library, algorithm, name string, own bool, requirements []string) string {
	switch {
	case !pytext.Identifier.MatchString(name):
		return fmt.Sprintf("must be the name of an argument, not %q", name)
	case name == "policy" || name == "env" || pytext.IsKeyword(name):
		return "cannot be an argument: it is a Python keyword, or the generated script sets it"
	case own:
		return ""
	case library == "cleanrl":
		return NoneOf(Arguments(library), name)
	}
	return Fault(library, algorithm, name, requirements)
}
