// Package oneline checks one-line Python programs, such as the argument of python -c.
package oneline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pytext"
)

// Python returns the syntax error of a one-line Python program, or "" if the program may be valid in any version of
// Python 3. It does not parse the program: it finds only unterminated brackets and strings, operators without operands
// and adjacent operands, and statements that need their own line.
func Python(program string) string {
	if strings.ContainsAny(program, "\r\n") {
		return ""
	}
	fault := lineFault(program, false)
	if fault != "" && formatted.MatchString(program) && lineFault(program, true) == "" {
		return ""
	}
	return fault
}

var (
	// formatted matches the beginning of a string that may contain expressions.
	formatted = regexp.MustCompile(`(?i)(?:\b|^)(?:[ft]r?|r[ft])["']`)
	prefix    = regexp.MustCompile(`(?i)^(?:[rub]|br|rb|fr?|rf|tr?|rt)?["']`)
	name      = regexp.MustCompile(`^[\p{L}\p{Nl}_][\p{L}\p{M}\p{N}\p{Pc}]*`)
	number    = regexp.MustCompile(`(?i)^(?:0x[0-9a-f_]+|0o[0-7_]+|0b[01_]+|(?:[0-9][0-9_]*\.?|\.[0-9])[0-9_]*(?:e[+-]?[0-9][0-9_]*)?j?)`)
	symbol    = regexp.MustCompile(`^(?:\.\.\.|->|:=|\*\*=?|//=?|<<=?|>>=?|<=|>=|==|!=|[-+*/%@&|^]=?|[=<>~(){}\[\],:;.])`)
)

var (
	// constants are the keywords that are operands.
	constants = strings.Fields("False None True")
	// compound are the keywords that begin statements with a block, which can only begin a line.
	compound = strings.Fields("class def for if while with")
	// laterLines are the keywords of statements that span several lines.
	laterLines = strings.Fields("elif except finally try")
	// needOperand are the symbols and keywords that must be followed by an operand.
	needOperand = strings.Fields("+ - * / // % @ & | ^ << >> ** ~ < > <= >= == != = += -= *= /= //= %= @= &= |= ^= <<= >>= **= := -> . " +
		"and as assert class def del for from global if import in is lambda nonlocal not or while with")
)

// kind is the kind of a token.
type kind int

const (
	ofSymbol kind = iota
	ofKeyword
	ofName
	ofNumber
	ofString
)

// token is a word, number, string or symbol of a program.
type token struct {
	kind kind
	text string
}

func (t token) is(texts ...string) bool {
	return t.kind <= ofKeyword && slices.Contains(texts, t.text)
}

// begins and ends report whether an operand begins or ends with a token. An opening ( or [ does not count, because it
// may be a call or subscript.
func (t token) begins() bool { return t.kind > ofKeyword || t.is("{") }
func (t token) ends() bool   { return t.kind > ofKeyword || t.is(")", "]", "}") }

// lineFault returns the fault of a program. nested reports whether expressions in a string may contain the quotes of
// that string, as since Python 3.12.
func lineFault(program string, nested bool) string {
	all, fault := tokens(program, nested)
	if fault != "" {
		return fault
	}
	var open []string
	colon, block := false, "" // in the statement
	for i, t := range all {
		before := token{text: ";"}
		if i > 0 {
			before = all[i-1]
		}
		inBrackets, starts := len(open) > 0, before.is(";") || before.is(":") && len(open) == 0
		switch {
		case t.is(laterLines...), t.is("else") && i+1 < len(all) && all[i+1].is(":"):
			return "must be valid Python: " + t.text + " needs more than one line"
		case starts && i > 0 && !inBrackets && t.is(compound...):
			return "must be valid Python: " + t.text + " can only begin a line"
		case i > 0 && before.ends() && t.begins() && !together(before, t):
			return fmt.Sprintf("must be valid Python: no operator is between %s and %s", before.text, t.text)
		case t.is(";") && inBrackets:
			return "must be valid Python: ; is in brackets"
		case t.is(";", ")", "]", "}") && before.is(needOperand...) && !importsAll(all[:i]) && (!inBrackets || !before.is("*", "/")):
			return "must be valid Python: nothing follows " + before.text
		case t.is("(", "[", "{"):
			open = append(open, t.text)
		case t.is(")", "]", "}"):
			if !inBrackets || closing[open[len(open)-1]] != t.text {
				return "must be valid Python: " + t.text + " closes nothing"
			}
			open = open[:len(open)-1]
		case i == 0 && t.is(compound...):
			block = t.text
		case t.is(":") && !inBrackets:
			colon = true
		}
	}
	if len(open) > 0 {
		return "must be valid Python: " + open[len(open)-1] + " is not closed"
	}
	return unfinished(all, block, colon)
}

// unfinished returns what a program without open brackets lacks at its end. block is the compound statement's keyword
// with which it begins, or "", and colon reports whether the program has a colon.
func unfinished(all []token, block string, colon bool) string {
	if len(all) == 0 {
		return ""
	}
	switch last := all[len(all)-1]; {
	case last.is(":"), last.is(needOperand...) && !importsAll(all):
		return "must be valid Python: nothing follows " + last.text
	case block != "" && !colon:
		return "must be valid Python: " + block + " needs a colon"
	}
	return ""
}

// together reports whether an operand may follow another, as adjacent strings and a name after the soft keyword type
// do.
func together(before, t token) bool {
	return before.kind == ofString && t.kind == ofString || before.text == "type" && t.kind == ofName
}

// importsAll reports whether tokens end with import *.
func importsAll(all []token) bool {
	n := len(all)
	return n > 1 && all[n-1].is("*") && all[n-2].is("import")
}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// tokens splits a program, up to a comment.
func tokens(program string, nested bool) (all []token, fault string) {
	for rest := strings.TrimLeft(program, " \t\f"); rest != "" && rest[0] != '#'; rest = strings.TrimLeft(rest, " \t\f") {
		t, length := token{}, 0
		if m := prefix.FindString(rest); m != "" {
			if length = quotedEnd(rest, len(m)-1, nested && strings.ContainsAny(m, "fFtT")); length < 0 {
				return nil, "must be valid Python: the string " + m + "... does not end"
			}
			t.kind = ofString
		} else if length = len(name.FindString(rest)); length > 0 {
			if t.kind = ofName; pytext.IsKeyword(rest[:length]) && !slices.Contains(constants, rest[:length]) {
				t.kind = ofKeyword
			}
		} else if length = len(number.FindString(rest)); length > 0 {
			t.kind = ofNumber
		} else if length = len(symbol.FindString(rest)); length == 0 {
			return nil, fmt.Sprintf("must be valid Python: %q is no part of it", []rune(rest)[0])
		}
		t.text, rest = rest[:length], rest[length:]
		all = append(all, t)
	}
	return all, ""
}

// quotedEnd returns the index after the string whose quotes begin at an index, or -1 if it does not end. If it has
// expressions, quotes in braces belong to other strings.
func quotedEnd(text string, at int, expressions bool) int {
	quote := text[at : at+1]
	if strings.HasPrefix(text[at:], strings.Repeat(text[at:at+1], 3)) {
		quote = text[at : at+3]
	}
	depth := 0
	for i := at + len(quote); i < len(text); i++ {
		switch {
		case depth == 0 && text[i] == '\\':
			i++
		case depth == 0 && strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case !expressions:
		case depth == 0 && strings.HasPrefix(text[i:], "{{"):
			i++
		case text[i] == '{':
			depth++
		case depth > 0 && text[i] == '}':
			depth--
		case depth > 0 && (text[i] == '"' || text[i] == '\''):
			end := quotedEnd(text, i, strings.ContainsAny(text[i-2:i], "fFtT"))
			if end < 0 {
				return -1
			}
			i = end - 1
		}
	}
	return -1
}
