package pins

import (
	"cmp"
	"slices"
	"strings"
)

// Missing is an undeclared package of which a declared one, By, would install an incompatible version.
type Missing struct{ Name, By string }

// MissingFrom returns the packages that must be added to others because the metadata of one of these allow an
// incompatible version. It returns only packages that have a compatible version with files for the Python version.
func MissingFrom(python string, packages []Package) []Missing {
	chosen := Choose(python, packages)
	named := map[string]bool{}
	for _, p := range packages {
		named[p.Name] = true
	}
	var out []Missing
	for _, p := range packages {
		version := cmp.Or(Exact(p.Wanted), chosen[p.Name].Version, LowestWithFiles(python, p))
		for _, n := range allNeeds()[p.Name] {
			if !n.alone || named[n.Name] || version == "" || !Allowed(n.of, version) {
				continue
			}
			named[n.Name] = true
			if with := append(slices.Clone(packages), Package{Name: n.Name}); Choose(python, with)[n.Name].Version != "" {
				out = append(out, Missing{n.Name, p.Name})
			}
		}
	}
	return out
}

// Available reports whether a version of a package has files for a Python version, as far as is known.
func Available(python, name, version string) bool {
	return hasFiles(Package{name, "==" + version}, python)
}

// ofNumPy are the last patch releases of NumPy's minor versions, some of which no set has.
var ofNumPy = strings.Fields("1.19.5 1.20.3 1.21.6 1.22.4 1.23.5 1.24.4 1.25.2 1.26.4 2.0.2 2.1.3 2.2.6")

// published returns the known versions of a package, in any order.
func published(name string) []string {
	var out []string
	if name == "numpy" {
		out = slices.Clone(ofNumPy)
	}
	for _, all := range allSets() {
		for _, s := range all {
			if v := s.of[name]; v != "" {
				out = append(out, v)
			}
		}
	}
	return out
}
