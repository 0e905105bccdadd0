package retrain

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/retraining.md shows the recipes of deploy/recipes, and what they make of an incident.
func TestDocsShowWhatRecipesMake(t *testing.T) {
	text, err := os.ReadFile("../docs/retraining.md")
	check(t, err)
	shows := func(part string) {
		if !strings.Contains(string(text), part) {
			t.Errorf("docs/retraining.md does not have\n%s", part)
		}
	}
	files, err := filepath.Glob("../deploy/recipes/*.yaml")
	check(t, err)
	for _, file := range files {
		recipe, err := os.ReadFile(file)
		check(t, err)
		shows("```yaml\n# " + filepath.Base(file) + "\n" + string(recipe) + "```")
	}
	recipes, err := LoadRecipes("../deploy/recipes", []string{"env"})
	check(t, err)
	inc := incident("i1", "checkout-ranker")
	inc.Alarms[0].Onset.TS = 1_795_168_800_250_000_000
	o := newOrder("rr_4a1c22", inc, inc.Alarms)
	check(t, o.instruct(recipes["checkout-ranker"], onsetOf(inc.Alarms[0])))
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	check(t, e.Encode(map[string]any{
		"recipe": o.Recipe, "contract": o.Contract, "contract_from": o.ContractFrom, "config": o.Config, "config_from": o.ConfigFrom,
	}))
	shows("```json\n" + b.String() + "```")
	for name := range referencesFor(nil) {
		shows("`" + name + "`")
	}
}

// The targets that docs/retraining.md shows are right, and there is one of each kind.
func TestDocsShowEveryKindOfTarget(t *testing.T) {
	text, err := os.ReadFile("../docs/retraining.md")
	check(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Targets\n")
	section, _, _ = strings.Cut(section, "\n## ")
	seen := map[string]bool{}
	for i, block := range strings.Split(section, "```") {
		example, shown := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !shown {
			continue
		}
		cfg, err := parse("targets:\n" + example)
		check(t, err)
		cfg.Check(func(path, msg string) { t.Errorf("%s%s: %s", example, path, msg) })
		for _, k := range cfg.Targets[0].kinds() {
			seen[k.key] = seen[k.key] || k.given()
		}
	}
	for kind, shown := range seen {
		if !shown || !strings.Contains(section, "| `"+kind+"` |") {
			t.Errorf("%s has no example, or no row", kind)
		}
	}
	if want := "`" + strings.Join(spare(), "`, `") + "`"; !strings.Contains(strings.ReplaceAll(section, "\n", " "), want) {
		t.Errorf("the section does not have %s", want)
	}
}
