// Package quote writes values in the syntax of a pipeline's files, so that YAML, shell, Python and Markdown read them
// back unchanged.
package quote

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// plainName matches text that needs no quotes in YAML, a shell, a Dockerfile or a Makefile.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@+=!\[\],-]*$`)

// Name returns its argument, or an error if it needs quotes anywhere.
func Name(s string) (string, error) {
	if !plainName.MatchString(s) {
		return "", fmt.Errorf("%q is not a plain name", s)
	}
	return s, nil
}

// Number returns a number in a form that YAML reads as a number, or an error if the text is not one.
func Number(s string) (string, error) {
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return "", fmt.Errorf("%q is not a number", s)
	}
	return WithPoint(s), nil
}

// WithPoint adds a decimal point to a number with an exponent. Without it, YAML 1.1 reads the number as a string.
func WithPoint(number string) string {
	if digits, exponent, ok := strings.Cut(number, "e"); ok && !strings.Contains(digits, ".") {
		return digits + ".0e" + exponent
	}
	return number
}

var wordOfYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`)

// notStrings are the words that YAML 1.1 or 1.2 does not read as strings.
var notStrings = strings.Fields("y n yes no on off true false null")

// Word returns a YAML string, without quotes if every version of YAML reads it as a string.
func Word(s string) (string, error) {
	if wordOfYAML.MatchString(s) && !slices.Contains(notStrings, strings.ToLower(s)) {
		return s, nil
	}
	return YAML(s)
}

// YAML returns a double-quoted YAML scalar, which is a JSON string.
func YAML(s string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Shell quotes a word for a POSIX shell. It writes backslashes before a single quote outside of quotes, so that no
// reader mistakes them for an escape of the quote.
func Shell(s string) string {
	parts := strings.Split(s, "'")
	for i, p := range parts {
		quoted := strings.TrimRight(p, `\`)
		parts[i] = "'" + quoted + "'" + strings.Repeat(`\\`, len(p)-len(quoted))
	}
	return strings.Join(parts, `\'`)
}

// expands matches text that a shell would replace.
var expands = regexp.MustCompile("\\$[{(0-9a-zA-Z_]|`[^`]+`")

// Expands reports whether a shell would replace a part of an unquoted text.
func Expands(s string) bool { return expands.MatchString(s) }

// Glob returns a glob that matches only the given name, as a YAML scalar.
func Glob(s string) (string, error) {
	if strings.ContainsAny(s, "*?[\\") {
		return "", fmt.Errorf("%q contains wildcard characters", s)
	}
	return YAML(s)
}

var special = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Ignored returns the .dockerignore pattern for a file in any directory of the build context.
func Ignored(file string) string { return "**/" + special.Replace(file) }

var markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`)

// Text escapes a text for Markdown.
func Text(s string) string { return markdown.Replace(s) }

// Python returns a value as a Python literal.
func Python(v yamlfile.Value) string {
	switch v.Kind {
	case yamlfile.Boolean:
		return map[string]string{"true": "True", "false": "False"}[v.Scalar]
	case yamlfile.Number:
		return v.Scalar
	case yamlfile.String:
		return strconv.QuoteToASCII(v.Scalar)
	case yamlfile.List:
		items := make([]string, len(v.Items))
		for i, item := range v.Items {
			items[i] = Python(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case yamlfile.Mapping:
		var members []string
		for _, key := range v.Keys() {
			members = append(members, strconv.QuoteToASCII(key)+": "+Python(v.Members[key]))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	return "None"
}

// Comment returns a text with unprintable characters replaced by spaces, for a YAML comment.
func Comment(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// Variable returns the prefix of a project's environment variables where several projects share an environment.
func Variable(project string) string {
	return "RETRAIN_" + strings.ToUpper(strings.ReplaceAll(project, "-", "_"))
}

// SameOnGitHub returns a GitHub Actions expression for use in a double-quoted YAML scalar. It is true if a run has no
// request, or a request for this policy. GitHub ignores case in comparisons, so the scripts compare again.
func SameOnGitHub(policy string) (string, error) {
	text := "'" + strings.ReplaceAll(policy, "'", "''") + "'"
	scalar, err := YAML("(github.event.client_payload.data.policy || " + text + ") == " + text)
	return strings.Trim(scalar, `"`), err
}
