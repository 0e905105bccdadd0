package strict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	attribute = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// ofPython are the keywords of Python, and what a method calls its own object.
	ofPython = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if " +
		"import in is lambda nonlocal not or pass raise return self try while with yield")
)

// Attribute returns what is wrong with the name of a parameter of a simulation, which is an attribute of the environment;
// "" for nothing.
func Attribute(name string) string {
	switch {
	case !attribute.MatchString(name):
		return fmt.Sprintf("must be an attribute of the environment, such as gravity, not %q", name)
	case strings.HasPrefix(name, "__"):
		return "must not be an attribute of Python itself, such as " + name
	case slices.Contains(ofPython, name):
		return "must not be " + name + ", which Python takes as a word of its own: no attribute has this name"
	}
	return ""
}
