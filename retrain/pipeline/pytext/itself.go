package pytext

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// rootOfFile matches a constant, or a function without arguments, for a directory above its own file.
	rootOfFile = pattern.MustCompile(`(?m)^(?:(\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[^\n]*\b__file__\b|def (\w+)\(\)[^\n]*:[ \t]*\n(?:[ \t]+[^\n]*\n|[ \t]*\n){0,10}?[ \t]+return [^\n]*\b__file__\b)`)
	// fileOfItself matches a constant for a path below the directory of its own file.
	fileOfItself = pattern.MustCompile(`(?m)^(\w+)[ \t]*=[^\n]*\b__file__\b[^\n]*["'][^"'\n]+["']`)
	// belowRoot matches a path below such a directory, with the constant or argument that it is assigned to.
	belowRoot = pattern.MustCompile(`(?m)(^|[(,]\s*)(\w+)[ \t]*(?::[ \t]*[\w.]+[ \t]*)?=[ \t]*(?:str\(|os\.path\.join\(|Path\()*(\w+)(?:\(\))?[ \t]*[,/][ \t]*f?["']`)
	// OfResults matches the usual names of directories for the output of a training.
	OfResults = pattern.MustCompile(`(?i)save|out|log|model|checkpoint|ckpt|result|run|weight|^local_dir$|storage|artifact`)
)

// maxRoots bounds the number of names that are examined.
const maxRoots = 20

// WritesBesideItself reports whether a program writes below the directory of its own files, as with Path(__file__). The
// image forbids this.
func WritesBesideItself(texts []string) bool {
	names := map[string]bool{}
	for _, text := range texts {
		for _, m := range rootOfFile.FindAllStringSubmatch(text, maxRoots) {
			names[m[1]+m[2]] = true
		}
	}
	for _, text := range texts {
		for _, m := range fileOfItself.FindAllStringSubmatch(text, maxRoots) {
			if writesTo(texts, m[1]) || pattern.MustCompile(`\b(?:open\([ \t]*`+m[1]+`[ \t]*,[ \t]*["'][awx]|to_csv\([ \t]*`+m[1]+`\b|makedirs\(os\.path\.dirname\(`+m[1]+`\b)`).MatchString(text) {
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

// writesTo reports whether files create the directory of a constant, or save something there.
func writesTo(texts []string, constant string) bool {
	writes := pattern.MustCompile(`\b` + constant + `\.mkdir\(|\bfor (?:\w+) in [(\[][^()\[\]]*\b` + constant + `\b[^()\[\]]*[)\]]:\s+(?:\w+\.mkdir|[\w.]*\bmakedirs)\(|\bmakedirs\([ \t]*` + constant + `\b|(?:save|dump)\w*\([^\n]*\b` + constant + `\b`)
	return slices.ContainsFunc(texts, writes.MatchString)
}
