package programs

import (
	"path"
	"regexp"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
)

// targetOf matches the module of a class that settings tell a program to instantiate.
var targetOf = regexp.MustCompile(`(?m)^[ \t-]*_target_:[ \t]*["']?([A-Za-z_]\w*)\.`)

// Names reports whether a program, notebook or settings file imports a module or mentions it in a string. It reports
// true for every module if some programs were not kept.
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

// plainName normalizes the spelling of a name.
func plainName(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// notebook keeps the code of a notebook for Names.
func (f *Finder) notebook(code []byte) {
	if f.notebooks.Len()+len(code) > modules.MaxKept {
		f.dropped = true
		return
	}
	f.notebooks.Write(code)
}
