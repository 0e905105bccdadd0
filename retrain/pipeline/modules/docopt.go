package modules

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	callsDocopt   = pattern.MustCompile(`\bdocopt\(`)
	docoptOption  = pattern.MustCompile(`(?m)^[ \t]+(?:-\w(?:[ =](?:<[\w -]+>|[A-Z_]+))?,?[ \t]+)?(--[a-z][\w-]*)(?:[ =](<[\w -]+>|[A-Z][A-Z_]*))?(?:[ \t]{2,}([^\n]*))?$`)
	docoptDefault = pattern.MustCompile(`\[default:[ \t]*([^\]\n]*?)[ \t]*\]`)
)

// docoptFlags records the options that a docopt text describes.
func (s *scan) docoptFlags(text string) {
	if !callsDocopt.MatchString(text) {
		return
	}
	for _, m := range docoptOption.FindAllStringSubmatchIndex(text, maxOptions) {
		g := Option{Name: text[m[2]:m[3]], Boolean: m[4] < 0, Help: Group(text, m, 3)}
		if d := docoptDefault.FindStringSubmatch(g.Help); d != nil && !g.Boolean {
			g.Value, g.Code = d[1], d[1]
		}
		if g.Name != "--help" && g.Name != "--version" && !strings.ContainsAny(g.Value, `"'`) {
			s.docopt = append(s.docopt, placedFlag{m[0], "", g})
		}
	}
}
