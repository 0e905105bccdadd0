package pytext

import (
	"regexp"
	"slices"
)

var (
	// rootOfFile is a name for a directory above the file that has it: a constant, or a function without arguments.
	rootOfFile = regexp.MustCompile(`(?m)^(?:(\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[^\n]*\b__file__\b|def (\w+)\(\)[^\n]*:[ \t]*\n(?:[ \t]+[^\n]*\n|[ \t]*\n){0,10}?[ \t]+return [^\n]*\b__file__\b)`)
	// fileOfItself is a constant for a place below the directory of the file that has it.
	fileOfItself = regexp.MustCompile(`(?m)^(\w+)[ \t]*=[^\n]*\b__file__\b[^\n]*["'][^"'\n]+["']`)
	// belowRoot is a place in such a directory, and the constant or the argument that it is for.
	belowRoot = regexp.MustCompile(`(?m)(^|[(,]\s*)(\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[ \t]*(?:str\(|os\.path\.join\(|Path\()*(\w+)(?:\(\))?[ \t]*[,/][ \t]*f?["']`)
	// OfResults is how places for what a training writes are called.
	OfResults = regexp.MustCompile(`(?i)save|out|log|model|checkpoint|ckpt|result|run|weight|^local_dir$|storage|artifact`)
)

// maxRoots bounds the names that are looked for.
const maxRoots = 20

// WritesBesideItself reports whether the files of a program write to a place that they name by where they are, as with
// Path(__file__): the project's own directory, which the image forbids.
func WritesBesideItself(texts []string) bool {
	names := map[string]bool{}
	for _, text := range texts {
		for _, m := range rootOfFile.FindAllStringSubmatch(text, maxRoots) {
			names[m[1]+m[2]] = true
		}
	}
	for _, text := range texts {
		for _, m := range fileOfItself.FindAllStringSubmatch(text, maxRoots) {
			if writesTo(texts, m[1]) || regexp.MustCompile(`\b(?:open\([ \t]*`+m[1]+`[ \t]*,[ \t]*["'][awx]|to_csv\([ \t]*`+m[1]+`\b|makedirs\(os\.path\.dirname\(`+m[1]+`\b)`).MatchString(text) {
				return true
			}
		}
	}
	if len(names) == 0 {
		return false
	}
	for _, text := range texts {
		for _, m := range belowRoot.FindAllStringSubmatch(text, maxRoots) {
			if names[m[3]] && OfResults.MatchString(m[2]) && (m[1] != "" || writesTo(texts, m[2])) {
				return true
			}
		}
	}
	return false
}

// writesTo reports whether files make the directory of a constant, or save something there.
func writesTo(texts []string, constant string) bool {
	writes := regexp.MustCompile(`\b` + constant + `\.mkdir\(|\bfor (?:\w+) in [(\[][^()\[\]]*\b` + constant + `\b[^()\[\]]*[)\]]:\s+(?:\w+\.mkdir|[\w.]*\bmakedirs)\(|\bmakedirs\([ \t]*` + constant + `\b|(?:save|dump)\w*\([^\n]*\b` + constant + `\b`)
	return slices.ContainsFunc(texts, writes.MatchString)
}
