package pytext

import (
	"strings"
	"testing"
	"time"
)

// Docstrings are removed, and other triple-quoted strings are kept.
func TestCodeHasNoDocstrings(t *testing.T) {
	for text, want := range map[string]string{
		"'''Trains.'''\nx = '''kept'''\n":                             "\nx = '''kept'''\n",
		"def f():\n    r\"\"\"Says # so.\"\"\"\n    return 1 # one\n": "def f():\n    r\n    return 1 \n",
		"'''Usage: it'''\nargs = docopt(__doc__)\n'''left out'''\n":   "'''Usage: it'''\nargs = docopt(__doc__)\n\n",
		"\nr\"\"\"Usage: it\"\"\"\nargs = docopt(__doc__)\n":          "\nr\"\"\"Usage: it\"\"\"\nargs = docopt(__doc__)\n",
		"print('''a\nb''', '''c''')":                                  "print('''a\nb''', '''c''')",
	} {
		if got := string(Code([]byte(text))); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// A file that consists of quotes takes time proportional to its size, so that a hostile repository cannot block the
// tool.
func TestCodeReadsEachByteOnce(t *testing.T) {
	const size = 4 << 20
	for _, part := range []string{"''", "'''a'''", "'''a''' ", "'''a'''\n", "x'''a'''", "'a' ", "'''"} {
		began := time.Now()
		Code([]byte(strings.Repeat(part, size/len(part))))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%d bytes of %q took %s", size, part, took)
		}
	}
}
