package pytext

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// leaves matches a statement that leaves a function.
var leaves = pattern.MustCompile(`(?m)^[ \t]+(?:return\b|(?:sys\.)?exit\()`)

// IndentOf returns the width of the indentation of a line.
func IndentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// Branches returns the block after a condition with the given indentation, and the code that runs if the condition is
// false: the block of else, or everything after the block if the block leaves the function.
func Branches(text string, at, indent int) (block, other string) {
	end := BlockEnd(text, at, indent)
	block, rest := text[at:end], text[end:]
	line, _, _ := strings.Cut(rest, "\n")
	switch {
	case IndentOf(line) == indent && strings.HasPrefix(strings.TrimSpace(line), "else"):
		from := end + len(line) + 1
		if from > len(text) {
			return block, ""
		}
		return block, text[from:BlockEnd(text, from, indent)]
	case leaves.MatchString(block):
		return block, text[end:BlockEnd(text, end, indent-1)]
	}
	return block, ""
}

// BlockEnd returns where the lines end that are indented by more than indent.
func BlockEnd(text string, at, indent int) int {
	for at < len(text) {
		line, _, _ := strings.Cut(text[at:], "\n")
		if strings.TrimSpace(line) != "" && IndentOf(line) <= indent {
			return at
		}
		at = min(len(text), at+len(line)+1)
	}
	return at
}
