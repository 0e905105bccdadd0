package literals

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func known(name string) (Value, bool) {
	switch name {
	case "N":
		return Value{Kind: Int, Number: 8, Text: "8"}, true
	case "args.lr":
		return Value{Kind: Float, Number: 3e-4, Text: "3e-4"}, true
	case "CONFIG":
		return Of(`{"lr": 1e-3, "net": {"arch": [64, 64]}}`, known)
	}
	return Value{}, false
}

func TestOf(t *testing.T) {
	for expression, want := range map[string]string{
		"3e-4": "3e-4", "2_048": "2048", ".99": "0.99", "1.": "1.0", "1e6": "1e6", "1.5E-3": "0.0015", "int(1e6)": "1000000", "float(2)": "2",
		"N * 256": "2048", "2 ** 11": "2048", "-0.5": "-0.5", "10 / 4": "2.5", "8 / 4": "2.0", "7 // 2": "3", "1 - 0.25": "0.75", "(1 + 2) * 3": "9",
		"2 ** -1": "0.5", "None": "null", "True": "true", "False": "false", "args.lr": "3e-4", "args . lr": "3e-4",
		`"auto"`: `"auto"`, "'a \"b\"'": `"a \"b\""`, `r"x"`: `"x"`, `"auto_0.1"`: `"auto_0.1"`,
		"[64, 64]": "[64, 64]", "[64, N,]": "[64, 8]", "[]": "[]",
		"dict(net_arch=[64, 64],\n  pi=dict(a=1))": `{"net_arch": [64, 64], "pi": {"a": 1}}`,
		`{"pi": [64], 'vf': [N]}`:                  `{"pi": [64], "vf": [8]}`,
		`CONFIG.get("lr", 5)`:                      "1e-3",
		`CONFIG.get("x", 5)`:                       "5",
		`CONFIG.get("x")`:                          "null",
		`float("3e-4")`:                            "3e-4",
		`int("7")`:                                 "7",
		`bool(True)`:                               "true",
		`str("a")`:                                 `"a"`,
		`CONFIG["lr"]`:                             "1e-3",
		`CONFIG["net"]["arch"]`:                    "[64, 64]",
		`{**CONFIG["net"], "arch": [1]}`:           `{"arch": [1]}`,
		`dict(**CONFIG["net"], depth=2)`:           `{"arch": [64, 64], "depth": 2}`,
		strings.Repeat("(", 10) + "1" + strings.Repeat(")", 10): "1",
	} {
		v, ok := Of(expression, known)
		got, written := v.YAML()
		if !ok || !written || got != want {
			t.Errorf("%s: got %q, %v and %v, want %q", expression, got, ok, written, want)
		}
	}
}

func TestOfWhatIsNotKnown(t *testing.T) {
	for _, expression := range []string{
		"", "lr", "schedule(3e-4)", "lambda f: f", "[1, x]", `f"a{b}"`, `"a" "b"`, `"a\n"`, "1 if x else 2", "N and 2", "{1: 2}", "{'a'}", "[1", "(1", "dict(1)", "dict(a=1",
		`CONFIG["x"]`, "CONFIG[0]", "N[0]", "nn.ReLU", "N.get('a')", "other.get('a')", "CONFIG.get()", "int('x')", "bool(N)", "'a' * 2", "1 2", "args.lr.x", "int(1, 2)", "len([1])", "1 +", "**CONFIG", "{**N}", "-[1]",
		strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100), strings.Repeat("-", 100) + "1", "[" + strings.Repeat("1,", 1000) + "]",
	} {
		if v, ok := Of(expression, known); ok {
			t.Errorf("%.40s: got %+v", expression, v)
		}
	}
}

// Valid in Python, but not in a pipeline file.
func TestYAMLHasNo(t *testing.T) {
	for _, expression := range []string{`(1, "episode")`, `[(1, 2)]`, `"{{x}}"`, `{"{{": 1}`, "1 / 0", "1e400", "10 ** 30", "'" + strings.Repeat("x", 300) + "'", "'\x00'", "'\xff'"} {
		v, ok := Of(expression, known)
		if !ok {
			t.Errorf("%q has no value", expression)
		}
		if got, written := v.YAML(); written {
			t.Errorf("%q is written as %s", expression, got)
		}
	}
}

func TestOfYAML(t *testing.T) {
	v, ok := OfYAML([]byte("a: {b: [1, 2.5, x]}\nc: null\nd: true\ne: -3\n"))
	if got, written := v.YAML(); !ok || !written || got != `{"a": {"b": [1, 2.5, "x"]}, "c": null, "d": true, "e": -3}` {
		t.Errorf("got %s, %v and %v", got, ok, written)
	}
	for _, text := range []string{"a: [", "f: .inf\n", "a: 1\n---\nb: 2\n", "\xff", ""} {
		if v, ok := OfYAML([]byte(text)); ok {
			t.Errorf("%q: got %+v", text, v)
		}
	}
}

func TestNumberOf(t *testing.T) {
	for text, want := range map[string]float64{"5_000_000)": 5e6, "N * 1000, x": 8000, "(N) * 2\n": 16, "int(50e6), help": 50e6} {
		if got := NumberOf(text, known); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"x * 2", "'a'", ""} {
		if got := NumberOf(text, known); !math.IsNaN(got) {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{`{"a": [1, N], **CONFIG}`, "dict(a=-1 ** 2 // 3)", `CONFIG["net"]["arch"]`, "((1,),)", "int(1e6) / 0", "\"\xff\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := Of(text, known)
		if !ok {
			return
		}
		if out, written := v.YAML(); written && (!utf8.ValidString(out) || strings.Contains(out, "\n")) {
			t.Errorf("%q becomes %q", text, out)
		}
	})
}
