package programs

import "regexp"

var (
	// rootOfFile is a name for a directory above the file that has it: a constant, or a function without arguments.
	rootOfFile = regexp.MustCompile(`(?m)^(?:(\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[^\n]*\b__file__\b|def (\w+)\(\)[^\n]*:[ \t]*\n(?:[ \t]+[^\n]*\n|[ \t]*\n){0,10}?[ \t]+return [^\n]*\b__file__\b)`)
	// belowRoot is a place in such a directory, and the constant or the argument that it is for.
	belowRoot = regexp.MustCompile(`(?m)(^|[(,]\s*)(\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[ \t]*(?:str\(|os\.path\.join\(|Path\()*(\w+)(?:\(\))?[ \t]*[,/][ \t]*f?["']`)
	// ofResults is how places for what a training writes are called.
	ofResults = regexp.MustCompile(`(?i)save|out|log|model|checkpoint|ckpt|result|run|weight|^local_dir$|storage|artifact`)
)

// maxRoots bounds the names that are looked for.
const maxRoots = 20

// writesBesideItself reports whether a program writes to a place that it names by where its own files are, as with
// Path(__file__): the project's own directory, which the image forbids.
func (f *Finder) writesBesideItself(p *program) bool {
	files := f.withImports(p)
	names := map[string]bool{}
	for _, file := range files {
		for _, m := range rootOfFile.FindAllStringSubmatch(f.text[file], maxRoots) {
			names[m[1]+m[2]] = true
		}
	}
	if len(names) == 0 {
		return false
	}
	for _, file := range files {
		for _, m := range belowRoot.FindAllStringSubmatch(f.text[file], maxRoots) {
			if names[m[3]] && ofResults.MatchString(m[2]) && (m[1] != "" || f.writesTo(files, m[2])) {
				return true
			}
		}
	}
	return false
}

// writesTo reports whether files make the directory of a constant, or save something there.
func (f *Finder) writesTo(files []string, constant string) bool {
	writes := regexp.MustCompile(`\b` + constant + `\.mkdir\(|\bfor (?:\w+) in [(\[][^()\[\]]*\b` + constant + `\b[^()\[\]]*[)\]]:\s+(?:\w+\.mkdir|[\w.]*\bmakedirs)\(|\bmakedirs\([ \t]*` + constant + `\b|(?:save|dump)\w*\([^\n]*\b` + constant + `\b`)
	for _, file := range files {
		if writes.MatchString(f.text[file]) {
			return true
		}
	}
	return false
}
