package traits

import (
	"slices"
	"strings"
)

// asMade maps prefixes of Gymnasium ids to the default arguments of these environments.
var asMade = map[string][]string{
	"CarRacing":   {"continuous=True", "domain_randomize=False", "lap_complete_percent=0.95"},
	"LunarLander": {"continuous=False", "enable_wind=False", "gravity=-10.0", "wind_power=15.0", "turbulence_power=1.5"},
	"FrozenLake":  {"desc=None", `map_name="4x4"`, "is_slippery=True"},
	"Bipedal":     {"hardcore=False"},
	"Blackjack":   {"natural=False", "sab=False"},
	"Pendulum":    {"g=10.0"},
}

// IsAsMade reports whether an argument of the call that makes an environment has the default value of the environment.
// code is its value in Python.
func IsAsMade(id, argument, code string) bool {
	for beginning, all := range asMade {
		if strings.HasPrefix(id[strings.LastIndex(id, ":")+1:], beginning) {
			return slices.Contains(all, argument+"="+strings.ReplaceAll(code, "'", `"`))
		}
	}
	return false
}
