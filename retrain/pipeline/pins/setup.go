package pins

import "regexp"

var (
	byVariable = regexp.MustCompile(`\b(name|install_requires|python_requires|description)(\s*=\s*)([A-Za-z_]\w*)(\s*[,\n)])`)
	variable   = regexp.MustCompile(`(?ms)^([A-Za-z_]\w*)\s*=\s*("[^"\n]*"|'[^'\n]*'|\[[^\]]*\])`)
	optional   = regexp.MustCompile(`(?m)^\[tool\.poetry\.group\.([\w-]+)\][ \t]*\n(?:[^\[\n]*\n)*?optional[ \t]*=[ \t]*true\b`)
)

// maxInlined is the number of arguments of a setup.py that Inlined replaces.
const maxInlined = 20

// Inlined returns a setup.py with the strings and lists of its variables in the arguments that name them, such as
// install_requires=REQUIRED.
func Inlined(text string) string {
	values, replaced := map[string]string{}, 0
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		values[m[1]] = m[2]
	}
	return byVariable.ReplaceAllStringFunc(text, func(argument string) string {
		m := byVariable.FindStringSubmatch(argument)
		value, known := values[m[3]]
		if !known || replaced == maxInlined {
			return argument
		}
		replaced++
		return m[1] + m[2] + value + m[4]
	})
}

// OptionalGroups returns the tables of TOML with the packages of those groups of Poetry that are installed only if they
// are asked for.
func OptionalGroups(text string) map[string]bool {
	tables := map[string]bool{}
	for _, m := range optional.FindAllStringSubmatch(text, -1) {
		tables["tool.poetry.group."+m[1]+".dependencies"] = true
	}
	return tables
}
