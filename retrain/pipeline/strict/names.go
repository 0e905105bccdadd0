package strict

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// attribute matches Python identifiers, in any alphabet.
var attribute = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_]*$`)

// Attribute returns what is wrong with the name of a simulation parameter, which is an attribute of the environment, or
// "" if the name is valid.
func Attribute(name string) string {
	switch {
	case !attribute.MatchString(name):
		return fmt.Sprintf("must be an attribute of the environment, such as gravity, not %q", name)
	case strings.HasPrefix(name, "__"):
		return "must not begin with `__`, which Python reserves: " + name
	case name == "self" || pytext.IsKeyword(name):
		return "must not be " + name + ", which is a Python keyword"
	}
	return ""
}
