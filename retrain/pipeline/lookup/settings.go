package lookup

import (
	"path"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/hydra"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/literals"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pattern"
)

var (
	// readsSettings matches code that reads a settings file.
	readsSettings = pattern.MustCompile(`^(?:yaml\.(?:safe_|full_|unsafe_)?load|json\.loads?|OmegaConf\.load|(?:\w+\.)?(?:load|read|get)_(?:config|cfg|yaml|settings|params|hyperparams)\w*)\(`)
	passesOn      = pattern.MustCompile(`^(?:update|apply|merge|override|with|parse|process|resolve|deep)\w*\(\s*`)
	// returnsSettings matches code in a function that reads a settings file.
	returnsSettings = pattern.MustCompile(`\b(?:yaml\.(?:safe_|full_|unsafe_)?load|json\.loads?|OmegaConf\.load)\(`)
	namesSettings   = pattern.MustCompile(`["']((?:\.?[\w-]+/)*[\w.-]+\.ya?ml)["']`)
)

// readsSettings reports whether code reads a settings file, directly or through a function of the repository.
func (l *Lookup) readsSettings(file, code string) bool {
	if m := passesOn.FindStringIndex(code); m != nil { // what the other arguments change is unknown
		code = code[m[1]:]
	}
	if readsSettings.MatchString(code) {
		return true
	}
	m := madeOf.FindStringSubmatch(code)
	if m == nil {
		return false
	}
	body := l.files.Body(file, m[1])
	if to, ok := l.files.Imported(file)[m[1]]; ok && to.Name != "" {
		body = l.files.Body(to.File, to.Name)
	}
	return returnsSettings.MatchString(body) && strings.Contains(body, "return ")
}

// settings returns the values of the settings file that code reads: the file that the code names, the only one that its
// file names, or the one in the training command.
func (l *Lookup) settings(file, code string) (literals.Value, bool) {
	name := ""
	if m := namesSettings.FindStringSubmatch(code); m != nil {
		name = m[1]
	} else {
		for _, m := range namesSettings.FindAllStringSubmatch(l.files.Text[file], modules.MaxMatches) {
			if name != "" && name != m[1] {
				name = ""
				break
			}
			name = m[1]
		}
	}
	found := l.given()
	for _, dir := range []string{"", path.Dir(file)} {
		if s, ok := l.reader.Setting(dir, strings.TrimPrefix(name, "./")); ok && name != "" && (len(found) == 0 || strings.Contains(code, name)) {
			found = []hydra.Setting{s}
		}
	}
	if len(found) == 0 {
		return literals.Value{}, false
	}
	l.Source = found[0].File
	return literals.OfYAML(found[0].Text)
}
