package pytext

import (
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

// Identifier matches a name without dots, including keywords.
var Identifier = pattern.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var keywords = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import " +
	"in is lambda nonlocal not or pass raise return try while with yield")

// IsKeyword reports whether a word is a Python keyword and so cannot be a name.
func IsKeyword(word string) bool { return slices.Contains(keywords, word) }
