package pins

import (
	"slices"
	"strings"
)

// strictly are the packages whose metadata restrict the version of Gymnasium, so that pip rejects other versions.
var strictly = strings.Fields("imitation memory-gym ray[rllib] safety-gymnasium stable-baselines3 tianshou")

// Conflict returns why pip cannot install a requirement for Gym or Gymnasium together with the others, or "" if it can.
func Conflict(requirement string, all []string) string {
	name, version := NameAndVersion(requirement)
	if name != "gym" && name != "gymnasium" {
		return ""
	}
	for _, r := range all {
		of, at := NameAndVersion(r)
		if strings.Contains(r, "rllib") || strings.Contains(r, "[all") {
			of += "[rllib]"
		}
		for _, n := range needs(of, at) {
			if slices.Contains(strictly, of) && n.Name == name && !Allowed(n.Wanted, version) {
				return "must be " + n.Wanted + ", which " + r + " requires: pip cannot install both"
			}
		}
	}
	return ""
}
