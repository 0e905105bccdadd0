package fill

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/secrets"
)

var (
	address = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://|\bwww\.|\bmailto:|\bdata:|@|\b[a-z0-9-]+\.(com|org|net|io|ai|dev|app|co|info|xyz)\b`)
	markup  = "<>[]{}|`*#~\\$"
)

// check returns what is wrong with an answer for the hole. key is the API key of the endpoint, which no answer may
// contain.
func (h *Hole) check(answer, key string) []string {
	var faults []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	add(len(answer) > h.maxBytes, "its %d bytes exceed the limit of %d", len(answer), h.maxBytes)
	if len(faults) > 0 {
		return faults // further checks of a long text would be slow and add little
	}
	add(strings.TrimSpace(answer) == "", "it is empty")
	add(!utf8.ValidString(answer), "it is not UTF-8")
	add(strings.Contains(strings.ToLower(answer), "rewardwatch:"), "it contains a keep marker")
	add(secrets.Found(answer), "it contains what looks like a secret")
	add(key != "" && strings.Contains(answer, key), "it contains the key of the endpoint")
	if h.kind == function {
		return append(faults, checkFunction(answer)...)
	}
	return append(faults, checkProse(answer)...)
}

// checkProse returns what is wrong with a paragraph.
func checkProse(text string) []string {
	var faults []string
	text = strings.TrimSpace(text)
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		faults = append(faults, fmt.Sprintf("it must be one line of printable characters, but contains %U", r))
	}
	if i := strings.IndexAny(text, markup); i >= 0 {
		faults = append(faults, fmt.Sprintf("it must be plain text without markup, but contains %q", text[i]))
	}
	if m := address.FindString(text); m != "" {
		faults = append(faults, fmt.Sprintf("it must not contain addresses, but contains %q", m))
	}
	if r, _ := utf8.DecodeRuneInString(text); text != "" && !unicode.IsLetter(r) {
		faults = append(faults, "it must start with a letter")
	}
	return faults
}
