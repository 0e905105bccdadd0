package oneline

import (
	"strings"
	"testing"
)

func TestFaultsOfPrograms(t *testing.T) {
	for program, want := range map[string]string{
		`print("a"`:                              "( is not closed",
		`print("a"))`:                            ") closes nothing",
		`a = [1, 2)`:                             ") closes nothing",
		`print("a)`:                              `the string "... does not end`,
		`print('''a'')`:                          "does not end",
		`print "a"`:                              `no operator is between print and "a"`,
		`f(a b)`:                                 "no operator is between a and b",
		`import a b`:                             "no operator is between a and b",
		`a = `:                                   "nothing follows =",
		`f(1 +)`:                                 "nothing follows +",
		`import a; a.; b`:                        "nothing follows .",
		`import a; for x in a: print(x)`:         "for can only begin a line",
		`a = 1; if a: print(a)`:                  "if can only begin a line",
		`if a: for x in a: print(x)`:             "for can only begin a line",
		`import a; with open("b") as c: c.d()`:   "with can only begin a line",
		`if a: b() else: c()`:                    "else needs more than one line",
		`try: a()`:                               "try needs more than one line",
		`import a; try: a.b(); except: pass`:     "try needs more than one line",
		`while True:`:                            "nothing follows :",
		`for x in range(3) print(x)`:             "no operator is between",
		`if a`:                                   "if needs a colon",
		`f(a; b)`:                                "; is in brackets",
		`a = $HOME`:                              "'$' is no part of it",
		`a ? b`:                                  "'?' is no part of it",
		`print(f"{a[1]")`:                        "",
		`print(f"{a["b"]}")`:                     "", // since Python 3.12
		`print(f'{'{'} {f'{a}'}')`:               "",
		`print(f'{a}' f"{b!r:>{c}}" rb'\'')`:     "",
		`from a import *`:                        "",
		`from . import a; from ...b import c`:    "",
		`from a import *; b()`:                   "",
		`type X = int`:                           "",
		`a = 1if b else 0or 2; c = 1.; d = .5e3`: "",
		`print(1..real, 1_0..imag, 1.5.hex())`:   "",
		`print(*a, **b, sep="")`:                 "",
		`f = lambda x, *a, y=1: {x: a[1:]}`:      "",
		`def f(a, /, *, b) -> int: return a`:     "",
		`for x in *a, b: print(x); print(y)`:     "",
		`a, *b = c[::2]; d @= e; (f := 1)`:       "",
		`print("a" if b else "c", not d)`:        "",
		`a = b if c else"d"; e = {**f}`:          "",
		`class A: x = 1`:                         "",
		`async def f(): await g()`:               "",
		`x: int = 3; ... ; é = 0x1F # it's`:      "",
		`print(1 )#(`:                            "",
		"a = (\nb":                               "", // more than one line
	} {
		if got := Python(program); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

func FuzzPython(f *testing.F) {
	for _, seed := range []string{"", `f"{a["`, `print('''a''')`, `((((`, `f"{f'{f"`, "é=1", `a = {"b": [1, 2]}; c`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, program string) {
		if fault := Python(program); fault != "" && !strings.HasPrefix(fault, "must be valid Python: ") {
			t.Error(fault)
		}
	})
}
