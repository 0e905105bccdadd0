package pins_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
)

func TestInlined(t *testing.T) {
	for text, want := range map[string]string{
		"NEEDS = [\n  'gym==0.17.2',\n]\nsetup(install_requires=NEEDS)":      "NEEDS = [\n  'gym==0.17.2',\n]\nsetup(install_requires=[\n  'gym==0.17.2',\n])",
		"NAME = \"lander\"\nsetup(\n    name=NAME,\n    packages=packages)":  "NAME = \"lander\"\nsetup(\n    name=\"lander\",\n    packages=packages)",
		"setup(install_requires=read('requirements.txt'), name=find_name())": "setup(install_requires=read('requirements.txt'), name=find_name())",
		"setup(name=NAME)": "setup(name=NAME)",
	} {
		if got := pins.Inlined(text); got != want {
			t.Errorf("Inlined(%q) is %q, not %q", text, got, want)
		}
	}
}

func TestOptionalGroups(t *testing.T) {
	const text = "[tool.poetry.dependencies]\ntorch = \"2\"\n\n[tool.poetry.group.isaac]\noptional = true\n\n" +
		"[tool.poetry.group.isaac.dependencies]\nisaacgym = {path = \"x\"}\n\n[tool.poetry.group.tools.dependencies]\nrich = \"<12\"\noptional = true\n"
	if got := slices.Sorted(maps.Keys(pins.OptionalGroups(text))); !slices.Equal(got, []string{"tool.poetry.group.isaac.dependencies"}) {
		t.Errorf("OptionalGroups: %q", got)
	}
}
