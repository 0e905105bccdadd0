package recipe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// docs/retraining.md shows the recipes of deploy/recipes, and the orders that they produce for an incident.
func TestDocsShowWhatRecipesMake(t *testing.T) {
	text, err := os.ReadFile("../../docs/retraining.md")
	check(t, err)
	shows := func(part string) {
		if !strings.Contains(string(text), part) {
			t.Errorf("docs/retraining.md does not have\n%s", part)
		}
	}
	files, err := filepath.Glob("../../deploy/recipes/*.yaml")
	check(t, err)
	for _, file := range files {
		recipe, err := os.ReadFile(file)
		check(t, err)
		shows("```yaml\n# " + filepath.Base(file) + "\n" + string(recipe) + "```")
	}
	recipes, err := Load("../../deploy/recipes", []string{"env"})
	check(t, err)
	inc := retraintest.Incident("i1", "checkout-ranker")
	inc.Alarms[0].Onset.TS = 1_795_168_800_250_000_000
	o := newOrder("rr_4a1c22", inc, inc.Alarms)
	check(t, o.instruct(recipes["checkout-ranker"], onsetOf(inc.Alarms[0])))
	want, err := json.Marshal(map[string]any{"recipe": o.Recipe, "contract": o.Contract, "config": o.Config})
	check(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Contents of a request\n")
	_, shown, _ := strings.Cut(section, "```json\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !sameJSON(t, []byte(shown), want) {
		t.Errorf("docs/retraining.md shows\n%s\nwant\n%s", shown, want)
	}
	shows("`\"learning_rate\": \"" + o.ConfigFrom["learning_rate"] + "\"`")
	for name := range referencesFor(nil) {
		shows("`" + name + "`")
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var left, right any
	check(t, json.Unmarshal(a, &left))
	check(t, json.Unmarshal(b, &right))
	return reflect.DeepEqual(left, right)
}
