package pins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// ofBase finds the version of Python in the name of an official image.
var ofBase = pattern.MustCompile(`^python:(3\.[0-9]+)\b`)

// firsts are the first releases of packages that took over from others, whose versions people keep.
var firsts = map[string]string{"gymnasium": "0.26.0"}

// Beyond returns why a requirement cannot be installed in an image: its version has files for later versions of Python
// alone. It is "" if that is not known.
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

// Before returns why a requirement cannot be installed in an image: its version is older than all that have files for the
// image's Python. It is "" if that is not known, or if a compiler alone would help.
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

// inImage returns the version of Python in an official image, "" for another image, and the name of a requirement with its
// version on PyPI.
func inImage(base, requirement string) (python, name, version string) {
	if m := ofBase.FindStringSubmatch(base); m != nil {
		python = m[1]
	}
	name, version = NameAndVersion(requirement)
	version, _, _ = strings.Cut(version, "+") // a build of another index
	return python, name, version
}
