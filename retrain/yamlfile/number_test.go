package yamlfile

import (
	"strings"
	"testing"
)

// YAML has numbers without a point, which the parser reads as strings. In quotes they are strings.
func TestNumbersNeedNoPoint(t *testing.T) {
	for text, want := range map[string]float64{"1e-3": 1e-3, "-2E+5": -2e5, "7": 7, "1.5e3": 1500, ".5": .5} {
		var into struct {
			A float64 `yaml:"a"`
		}
		if p := Read("f.yaml", []byte("a: "+text+"\n"), &into).Problems(); len(p) > 0 || into.A != want {
			t.Errorf("%s: %v, %v", text, into.A, p)
		}
	}
	for _, text := range []string{`"1e-3"`, "'7'", "1e", "e3", "one"} {
		var into struct {
			A float64 `yaml:"a"`
		}
		p := Read("f.yaml", []byte("a: "+text+"\n"), &into).Problems()
		if len(p) != 1 || !strings.Contains(p[0].Message, "must be a finite number, not") || p[0].Column != 4 {
			t.Errorf("%s: %v, %v", text, into.A, p)
		}
	}
}

// A number that is too large is not a string, whatever its form.
func TestTooLargeNumbers(t *testing.T) {
	const whole, large = "must be a whole number, not the number ", "is too large"
	for text, want := range map[string][2]string{
		"99999999999999999999":   {large, ""},
		"-99999999999999999999":  {large, ""},
		"9223372036854775808":    {large, ""},
		"1e999":                  {large, large},
		"1.5e999":                {large, large},
		"-1.5e999":               {large, large},
		"1e6":                    {"", ""}, // JSON Schema also accepts it as a whole number
		"2.5e1":                  {"", ""},
		"1.25e1":                 {whole + "1.25e1", ""},
		"1e16":                   {whole + "1e16", ""}, // floats skip whole numbers there
		"9007199254740993e0":     {whole + "9007199254740993e0", ""},
		"1e-400":                 {whole + "1e-400", ""},
		"1.0e-400":               {whole + "1.0e-400", ""},
		"0e5":                    {"", ""},
		"-1e3":                   {"", ""},
		"09":                     {"must be a whole number, not a string", ""},
		"0.5":                    {whole + "0.5", ""},
		`"99999999999999999999"`: {"must be a whole number, not a string", "must be a finite number, not a string"},
	} {
		var i struct {
			A int `yaml:"a"`
		}
		var x struct {
			A float64 `yaml:"a"`
		}
		for j, into := range []any{&i, &x} {
			got := ""
			if p := Read("f.yaml", []byte("a: "+text+"\n"), into).Problems(); len(p) > 0 {
				got = p[0].Message
			}
			if got != want[j] {
				t.Errorf("%s: %q, want %q", text, got, want[j])
			}
			if text == "1e6" && (j == 0 && i.A != 1_000_000 || j == 1 && x.A != 1e6) {
				t.Errorf("%s is %d, or %v", text, i.A, x.A)
			}
		}
	}
}
