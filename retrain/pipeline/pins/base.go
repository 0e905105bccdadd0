package pins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// ofBase finds the Python version in the name of an official image.
var ofBase = pattern.MustCompile(`^python:(3\.[0-9]+)\b`)

// firsts are the first releases of packages that replaced others under a new name. Projects often keep the versions of
// the old package.
var firsts = map[string]string{"gymnasium": "0.26.0"}

// Beyond returns why a requirement cannot be installed in an image, if its version has files only for later Python
// versions. It returns "" if this is unknown.
func Beyond(base, requirement string) string {
	python, name, version := inImage(base, requirement)
	all := windows(name)
	newest := all[python].high
	if version == "" || newest == "" || Compare(version, newest) <= 0 {
		return ""
	}
	later := slices.Clone(bases)
	slices.SortFunc(later, func(a, b struct{ python, image string }) int { return Compare(a.python, b.python) })
	for _, b := range later {
		if Compare(b.python, python) > 0 && all[b.python].has(version) {
			return fmt.Sprintf("must be at most %s with Python %s, or set base: %s, because version %s requires Python %s or later", newest, python, b.image, version, b.python)
		}
	}
	return ""
}

// Before returns why a requirement cannot be installed in an image, if its version is older than all versions with
// files for the image's Python. It returns "" if this is unknown, or if a compiler suffices to build the version.
func Before(base, requirement string) string {
	python, name, version := inImage(base, requirement)
	if first := firsts[name]; version != "" && first != "" && Compare(version, first) < 0 {
		return "must be at least " + first + ", the first release of " + name
	}
	all := windows(name)
	oldest := all[python].low
	if version == "" || oldest == "" || Compare(version, oldest) >= 0 || slices.Contains(builds, name) {
		return ""
	}
	fault := fmt.Sprintf("must be at least %s with Python %s, because version %s has no files for it", oldest, python, version)
	for _, b := range bases {
		if all[b.python].has(version) {
			return fault + "; or set base: " + b.image
		}
	}
	return fault
}

// inImage returns the Python version of an official image, or "" for another image, and the name of a requirement with
// its version on PyPI.
func inImage(base, requirement string) (python, name, version string) {
	if m := ofBase.FindStringSubmatch(base); m != nil {
		python = m[1]
	}
	name, version = NameAndVersion(requirement)
	version, _, _ = strings.Cut(version, "+") // a build from another index
	return python, name, version
}
