// Package pattern provides regular expressions that quickly reject texts without a match.
//
// The proposal for a repository tries about a hundred expressions on every file, and few of them match. For most of
// them, package regexp steps through the whole text, at tens of nanoseconds per byte. A Pattern knows a set of words
// such that every match contains at least one of them. It first searches for these words, which is many times faster,
// and runs the expression only if it finds one.
package pattern

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pattern is a compiled regular expression. Its methods return what those of regexp.Regexp do.
type Pattern struct {
	*regexp.Regexp
	words []string // every match contains at least one of them; empty if none are known
}

// MustCompile compiles an expression as regexp.MustCompile does. It panics if the expression is not valid.
func MustCompile(expr string) *Pattern {
	p := &Pattern{Regexp: regexp.MustCompile(expr)}
	if parsed, err := syntax.Parse(expr, syntax.Perl); err == nil {
		p.words = wordsOf(parsed)
	}
	return p
}

// wordsOf returns words such that every match of an expression contains at least one of them, or nil if none are known.
func wordsOf(e *syntax.Regexp) []string {
	switch e.Op {
	case syntax.OpLiteral:
		return literal(e)
	case syntax.OpCapture, syntax.OpPlus:
		return wordsOf(e.Sub[0])
	case syntax.OpRepeat:
		if e.Min > 0 {
			return wordsOf(e.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, part := range e.Sub {
			if words := wordsOf(part); shortest(words) > shortest(best) {
				best = words
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, branch := range e.Sub {
			words := wordsOf(branch)
			if words == nil {
				return nil
			}
			all = append(all, words...)
		}
		return all
	}
	return nil
}

// literal returns the text of a literal, and nil if other texts match it too: those in the other case and, because
// regexp reads invalid UTF-8 as U+FFFD, some that are not ASCII.
func literal(e *syntax.Regexp) []string {
	if e.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(e.Rune, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	return []string{string(e.Rune)}
}

// shortest returns the length of the shortest word: the longer it is, the fewer texts contain one by chance.
func shortest(words []string) int {
	if len(words) == 0 {
		return 0
	}
	return len(slices.MinFunc(words, func(a, b string) int { return len(a) - len(b) }))
}

// possible reports whether a text can match.
func (p *Pattern) possible(text string) bool {
	return len(p.words) == 0 || slices.ContainsFunc(p.words, func(word string) bool { return strings.Contains(text, word) })
}

// MatchString reports whether a text contains a match.
func (p *Pattern) MatchString(text string) bool {
	return p.possible(text) && p.Regexp.MatchString(text)
}

// Match reports whether a text contains a match.
func (p *Pattern) Match(text []byte) bool {
	if len(p.words) > 0 && !slices.ContainsFunc(p.words, func(word string) bool { return bytes.Contains(text, []byte(word)) }) {
		return false
	}
	return p.Regexp.Match(text)
}

// FindStringIndex returns the start and the end of the first match, and nil if there is none.
func (p *Pattern) FindStringIndex(text string) []int {
	if !p.possible(text) {
		return nil
	}
	return p.Regexp.FindStringIndex(text)
}

// FindStringSubmatch returns the first match and its groups, and nil if there is none.
func (p *Pattern) FindStringSubmatch(text string) []string {
	if !p.possible(text) {
		return nil
	}
	return p.Regexp.FindStringSubmatch(text)
}

// FindAllStringSubmatch returns at most n matches and their groups, all if n is negative, and nil if there are none.
func (p *Pattern) FindAllStringSubmatch(text string, n int) [][]string {
	if !p.possible(text) {
		return nil
	}
	return p.Regexp.FindAllStringSubmatch(text, n)
}

// FindAllStringSubmatchIndex returns the places of at most n matches and of their groups, and nil if there are none.
func (p *Pattern) FindAllStringSubmatchIndex(text string, n int) [][]int {
	if !p.possible(text) {
		return nil
	}
	return p.Regexp.FindAllStringSubmatchIndex(text, n)
}

// FindAllStringIndex returns the places of at most n matches, and nil if there are none.
func (p *Pattern) FindAllStringIndex(text string, n int) [][]int {
	if !p.possible(text) {
		return nil
	}
	return p.Regexp.FindAllStringIndex(text, n)
}
