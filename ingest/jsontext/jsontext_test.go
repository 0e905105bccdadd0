package jsontext

import (
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"
)

func FuzzAppendString(f *testing.F) {
	f.Add("plain")
	f.Add("\"\\\n\r\t\x00\x1f\x7f é€😀")
	f.Fuzz(func(t *testing.T, text string) {
		line := AppendString(nil, text)
		for _, c := range line {
			if c < ' ' {
				t.Fatalf("%q holds a control character", line)
			}
		}
		var back string
		if !utf8.ValidString(text) {
			return
		}
		if err := json.Unmarshal(line, &back); err != nil || back != text {
			t.Errorf("%q was written as %s (%v)", text, line, err)
		}
	})
}

func TestAppendNumber(t *testing.T) {
	for _, c := range []struct {
		x    float64
		bits int
		want string
	}{
		{0.1, 64, "0.1"},
		{float64(float32(0.1)), 32, "0.1"},
		{1e21, 64, "1e+21"},
		{math.Copysign(0, -1), 64, "-0"},
		{math.NaN(), 64, "NaN"},
		{math.Inf(1), 64, "Infinity"},
		{math.Inf(-1), 32, "-Infinity"},
	} {
		if got := string(AppendNumber(nil, c.x, c.bits)); got != c.want {
			t.Errorf("%v: %s, want %s", c.x, got, c.want)
		}
	}
}

func TestAppendStrictNumber(t *testing.T) {
	for x, want := range map[float64]string{1.5: "1.5", math.Inf(1): `"Infinity"`} {
		if got := string(AppendStrictNumber(nil, x)); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}

func TestAppendKey(t *testing.T) {
	got := append(AppendKey(append(AppendKey([]byte("{"), "a"), '1'), "b"), "[]}"...)
	if string(got) != `{"a":1,"b":[]}` {
		t.Error(string(got))
	}
}
