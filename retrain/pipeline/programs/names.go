package programs

import (
	"path"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
)

// targetOf is a class that settings name for a program to make.
var targetOf = regexp.MustCompile(`(?m)^[ \t-]*_target_:[ \t]*["']?([A-Za-z_]\w*)\.`)

// Names reports whether a program, a notebook or a file of settings imports a module or names it in a text, also in a
// function. It reports true for any module if not all programs were kept.
func (f *Finder) Names(module string) bool {
	if f.dropped || f.targets[module] {
		return true
	}
	known, ok := f.namedModules[module]
	if !ok {
		re := regexp.MustCompile(`\b(?:import|from)\b[^\n]*\b` + regexp.QuoteMeta(module) + `\b|["']` + regexp.QuoteMeta(module) + `["'.]`)
		names := func(text string) bool { return strings.Contains(text, module) && re.MatchString(text) }
		known = names(f.notebooks.String())
		for file, text := range f.Text {
			known = known || path.Base(file) != "setup.py" && names(text)
		}
		f.namedModules[module] = known
	}
	return known
}

// plainName returns a name without what its spellings differ in.
func plainName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// notebook keeps what a notebook imports or names.
func (f *Finder) notebook(code []byte) {
	if f.notebooks.Len()+len(code) > modules.MaxKept {
		f.dropped = true
		return
	}
	f.notebooks.Write(code)
}
