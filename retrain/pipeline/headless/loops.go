package headless

import (
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// loop matches the header of a loop that does not end by itself, or depends on a single name.
	loop    = pattern.MustCompile(`^(?:while[ \t]+\(?(?:True|1|(not[ \t]+)?([A-Za-z_]\w*))\)?|for[ \t]+\w+[ \t]+in[ \t]+(?:itertools\.)?count\([^)]*\))[ \t]*:`)
	inner   = pattern.MustCompile(`^(?:while|for)\b`)
	ends    = pattern.MustCompile(`^(?:return\b|raise\b|(?:sys\.|os\._)?exit\(|quit\()`)
	breaks  = pattern.MustCompile(`^break\b`)
	defines = pattern.MustCompile(`^(?:async[ \t]+)?def[ \t]+(\w+)`)
	// isStart matches names of functions in which programs start.
	isStart = pattern.MustCompile(`^(?:main|run|play|test|eval|enjoy|watch|show|render|replay|visuali[sz]e|demo)`)
	// ofPerson matches conditions that depend on user input.
	ofPerson = pattern.MustCompile(`\bpygame\.(?:event|QUIT|K_\w+|KEYDOWN|key)\b|\bevent\.(?:type|key)\b|\bwaitKey\b|\bis_pressed\(|\binput\(|\bevents?\b.*\bget\(`)
	// isTrue matches a condition that is a single name.
	isTrue = pattern.MustCompile(`^if[ \t]+([A-Za-z_]\w*)(?:[ \t]+is[ \t]+True|[ \t]*==[ \t]*True)?[ \t]*:`)
)

// maxLines bounds the lines of code that are examined, and maxLoops the loops.
const maxLines, maxLoops = 2000, 20

// line is a line with code.
type line struct {
	indent int
	code   string
}

func linesOf(code string) []line {
	var out []line
	for text := range strings.Lines(code) {
		plain := strings.TrimSpace(text)
		if plain == "" || len(out) == maxLines {
			continue
		}
		out = append(out, line{len(text) - len(strings.TrimLeft(text, " \t")), plain})
	}
	return out
}

// Endless reports whether a program has a loop that ends only through user input or not at all. It considers loops
// outside of functions and in functions in which programs start.
func Endless(code string) bool {
	lines, loops := linesOf(code), 0
	for i, l := range lines {
		m := loop.FindStringSubmatch(l.code)
		if m == nil || loops == maxLoops {
			continue
		}
		loops++
		if begins(lines, i) && !stops(lines, i, m[2]) {
			return true
		}
	}
	return false
}

// begins reports whether a line is outside of functions, or in a function in which programs start.
func begins(lines []line, at int) bool {
	indent := lines[at].indent
	for i := at - 1; i >= 0 && indent > 0; i-- {
		if lines[i].indent >= indent {
			continue
		}
		indent = lines[i].indent
		if strings.HasPrefix(lines[i].code, "class ") {
			return false
		}
		if m := defines.FindStringSubmatch(lines[i].code); m != nil && !isStart.MatchString(m[1]) {
			return false
		}
	}
	return true
}

// stops reports whether the code in a loop ends it without user input. name is the name that is the condition of the
// loop, or "".
func stops(lines []line, at int, name string) bool {
	sets := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b(?:[ \t]*,[ \t]*\w+)*[ \t]*[-+*|&]?=[^=]`)
	for i := at + 1; i < len(lines) && lines[i].indent > lines[at].indent; i++ {
		code := lines[i].code
		if after := afterCondition(code); breaks.MatchString(after) || ends.MatchString(after) {
			if !ofPerson.MatchString(code) && reached(lines, at, i, true) {
				return true
			}
			continue
		}
		assigns := name != "" && sets.MatchString(code)
		if (assigns || ends.MatchString(code)) && reached(lines, at, i, false) || breaks.MatchString(code) && reached(lines, at, i, true) {
			return true
		}
	}
	return false
}

// afterCondition returns the statement after a condition on the same line, or "".
func afterCondition(code string) string {
	condition, after, _ := strings.Cut(code, ": ")
	if strings.HasPrefix(condition, "if ") || strings.HasPrefix(condition, "elif ") {
		return after
	}
	return ""
}

// reached reports whether a line of a loop may run without user input. isBreak reports whether it is a break, which
// must not belong to an inner loop.
func reached(lines []line, at, i int, isBreak bool) bool {
	indent := lines[i].indent
	for j := i - 1; j > at; j-- {
		if lines[j].indent >= indent {
			continue
		}
		indent = lines[j].indent
		code := lines[j].code
		switch {
		case ofPerson.MatchString(code), isBreak && inner.MatchString(code), strings.HasPrefix(code, "def "):
			return false
		case strings.HasPrefix(code, "else") && always(lines, at, before(lines, j)):
			return false
		}
	}
	return true
}

// before returns the index of the condition that an else belongs to, or -1.
func before(lines []line, at int) int {
	for i := at - 1; i >= 0 && lines[i].indent >= lines[at].indent; i-- {
		if lines[i].indent == lines[at].indent {
			return i
		}
	}
	return -1
}

// always reports whether a condition is a name that is assigned only once, before the loop, with the value True.
func always(lines []line, loop, at int) bool {
	if at < 0 {
		return false
	}
	m := isTrue.FindStringSubmatch(lines[at].code)
	if m == nil {
		return false
	}
	set := 0
	for i, l := range lines {
		rest, ok := strings.CutPrefix(l.code, m[1])
		if value, assigned := strings.CutPrefix(strings.TrimSpace(rest), "="); ok && assigned && !strings.HasPrefix(value, "=") {
			if set++; strings.TrimSpace(value) != "True" || i > loop {
				return false
			}
		}
	}
	return set == 1
}
