package dashboards

import (
	"slices"
	"testing"
)

// Options of a column are set by its title, so no event label shares the title of another column.
func TestTitlesOfLabels(t *testing.T) {
	for label, want := range map[string]string{"policy_version": "Policy version", "label_region": "Region", "label_": "label_"} {
		if got := labelTitle(label); got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
	columns := distinct(append(labelColumns("env", "label_env", "label_region", "label_score"), column{"Value", "Score", nil}))
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	if want := []string{"Env", "Label env", "Region", "Label score", "Score"}; !slices.Equal(titles, want) {
		t.Errorf("titles %q, want %q", titles, want)
	}
}
