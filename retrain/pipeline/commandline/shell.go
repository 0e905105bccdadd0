package commandline

import (
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
)

// Words of a proposed command that the shell expands.
const (
	WorkItself = "$WORK"
	Work       = WorkItself + "/"
	Project    = "$OLDPWD/"
	LastModel  = "$(find)" // the newest file with the extension or name that follows
	LastDir    = "$(dir)"  // the directory of such a file
)

// LastOfRay is the name of the newest checkpoint file of Ray before 2.0. It does not match the checkpoint's metadata.
const LastOfRay = "/checkpoint-*[0-9]"

// Expands reports whether a shell must expand a word.
func Expands(word string) bool {
	return strings.Contains(word, Work) || strings.Contains(word, LastModel) || strings.Contains(word, LastDir)
}

// Shell returns a command in which a shell executes before, and then replaces itself with words.
func Shell(before string, words []string) []string {
	var line strings.Builder
	line.WriteString(before + "exec")
	for _, w := range words {
		line.WriteString(" " + Quoted(w))
	}
	return []string{"sh", "-c", line.String()}
}

// Quoted quotes a word for a shell, except for the directories and commands that the shell must expand.
func Quoted(w string) string {
	if before, extension, ok := strings.Cut(w, LastModel); ok && (before == "" || modules.PlainWord.MatchString(before)) && (extension == LastOfRay || modules.PlainWord.MatchString(extension)) {
		name := `"*` + extension + `"`
		if strings.HasPrefix(extension, "/") {
			name = extension[1:]
			if extension == LastOfRay {
				name = `"` + name + `"`
			}
		}
		return before + `"$(find "$WORK" -name ` + name + ` -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)"`
	}
	if before, extension, ok := strings.Cut(w, LastDir); ok && (before == "" || modules.PlainWord.MatchString(before)) && modules.PlainWord.MatchString(extension) {
		return before + `"$(dirname ` + Quoted(LastModel+extension) + `)"`
	}
	if before, ok := strings.CutSuffix(w, WorkItself); ok && (before == "" || modules.PlainWord.MatchString(before)) {
		return before + `"` + WorkItself + `"`
	}
	for _, dir := range []string{Work, Project} {
		if before, after, ok := strings.Cut(w, dir); ok && (before == "" || modules.PlainWord.MatchString(before)) && modules.PlainWord.MatchString(after) {
			return before + `"` + dir + after + `"`
		}
	}
	if modules.PlainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
