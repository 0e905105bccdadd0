package target

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The targets in docs/targets.md are valid, and there is one of each kind.
func TestDocsShowEveryKindOfTarget(t *testing.T) {
	text, err := os.ReadFile("../../docs/targets.md")
	check(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Targets\n")
	section, _, _ = strings.Cut(section, "\n## ")
	seen := map[string]bool{}
	for i, block := range strings.Split(section, "```") {
		example, is := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !is {
			continue
		}
		var shown []Target
		check(t, yaml.UnmarshalWithOptions([]byte(example), &shown, yaml.Strict()))
		shown[0].Check("", func(path, msg string) { t.Errorf("%s%s: %s", example, path, msg) })
		for _, k := range shown[0].kinds() {
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
