package yamlfile

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// The limits of a text, checked before it is parsed. The parser recurses for each level, and its time grows with
// the square of the levels and of the keys of one mapping. It takes minutes for 200 kB of [.
const (
	maxNesting = 100
	maxTokens  = 100_000
)

// tooMuch returns the first token beyond the limits, and what is wrong with it, or nil.
func tooMuch(tokens token.Tokens) (at *token.Token, message string) {
	if len(tokens) > maxTokens {
		return tokens[maxTokens], fmt.Sprintf("has more than %d tokens", maxTokens)
	}
	var n nesting
	for _, t := range tokens {
		if n.add(t) > maxNesting {
			return t, fmt.Sprintf("is nested deeper than %d", maxNesting)
		}
	}
	return nil, ""
}

// nesting tracks how deep the tokens of a text nest, and never less than the parser does.
type nesting struct {
	flow       int   // open brackets
	columns    []int // of the keys and list items around the token, outside of brackets
	properties int   // consecutive anchors and tags
}

// add adds the next token, and returns its depth.
func (n *nesting) add(t *token.Token) int {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.flow++
	case token.SequenceEndType, token.MappingEndType:
		n.flow = max(0, n.flow-1)
	case token.SequenceEntryType, token.MappingKeyType:
		n.open(t)
	case token.MappingValueType:
		n.open(t.Prev) // the key
	}
	if t.Type == token.AnchorType || t.Type == token.TagType {
		n.properties++
	} else if t.Prev == nil || t.Prev.Type != token.AnchorType { // else it is the name of the anchor
		n.properties = 0
	}
	return n.flow + len(n.columns) + n.properties
}

// open begins a level at a token, and ends those that are at least as far to the right, which is how blocks end.
func (n *nesting) open(t *token.Token) {
	if n.flow > 0 || t == nil || t.Position == nil {
		return
	}
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] >= t.Position.Column {
		n.columns = n.columns[:len(n.columns)-1]
	}
	n.columns = append(n.columns, t.Position.Column)
}
