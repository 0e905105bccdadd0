package keywords

import (
	"fmt"
	"regexp"
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

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// notArguments are the keywords of Python, and the arguments that the generated script sets.
var notArguments = strings.Fields("policy env False None True and as assert async await break class continue def del elif else except " +
	"finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

// Name returns what is wrong with the name of a hyperparameter. A training of one's own may take others than the library.
func Name(library, algorithm, name string, own bool, requirements []string) string {
	switch {
	case !identifier.MatchString(name):
		return fmt.Sprintf("must be the name of an argument, not %q", name)
	case slices.Contains(notArguments, name):
		return "cannot be an argument: it is a Python keyword, or the generated script sets it"
	case own:
		return ""
	case library == "cleanrl":
		return NoneOf(Arguments(library), name)
	}
	return Fault(library, algorithm, name, requirements)
}
