package pins

import (
	"cmp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	tomlArrays   = pattern.MustCompile(`(?m)^("?[A-Za-z0-9][A-Za-z0-9._-]*"?)\s*=\s*\[\s*((?:(?:#[^\n]*\n\s*)*\{[^}\n]*\},?\s*)+)\]`) // several constraints
	tomlTable    = pattern.MustCompile(`\{[^}\n]*\}`)
	tomlMarkers  = pattern.MustCompile(`markers\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	tomlPlatform = pattern.MustCompile(`platform\s*=\s*["']([^"']*)["']`)
	tomlOptional = pattern.MustCompile(`(?m)^\[tool\.poetry\.group\.([\w-]+)\][ \t]*\n(?:[^\[\n]*\n)*?optional[ \t]*=[ \t]*true\b`)
	tomlPython   = pattern.MustCompile(`python\s*=\s*["']([^"']*)["']`)
)

// Section returns the text of a TOML table.
func Section(text, name string) string {
	_, rest, found := strings.Cut("\n"+text, "\n["+name+"]")
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n[")
	return rest
}

// OptionalGroups returns the names of the TOML tables with the packages of optional Poetry groups, which are installed
// only on request.
func OptionalGroups(text string) map[string]bool {
	tables := map[string]bool{}
	for _, m := range tomlOptional.FindAllStringSubmatch(text, -1) {
		tables["tool.poetry.group."+m[1]+".dependencies"] = true
	}
	return tables
}

// EachConstraint replaces packages with several constraints in a TOML text by one line per constraint.
func EachConstraint(text string) string {
	return tomlArrays.ReplaceAllStringFunc(text, eachConstraint)
}

func eachConstraint(array string) string {
	m := tomlArrays.FindStringSubmatch(array)
	var b strings.Builder
	for _, table := range tomlTable.FindAllString(m[2], -1) {
		b.WriteString(m[1] + " = " + table + "\n")
	}
	return b.String()
}

// MarkerOf returns the marker of a package in an inline table of Poetry.
func MarkerOf(table string) string {
	if m := tomlMarkers.FindStringSubmatch(table); m != nil {
		return cmp.Or(m[1], m[2])
	}
	if m := tomlPlatform.FindStringSubmatch(table); m != nil {
		return "sys_platform == '" + m[1] + "'"
	}
	if m := tomlPython.FindStringSubmatch(table); m != nil {
		return Within("python_version", m[1])
	}
	return ""
}
