package saves

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// By reports whether a program saves something to the path in a setting.
func By(text, setting string) bool {
	for _, m := range traits.Saving.FindAllStringIndex(text, 100) {
		if slices.ContainsFunc(modules.ArgumentsOf(text, m[1]-1), func(a modules.Argument) bool { return strings.Contains(a.Text, "."+setting) }) {
			return true
		}
	}
	return false
}

// OnlyLoads reports whether a program uses an argument, and only in conditions and in calls that load something.
func OnlyLoads(text, key string) bool {
	all := regexp.MustCompile(`\.`+regexp.QuoteMeta(key)+`\b`).FindAllStringIndex(text, 20)
	for _, at := range all {
		line := text[strings.LastIndexByte(text[:at[0]], '\n')+1 : at[0]]
		if !loadsBefore.MatchString(line) {
			return false
		}
	}
	return len(all) > 0
}

// loadsBefore matches the part of a line before an argument that is loaded or is part of a condition.
var loadsBefore = pattern.MustCompile(`(?:load\w*|restore\w*)\([^()]*$|\bif\b[^:]*$`)

// attributeAlone matches an expression that is a single attribute, such as args.path.
var attributeAlone = pattern.MustCompile(`^[A-Za-z_]\w*\.(\w+)$`)

// Places returns the names of the attributes that are passed unchanged to calls that save something, such as args.path.
func Places(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range traits.Saving.FindAllStringIndex(text, 100) {
		for _, a := range modules.ArgumentsOf(text, m[1]-1) {
			if at := attributeAlone.FindStringSubmatch(a.Text); at != nil {
				out[at[1]] = true
			}
		}
	}
	return out
}

// LoadsFile reports whether a program loads the file named by an argument. The name of the argument does not matter.
func LoadsFile(text, key string) bool {
	return regexp.MustCompile(`\b(?:torch|th|pickle|joblib|np)\.load\(\s*(?:open\(\s*)?\w+\.` + regexp.QuoteMeta(key) + `\s*[,)]`).MatchString(text)
}

// LoadedBy returns the argument that names a file which the program loads, or nil.
func LoadedBy(texts []string, arguments []modules.Option) *modules.Option {
	i := slices.IndexFunc(arguments, func(x modules.Option) bool {
		return !x.Boolean && slices.ContainsFunc(texts, func(text string) bool { return LoadsFile(text, x.Key()) })
	})
	if i < 0 {
		return nil
	}
	return &arguments[i]
}

// DirectoryBefore returns the directory that a program prepends to an argument, or "".
func DirectoryBefore(text, key string) string {
	m := regexp.MustCompile(`["']([\w./-]+/)["'][ \t]*\+[ \t]*[\w.]+\.` + regexp.QuoteMeta(key) + `\b|\bf["']([\w./-]+/)\{[\w.]+\.` + regexp.QuoteMeta(key) + `\}|\bjoin\(["']([\w./-]+)["'],[ \t]*[\w.]+\.` + regexp.QuoteMeta(key) + `\b`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(m[1]+m[2]+m[3], "./"), "/") + "/"
}

// ReadsAt reports whether a program reads something below the directory named by an argument.
func ReadsAt(text, key string) bool {
	return regexp.MustCompile(`(?:load\w*|restore\w*|read\w*|open|listdir|glob|exists|isfile|isdir)\([^\n]*\.` + regexp.QuoteMeta(key) + `\b`).MatchString(text)
}

// ofSaving matches arguments that enable saving of the model.
var ofSaving = pattern.MustCompile(`^(?:save(?:_(?:models?|agent|policy|checkpoints?|final_model))?|(?:checkpoint|save)_enabled?)$`)

// Turns returns a function that reports whether an argument enables saving of the model, judging by its name. If
// nothing is true, the code does not seem to save anything, so the argument counts only if the code uses it.
func Turns(texts []string, nothing bool) func(modules.Option) bool {
	return func(x modules.Option) bool {
		return ofSaving.MatchString(x.Key()) && (!nothing || Uses(texts, x.Key()))
	}
}

// Uses reports whether code may use an argument: as an attribute, a key or a condition, or by passing on all arguments.
func Uses(texts []string, key string) bool {
	key = regexp.QuoteMeta(key)
	uses := pattern.MustCompile(`(?:[\w)]\.|\b(?:if|and|or|not)[ \t]+)` + key + `\b(?:[^(\w]|$)|\[["']` + key + `["']\]|\*\*\w*(?:args|opts?|cfg|config)\b|\bvars\(`)
	return slices.ContainsFunc(texts, uses.MatchString)
}
