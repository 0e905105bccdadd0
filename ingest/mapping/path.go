package mapping

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// path leads to a value within a record or an element.
type path struct {
	atRoot bool // begins with $
	steps  []step
}

// lastName returns the name of the last step, or "" if it has none.
func (p path) lastName() string {
	if len(p.steps) == 0 {
		return ""
	}
	return p.steps[len(p.steps)-1].name
}

// step selects a member of an object, or an element of an array.
type step struct {
	name  string
	index int // -1 for a member
}

// maxSteps is the maximum number of steps of a path. It equals the maximum nesting depth of records.
const maxSteps = 32

// parsePath parses a path: names separated by dots, ["name"] for names with special characters, and [0] for an element.
// A leading $ stands for the record. Errors count characters from 1.
func parsePath(text string) (path, error) {
	p, rest := path{}, text
	if text == "$" || strings.HasPrefix(text, "$.") || strings.HasPrefix(text, "$[") {
		p.atRoot, rest = true, text[1:]
	}
	for rest != "" {
		at := len(text) - len(rest)
		s, after, err := parseStep(rest, at == 0)
		if err == nil && len(p.steps) == maxSteps {
			err = fmt.Errorf("the path has more than %d names", maxSteps)
		}
		if err != nil {
			return path{}, fmt.Errorf("at character %d of %s: %w", len([]rune(text[:at]))+1, text, err)
		}
		p.steps, rest = append(p.steps, s), after
	}
	if !p.atRoot && len(p.steps) == 0 {
		return path{}, fmt.Errorf("the path is empty")
	}
	return p, nil
}

// parseStep parses the first step of a path, and returns the rest.
func parseStep(text string, first bool) (s step, rest string, err error) {
	if text[0] == '[' {
		return parseBrackets(text)
	}
	if !first {
		if text[0] != '.' {
			return s, "", fmt.Errorf("expected a dot or [")
		}
		text = text[1:]
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return strings.ContainsRune(`.[]"'\`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
	})
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return s, "", fmt.Errorf("expected a name")
	}
	if end < len(text) && text[end] != '.' && text[end] != '[' {
		return s, "", fmt.Errorf("a name that contains %q must be written as [%s]", text[end:end+1], strconv.Quote("name"))
	}
	return step{text[:end], -1}, text[end:], nil
}

// parseBrackets parses ["name"] or [0].
func parseBrackets(text string) (s step, rest string, err error) {
	if !strings.HasPrefix(text, `["`) {
		inside, rest, closed := strings.Cut(text[1:], "]")
		index, err := strconv.Atoi(inside)
		if !closed || err != nil || index < 0 || inside[0] == '+' {
			return s, "", fmt.Errorf(`brackets must contain an index, such as [0], or a name in double quotes`)
		}
		return step{"", index}, rest, nil
	}
	d := json.NewDecoder(strings.NewReader(text[1:]))
	var name string
	if err := d.Decode(&name); err != nil {
		return s, "", fmt.Errorf("the name in brackets is not a valid JSON string")
	}
	rest, closed := strings.CutPrefix(text[1+d.InputOffset():], "]")
	if !closed {
		return s, "", fmt.Errorf("expected a closing bracket")
	}
	return step{name, -1}, rest, nil
}
