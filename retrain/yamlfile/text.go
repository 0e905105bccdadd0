package yamlfile

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// byteOrderMark may be the first character of a text. It has no meaning.
const byteOrderMark = "\ufeff"

// notText returns the place of the first byte that is not UTF-8, which the parser would replace silently, or false
// if there is none.
func notText(file, text string) (Place, bool) {
	if utf8.ValidString(text) {
		return Place{}, false
	}
	i := 0
	for i < len(text) {
		if r, size := utf8.DecodeRuneInString(text[i:]); r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		break
	}
	before := text[:i]
	return Place{file, 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])}, true
}

// conflict returns the line of the first marker that Git writes where a merge failed, or 0.
func conflict(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if n++; strings.HasPrefix(line, "<<<<<<< ") {
			return n
		}
	}
	return 0
}

// word returns an item of a list as one word if the parser took it for a key and its value although no space
// follows the colon, as it does with [host:9092] within braces. It returns other items as they are.
func word(item ast.Node) ast.Node {
	e, ok := item.(*ast.MappingValueNode)
	if m, one := item.(*ast.MappingNode); one && len(m.Values) == 1 && m.Start != nil && m.Start.Type != token.MappingStartType {
		e, ok = m.Values[0], true
	}
	if !ok || e.Start == nil || e.Value == nil {
		return item
	}
	key, value := e.Key.GetToken(), e.Value.GetToken()
	if _, scalar := e.Value.(ast.ScalarNode); !scalar || key == nil || value == nil || key.Type != token.StringType || !touch(key, e.Start) || !touch(e.Start, value) {
		return item
	}
	text := strings.TrimSpace(key.Value) + ":" + strings.TrimSpace(value.Origin)
	return ast.String(token.String(text, text, key.Position))
}

// touch reports whether a token begins where another ends.
func touch(a, b *token.Token) bool {
	return a.Position.Line == b.Position.Line && b.Position.Column == a.Position.Column+utf8.RuneCountInString(strings.TrimSpace(a.Origin))
}
