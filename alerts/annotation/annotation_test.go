package annotation

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTruncate(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"äöü", "äöü"},
		{"äöüß", "äö…"},
		{"a\xffb", "a\uFFFDb"},
	} {
		if got := truncate(test.in, 3); got != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
	}
}

func TestOnlySomeTextsHaveLines(t *testing.T) {
	got := All(map[string]string{"summary": "a\nb", "description": "a\n\x1bb", "evidence": "a\nb", "cause": ""})
	want := map[string]string{"summary": "a\uFFFDb", "description": "a\n\uFFFDb", "evidence": "a\nb"}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Lines([]string{"a\nb", "c"}); got != "a\uFFFDb\nc" {
		t.Errorf("got %q", got)
	}
}

func TestLists(t *testing.T) {
	var names []string
	for i := range 13 {
		names = append(names, fmt.Sprint(i))
	}
	before := slices.Clone(names)
	if got := List(names, "\n"); got != "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nand 3 more" || !slices.Equal(names, before) {
		t.Errorf("got %q", got)
	}
	if got := List([]string{"a\nb", "c"}, "\n"); got != "a\uFFFDb\nc" {
		t.Errorf("got %q", got)
	}
}
