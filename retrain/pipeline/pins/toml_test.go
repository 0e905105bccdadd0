package pins_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
)

func TestOptionalGroups(t *testing.T) {
	const text = "[tool.poetry.dependencies]\ntorch = \"2\"\n\n[tool.poetry.group.isaac]\noptional = true\n\n" +
		"[tool.poetry.group.isaac.dependencies]\nisaacgym = {path = \"x\"}\n\n[tool.poetry.group.tools.dependencies]\nrich = \"<12\"\noptional = true\n"
	if got := slices.Sorted(maps.Keys(pins.OptionalGroups(text))); !slices.Equal(got, []string{"tool.poetry.group.isaac.dependencies"}) {
		t.Errorf("OptionalGroups: %q", got)
	}
}
