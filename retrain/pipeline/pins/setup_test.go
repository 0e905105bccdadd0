package pins_test

import (
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
