package yamlfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// unclosed returns the quote or bracket that is not closed where it should be, with a message, if that is why the
// parser failed at a token of a text; nil if it is not. The parser itself fails only where something else begins.
func unclosed(tokens token.Tokens, at *token.Token) (*token.Token, string) {
	if i := slices.Index(tokens, at); i > 0 && isQuoted(tokens[i-1]) {
		quote := tokens[i-1]
		if lines := strings.Count(strings.TrimSpace(quote.Origin), "\n"); lines > 0 {
			return quote, fmt.Sprintf("the quote that begins here ends only in line %d", at.Position.Line)
		}
	}
	var open []*token.Token
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open = append(open, t)
		case token.SequenceEndType, token.MappingEndType:
			open = open[:max(0, len(open)-1)]
		}
	}
	if len(open) == 0 || at.Position.Line < open[len(open)-1].Position.Line {
		return nil, ""
	}
	last := open[len(open)-1]
	return last, last.Value + " is not closed"
}

func isQuoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}
