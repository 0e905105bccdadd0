package saves

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/traits"
)

// By reports whether a program saves something at the place that a setting names.
func By(text, setting string) bool {
	for _, m := range traits.Saving.FindAllStringIndex(text, 100) {
		if slices.ContainsFunc(modules.ArgumentsOf(text, m[1]-1), func(a modules.Argument) bool { return strings.Contains(a.Text, "."+setting) }) {
			return true
		}
	}
	return false
}

// OnlyLoads reports whether a program uses an argument, and only in calls that load something.
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

// loadsBefore is a call that loads something, up to its argument.
var loadsBefore = regexp.MustCompile(`(?:load\w*|restore\w*)\([^()]*$|\bif\b[^:]*$`)

// attributeAlone is an attribute of a name, and nothing else.
var attributeAlone = regexp.MustCompile(`^[A-Za-z_]\w*\.(\w+)$`)

// Places returns the attributes that a program saves something exactly at, such as those of its arguments.
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

// LoadsFile reports whether a program loads the file that an argument names, whatever that is called.
func LoadsFile(text, key string) bool {
	return regexp.MustCompile(`\b(?:torch|th|pickle|joblib|np)\.load\(\s*(?:open\(\s*)?\w+\.` + regexp.QuoteMeta(key) + `\s*[,)]`).MatchString(text)
}

// LoadedBy returns the argument that names a file which the files of a program load, nil for none.
func LoadedBy(texts []string, arguments []modules.Option) *modules.Option {
	i := slices.IndexFunc(arguments, func(x modules.Option) bool {
		return !x.Boolean && slices.ContainsFunc(texts, func(text string) bool { return LoadsFile(text, x.Key()) })
	})
	if i < 0 {
		return nil
	}
	return &arguments[i]
}

// DirectoryBefore returns the directory that a program puts before an argument, "" for none.
func DirectoryBefore(text, key string) string {
	m := regexp.MustCompile(`["']([\w./-]+/)["'][ \t]*\+[ \t]*[\w.]+\.` + regexp.QuoteMeta(key) + `\b|\bf["']([\w./-]+/)\{[\w.]+\.` + regexp.QuoteMeta(key) + `\}|\bjoin\(["']([\w./-]+)["'],[ \t]*[\w.]+\.` + regexp.QuoteMeta(key) + `\b`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(m[1]+m[2]+m[3], "./"), "/") + "/"
}

// ReadsAt reports whether a program reads something below the directory that an argument names.
func ReadsAt(text, key string) bool {
	return regexp.MustCompile(`(?:load\w*|restore\w*|read\w*|open|listdir|glob|exists|isfile|isdir)\([^\n]*\.` + regexp.QuoteMeta(key) + `\b`).MatchString(text)
}

// ofSaving is an argument that turns saving of the model on.
var ofSaving = regexp.MustCompile(`^(save_model|save|save_agent|save_policy)$`)

// Turns returns whether an argument turns saving of the model on, by its key. If the code seems to save nothing, it must use
// the argument.
func Turns(texts []string, nothing bool) func(modules.Option) bool {
	return func(x modules.Option) bool {
		return ofSaving.MatchString(x.Key()) && (!nothing || Uses(texts, x.Key()))
	}
}

// Uses reports whether code may use an argument: it names it as an attribute, a key or a condition, or passes all on.
func Uses(texts []string, key string) bool {
	key = regexp.QuoteMeta(key)
	uses := regexp.MustCompile(`(?:[\w)]\.|\b(?:if|and|or|not)[ \t]+)` + key + `\b(?:[^(\w]|$)|\[["']` + key + `["']\]|\*\*\w*(?:args|opts?|cfg|config)\b|\bvars\(`)
	return slices.ContainsFunc(texts, uses.MatchString)
}
