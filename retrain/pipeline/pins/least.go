package pins

import (
	"cmp"
	"slices"
	"strings"
)

// needed is a package that generated scripts need from some version on.
type needed struct{ name, version, why string }

// least are the lowest versions that the generated scripts of a library work with, and what of them they need. The class
// of a config in Ray 2.40 has no build_algo, and Stable-Baselines3 before 2 takes environments of Gym only.
var least = map[string][]needed{
	"cleanrl":           {{"gymnasium", "1.1.0", "its autoreset modes"}},
	"rllib":             {{"ray", "2.41.0", "the method build_algo of its configs"}, {"gymnasium", "1.0.0", "a version of Ray that requires it"}},
	"stable-baselines3": {{"stable-baselines3", "2.0.0", "Gymnasium environments"}},
}

// Fault returns what is wrong with a requirement, NAME==VERSION, for the generated scripts of a library; "" for nothing.
// All are the requirements, which may list what an extra needs.
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

// TooOld returns which versions of a package the generated scripts of a library need and why, in words, if what is wanted
// of it allows only older ones. Else it is "". Tested is a version that they work with, "" for none.
func TooOld(library string, p Package, tested string) string {
	i := slices.IndexFunc(least[library], func(l needed) bool { return l.name == p.Name })
	if i < 0 {
		return ""
	}
	l, low := least[library][i], cmp.Or(Exact(p.Wanted), Lowest(p.Wanted))
	switch {
	case Allowed(p.Wanted, l.version) || tested != "" && Allowed(p.Wanted, tested): // also any version
	case low != "" && Compare(low, l.version) >= 0:
	case low != "" || strings.HasPrefix(strings.TrimSpace(p.Wanted), "<"):
		return l.version + " or later, because the generated scripts require " + l.why
	}
	return ""
}
