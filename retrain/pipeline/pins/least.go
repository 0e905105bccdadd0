package pins

import (
	"cmp"
	"slices"
	"strings"
)

// needed is the minimum version of a package for the generated scripts, and the reason.
type needed struct{ name, version, why string }

// least are the minimum versions of packages for the generated scripts of a library, and what the scripts use of them.
// In Ray 2.40, configs have no build_algo, and Stable-Baselines3 before 2.0 accepts only Gym environments.
var least = map[string][]needed{
	"cleanrl":           {{"gymnasium", "1.1.0", "its autoreset modes"}},
	"rllib":             {{"ray", "2.41.0", "the method build_algo of its configs"}, {"gymnasium", "1.0.0", "a version of Ray that requires it"}},
	"stable-baselines3": {{"stable-baselines3", "2.0.0", "Gymnasium environments"}},
}

// Fault returns what is wrong with a requirement, NAME==VERSION, for the generated scripts of a library, or "". all are
// the requirements, which may list the packages of an extra instead of the extra.
func Fault(library, requirement string, all []string) string {
	name, version, _ := strings.Cut(requirement, "==")
	name, extras, _ := strings.Cut(name, "[")
	listed := slices.ContainsFunc(all, func(r string) bool { return strings.HasPrefix(r, "dm-tree==") || strings.HasPrefix(r, "dm_tree==") })
	if library == "rllib" && name == "ray" && !strings.Contains(extras, "rllib") && !strings.Contains(extras, "all") && !listed {
		return "must be ray[rllib]==" + version + ", because the generated scripts require the packages of this extra"
	}
	why := TooOld(library, Package{Normalized(name), "==" + version}, "")
	if why == "" {
		return ""
	}
	return "must be " + why + "; pin a newer version, or set algorithm.library: custom with your own training.command and evaluation.command"
}

// TooOld returns which versions of a package the generated scripts of a library require and why, if the specification
// allows only older ones. Otherwise, it returns "". tested is a version that works, or "".
func TooOld(library string, p Package, tested string) string {
	i := slices.IndexFunc(least[library], func(l needed) bool { return l.name == p.Name })
	if i < 0 {
		return ""
	}
	l, low := least[library][i], cmp.Or(Exact(p.Wanted), Lowest(p.Wanted))
	switch {
	case Allowed(p.Wanted, l.version) || tested != "" && Allowed(p.Wanted, tested): // or any version
	case low != "" && Compare(low, l.version) >= 0:
	case low != "" || strings.HasPrefix(strings.TrimSpace(p.Wanted), "<"):
		return l.version + " or later, because the generated scripts require " + l.why
	}
	return ""
}
