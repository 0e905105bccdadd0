// Package placeholders reads the arguments of the commands in a page. It replaces names that stand for values, as in
// --env=<task>, by values that the page lists for them.
package placeholders

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// placeholder matches a name that stands for a value in a command, as in --env=<task>.
	placeholder = pattern.MustCompile(`<[a-z][\w-]*>|\{[a-z][\w-]*\}`)
	// listItem matches the first value in an item of a list that is not a sentence.
	listItem = pattern.MustCompile("^[ \t]*[-*+][ \t]+(?:[`\"'*]+([A-Za-z][\\w:./-]*)|([A-Za-z][\\w:./-]*?)[ \t]*(?:[:,(/–—]|-[ \t]|[ \t\r\n]*$))")
	// inSentence matches the first value in a sentence that lists values.
	inSentence = pattern.MustCompile("\\b(?:one of|can be|may be|e\\.g\\.,?|such as|for example)(?: the following)?:?[ \t]*[`\"']+([A-Za-z][\\w:./-]*)[`\"']")
)

// Limits of the text in which a page is searched for the values of a placeholder, in bytes, and of the placeholders of a
// command.
const (
	maxExplained = 16 << 10
	maxFilled    = 10
)

// In reports whether the arguments of a command contain a placeholder.
func In(arguments string) bool { return placeholder.MatchString(arguments) }

// Filled returns the arguments of a command in a page with each placeholder replaced by the first value that the page
// lists for it after the command, or else before. at is the end of the command, and isCommand reports whether a line is
// one. Filled returns the arguments unchanged if the page lists no value for one of the placeholders.
func Filled(page string, at int, arguments string, isCommand func(line string) bool) string {
	out := arguments
	for _, name := range placeholder.FindAllString(arguments, maxFilled) {
		value := first(page[at:min(len(page), at+maxExplained)], name, isCommand)
		if value == "" {
			value = first(page[max(0, at-maxExplained):at], name, isCommand)
		}
		if value == "" {
			return arguments
		}
		out = strings.ReplaceAll(out, name, value)
	}
	return out
}

// first returns the first value of the first list, or of the first sentence with values, that follows the mention
// of a placeholder in a text, or "".
func first(text, name string, isCommand func(line string) bool) string {
	mentioned := false
	for line := range strings.Lines(text) {
		if strings.Contains(line, name) && !isCommand(line) {
			if m := inSentence.FindStringSubmatch(line[strings.Index(line, name):]); m != nil {
				return m[1]
			}
			mentioned = true
			continue
		}
		if m := listItem.FindStringSubmatch(line); m != nil && mentioned {
			return m[1] + m[2]
		}
		mentioned = mentioned && strings.TrimSpace(line) == ""
	}
	return ""
}
