package pins

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	joinedLines = pattern.MustCompile(`[ \t]*\\[ \t]*\r?\n[ \t]*`)
	pipInstall  = pattern.MustCompile("(?m)(?:^|[`/>$&;!%]|\\bRUN|\\buv|-m)[ \\t]*pip3?[ \\t]+install[ \\t]+([^\\n`|&;#]*)")
	takesValue  = pattern.MustCompile(`^(?:-[rceift]|--(?:requirement|constraint|editable|index-url|extra-index-url|find-links|target|trusted-host|prefix|root|no-binary|only-binary|python-version|platform))$`)
	plainSpec   = pattern.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?(?:[<>=~!][^\s/]*)?$`)
	fromImage   = pattern.MustCompile(`(?m)^FROM[ \t]+(?:--\S+[ \t]+)?(?:docker\.io/)?(pytorch|tensorflow)/(?:pytorch|tensorflow):([0-9]+\.[0-9]+\.[0-9]+)`)
	goesOn      = pattern.MustCompile(`^(?:and|or|to|for|with|if|the|then|in|from|first|before|after|as|on)$`)
)

// maxInstalled bounds the packages that are taken from a page.
const maxInstalled = 200

// Installed returns the requirements that a page or Dockerfile installs with pip, except files, directories and URLs,
// and the framework in the base image of a Dockerfile.
func Installed(text string) []string {
	var out []string
	for _, m := range fromImage.FindAllStringSubmatch(text, maxInstalled) {
		name := m[1]
		if name == "pytorch" {
			name = "torch"
		}
		out = append(out, name+"=="+m[2])
	}
	for _, m := range pipInstall.FindAllStringSubmatch(joinedLines.ReplaceAllString(text, " "), maxInstalled) {
		words := strings.Fields(m[1])
		for i := 0; i < len(words) && len(out) < maxInstalled; i++ {
			word := strings.Trim(words[i], `"'`)
			switch {
			case takesValue.MatchString(word):
				i++
			case strings.HasPrefix(word, "-"):
			case goesOn.MatchString(word):
				i = len(words)
			case plainSpec.MatchString(word) && !strings.HasSuffix(word, ".txt") && !strings.HasSuffix(word, ".whl"):
				out = append(out, word)
			}
		}
	}
	return out
}

var (
	// listed matches a list item or table row with a name and a version.
	listed = pattern.MustCompile(`(?m)^[ \t]*(?:(?:[-*+]|[0-9]+\.)[ \t]+|\|[ \t]*)[*\x60\[]*([A-Za-z][\w.-]*)[*\x60\]]*(?:\(https?:[^\s)]*\))?[ \t:(|]*(==|>=|~=|=|≥|v|version)?[ \t\x60]*([0-9]+(?:\.[0-9]+){1,2})\b([^\n]*)$`)
	// alone matches a line that consists of a package and its version.
	alone  = pattern.MustCompile(`(?m)^[ \t]*([A-Za-z][\w.-]*)(==)([0-9]+(?:\.[0-9]+){1,2})()[ \t]*(?:<br>)?[ \t\r]*$`)
	inRest = pattern.MustCompile(`^[*\x60]*[ \t]*(?:\([^)]{0,40}\))?[ \t.,;|)*\x60]*$`)
)

// calledSo maps common names of packages to their names on PyPI.
var calledSo = map[string]string{"pytorch": "torch", "opencv": "opencv-python", "sklearn": "scikit-learn", "sb3": "stable-baselines3", "hydra": "hydra-core"}

// Listed returns the requirements in the lists of a page that have a version.
func Listed(text string) []string {
	var out []string
	all := listed.FindAllStringSubmatch(text, maxInstalled)
	for _, m := range append(all, alone.FindAllStringSubmatch(text, maxInstalled)...) {
		name := Normalized(m[1])
		if of := calledSo[name]; of != "" {
			name = of
		} else if !isModulePackage(name) {
			continue
		}
		switch least := laterToo.MatchString(m[4]) || m[2] == ">=" || m[2] == "≥"; {
		case least:
			out = append(out, name+">="+m[3])
		case inRest.MatchString(m[4]):
			out = append(out, name+"=="+m[3])
		}
	}
	return out
}

// isModulePackage reports whether a package is one that trainings often import.
func isModulePackage(name string) bool {
	return slices.ContainsFunc(Modules(true), func(m Module) bool {
		bare, _, _ := strings.Cut(m.Package, "[")
		return Normalized(bare) == name
	})
}

// WithExtras returns the name of a package with its own extras and those on another line.
func WithExtras(name, line string) string {
	bare, has, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	_, more, _ := strings.Cut(strings.TrimSuffix(line, "]"), "[")
	extras := strings.FieldsFunc(has+","+more, func(r rune) bool { return r == ',' || r == ' ' })
	for i, e := range slices.Backward(extras) {
		if slices.Contains(extras[:i], e) {
			extras = slices.Delete(extras, i, i+1)
		}
	}
	return bare + "[" + strings.Join(extras, ",") + "]"
}
