package pytext

import (
	"regexp"
	"slices"
	"strings"
)

// Identifier matches a name without dots. Keywords match as well.
var Identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var keywords = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import " +
	"in is lambda nonlocal not or pass raise return try while with yield")

// IsKeyword reports whether a word is a keyword of Python, so that nothing can have it as a name.
func IsKeyword(word string) bool { return slices.Contains(keywords, word) }
