package pins

import (
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	byVariable = pattern.MustCompile(`\b(name|install_requires|python_requires|description)(\s*=\s*)([A-Za-z_]\w*)(\s*[,\n)])`)
	variable   = pattern.MustCompile(`(?ms)^([A-Za-z_]\w*)\s*=\s*("[^"\n]*"|'[^'\n]*'|\[[^\]]*\])`)
)

// maxInlined bounds the number of arguments that Inlined replaces.
const maxInlined = 20

// Inlined returns a setup.py in which variables in arguments, as in install_requires=REQUIRED, are replaced by their
// strings and lists.
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
