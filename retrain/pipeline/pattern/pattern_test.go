package pattern

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestWordsOfExpressions(t *testing.T) {
	for expr, want := range map[string][]string{
		`\bpygame\.display\b`:            {"pygame.display"},
		`\.learn\(|\.train\(\w*\)`:       {"learn(", "train("},
		`(?:a|bc)+def{2}x{3,}`:           {"de"},
		`(?P<name>ab(cd)?)`:              {"ab"},
		`[a-z]+|abc`:                     nil,
		`(?i)gym`:                        nil,
		`(?i:gym)nasium`:                 {"nasium"},
		`optimi[sz]er\.step`:             {"er.step"},
		`(?:gym)?`:                       nil,
		`(?:gym){0,3}`:                   nil,
		`(?:gym){1,3}`:                   {"gym"},
		`é`:                              nil,
		`(?s:\bgymnasium\b.*)(?:ab|cde)`: {"gymnasium"},
		`^$`:                             nil,
	} {
		if got := MustCompile(expr).words; !slices.Equal(got, want) {
			t.Errorf("words of %s: %q, want %q", expr, got, want)
		}
	}
}

// same returns the differences between the results of a Pattern and of package regexp.
func same(expr, text string) error {
	p, r := MustCompile(expr), regexp.MustCompile(expr)
	for name, got := range map[string][2]any{
		"Match":                      {p.Match([]byte(text)), r.Match([]byte(text))},
		"MatchString":                {p.MatchString(text), r.MatchString(text)},
		"FindStringIndex":            {p.FindStringIndex(text), r.FindStringIndex(text)},
		"FindStringSubmatch":         {p.FindStringSubmatch(text), r.FindStringSubmatch(text)},
		"FindAllStringSubmatch":      {p.FindAllStringSubmatch(text, 3), r.FindAllStringSubmatch(text, 3)},
		"FindAllStringSubmatchIndex": {p.FindAllStringSubmatchIndex(text, -1), r.FindAllStringSubmatchIndex(text, -1)},
		"FindAllStringIndex":         {p.FindAllStringIndex(text, -1), r.FindAllStringIndex(text, -1)},
	} {
		if !reflect.DeepEqual(got[0], got[1]) {
			return fmt.Errorf("%s of %q on %q: %v, regexp %v", name, expr, text, got[0], got[1])
		}
	}
	return nil
}

func FuzzPatternsFindWhatRegexpFinds(f *testing.F) {
	for _, expr := range []string{`\.learn\(|\.train\(\w*\)`, `(?i)gym|[sz]tep`, `(?m)^a+b{2,}(c|de)?$`, `(?:ab|a\xff)+`, `((a)|b)*c\b`, `\x{fffd}`, `(?i:k)b`} {
		for _, text := range []string{"", "m.learn(1)\nm.train(x)", "GYM step", "aabbde\nabb", "abab\xff", "c", "\xff\xfe", "Kb"} {
			f.Add(expr, text)
		}
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		if _, err := regexp.Compile(expr); err != nil {
			t.Skip()
		}
		if err := same(expr, text); err != nil {
			t.Error(err)
		}
	})
}

// For a text without the words of an expression, only the words are searched for, which must be much faster than
// running the expression.
func BenchmarkTextsThatDoNotMatch(b *testing.B) {
	const expr = `\b(?:mimsave|mimwrite|get_writer)\((?s:.{0,400})\.mp4\b`
	text := strings.Repeat("a = s.add_parser('x')\n", 128<<10/22)
	p, r := MustCompile(expr), regexp.MustCompile(expr)
	b.Run("Pattern", func(b *testing.B) {
		for b.Loop() {
			p.MatchString(text)
		}
	})
	b.Run("regexp", func(b *testing.B) {
		for b.Loop() {
			r.MatchString(text)
		}
	})
}
