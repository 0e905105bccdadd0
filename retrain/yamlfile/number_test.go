package yamlfile

import (
	"strings"
	"testing"
)

// YAML has numbers without a point, which the parser takes for strings. In quotes they are strings.
func TestNumbersNeedNoPoint(t *testing.T) {
	for text, want := range map[string]float64{"1e-3": 1e-3, "-2E+5": -2e5, "7": 7, "1.5e3": 1500, ".5": .5} {
		var into struct {
			A float64 `yaml:"a"`
		}
		if p := Read("f.yaml", []byte("a: "+text+"\n"), &into).Problems(); len(p) > 0 || into.A != want {
			t.Errorf("%s: %v, %v", text, into.A, p)
		}
	}
	for _, text := range []string{`"1e-3"`, "'7'", "1e999", "1e", "e3", "one"} {
		var into struct {
			A float64 `yaml:"a"`
		}
		p := Read("f.yaml", []byte("a: "+text+"\n"), &into).Problems()
		if len(p) != 1 || !strings.Contains(p[0].Message, "must be a finite number, not") || p[0].Column != 4 {
			t.Errorf("%s: %v, %v", text, into.A, p)
		}
	}
}
