package pins

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ofBase finds the version of Python in the name of an official image.
var ofBase = regexp.MustCompile(`^python:(3\.[0-9]+)\b`)

// Beyond returns why a requirement cannot be installed in an image: its version has files for later versions of Python
// alone. It is "" if that is not known.
func Beyond(base, requirement string) string {
	image := ofBase.FindStringSubmatch(base)
	name, version, exact := strings.Cut(requirement, "==")
	if image == nil || !exact {
		return ""
	}
	name, _, _ = strings.Cut(name, "[")
	version, _, _ = strings.Cut(version, "+")
	python, all := image[1], windows(Normalized(name))
	newest := all[python].high
	if newest == "" || Compare(version, newest) <= 0 {
		return ""
	}
	later := slices.Clone(bases)
	slices.SortFunc(later, func(a, b struct{ python, image string }) int { return Compare(a.python, b.python) })
	for _, b := range later {
		if w, ok := all[b.python]; ok && Compare(b.python, python) > 0 && Compare(version, w.low) >= 0 && Compare(version, w.high) <= 0 {
			return fmt.Sprintf("must be at most %s with Python %s, or set base: %s, because version %s requires Python %s or later", newest, python, b.image, version, b.python)
		}
	}
	return ""
}
