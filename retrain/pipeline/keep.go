package pipeline

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	keepMark = regexp.MustCompile(`rewardwatch:keep ([A-Za-z0-9_-]+)`)
	endMark  = regexp.MustCompile(`rewardwatch:end\b`)
)

// keptParts returns the lines between the marks of each kept part of a text, by the name of the part.
func keptParts(text string) (map[string]string, error) {
	parts := map[string]string{}
	name, from, at := "", 0, 0 // the part that is open, its begin, and where the line begins
	for i, line := range strings.SplitAfter(text, "\n") {
		next := at + len(line)
		switch m := keepMark.FindStringSubmatch(line); {
		case m != nil && name != "":
			return nil, fmt.Errorf("line %d: the keep mark %q is inside the kept part %q", i+1, m[1], name)
		case m != nil:
			if _, twice := parts[m[1]]; twice {
				return nil, fmt.Errorf("line %d: the keep mark %q is not unique", i+1, m[1])
			}
			name, from = m[1], next
		case endMark.MatchString(line):
			if name == "" {
				return nil, fmt.Errorf("line %d: an end mark has no keep mark", i+1)
			}
			parts[name], name = text[from:at], ""
		}
		at = next
	}
	if name != "" {
		return nil, fmt.Errorf("the keep mark %q has no end mark", name)
	}
	return parts, nil
}

// merged returns a new text with the kept parts of the file that it replaces. A part that the new text has no marks for
// is an error, as it would be lost.
func merged(text, before string) (string, error) {
	parts, err := keptParts(before)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	keeping := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		m := keepMark.FindStringSubmatch(line)
		ends := endMark.MatchString(line)
		if keeping == "" || ends {
			out.WriteString(line)
		}
		if ends {
			keeping = ""
		}
		if m == nil {
			continue
		}
		if body, ok := parts[m[1]]; ok {
			out.WriteString(body)
			delete(parts, m[1])
			keeping = m[1]
		}
	}
	for name := range parts {
		return "", fmt.Errorf("the new file has no keep mark %q", name)
	}
	return out.String(), nil
}
