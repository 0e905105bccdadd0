package nearest_test

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

func TestOf(t *testing.T) {
	known := []string{"incident", "inspect", "retrain", "replay", "validate"}
	for word, want := range map[string]string{
		"incidnt":  "incident",
		"incident": "incident",
		"reply":    "replay",
		"valdiate": "validate",
		"":         "",
		"watch":    "",
		"zzzzzzzz": "",
	} {
		if got := nearest.Of(word, slices.Values(known)); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
	if got := nearest.Of("ab", slices.Values([]string{"aa", "bb"})); got != "aa" {
		t.Errorf("of two equally near words, %q was chosen", got)
	}
}
