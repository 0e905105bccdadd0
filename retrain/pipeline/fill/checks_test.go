package fill

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
)

// body returns a function whose body is one line.
func body(line string) string {
	return "def features(observation):\n    " + line + "\n    return observation\n"
}

// Everything that a function must not do is rejected with its line.
func TestFunctionsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		body("import os"):                                                "line 2: ",
		body("x = __import__('os')"):                                     "line 2: the name __import__ is not allowed",
		body("eval('1')"):                                                "the name eval is not allowed",
		body("exec('1')"):                                                "the name exec is not allowed",
		body("open('f')"):                                                "the name open is not allowed",
		body("getattr(observation, 'x')"):                                "the name getattr is not allowed",
		body("x = observation.__class__"):                                "the attribute __class__ of a value is not allowed",
		body("observation.tofile('f')"):                                  "the attribute tofile of a value is not allowed",
		body("x = numpy.load('f')"):                                      "line 2: not an identifier",
		body("x = numpy.linalg.linalg"):                                  "the attribute linalg of numpy.linalg is not allowed",
		body("x = numpy.fromfile('f')"):                                  "the attribute fromfile of numpy is not allowed",
		body("n = numpy"):                                                "numpy can be used only as in",
		body("numpy = observation"):                                      "numpy cannot be assigned to",
		body("abs = observation"):                                        "abs cannot be assigned to",
		body("None = 1"):                                                 "None cannot be assigned to",
		body("__builtins__ = 1"):                                         "two underscores",
		body("x = [numpy.lib for _ in range(2)]"):                        "the attribute lib of numpy",
		body("x = sum([c.__code__ for c in observation])"):               "the attribute __code__",
		body("x = [eval for eval in [1]]\n    eval(\"1\")"):              "the name eval is not allowed",
		body("x = [1 for y in open(\"f\") for open in [1]]"):             "the name open is not allowed",
		body("x = {exec: 1 for exec in [1]}[exec]"):                      "the name exec is not allowed",
		body("x = [[vars for vars in [1]], vars]"):                       "the name vars is not allowed",
		body("x = [range for range in [1]]"):                             "range cannot be assigned to",
		body("x = (lambda y: y)(1)"):                                     "lambda is not allowed",
		body("x = abs(*observation)"):                                    "starred arguments",
		body("x = '{0.__class__}'.format(1)"):                            "the attribute format",
		body("x = numpy.sum(observation, axis=0, 1)"):                    "positional argument follows",
		body("x = numpy.sum(observation, axis=0, axis=1)"):               "is repeated",
		body("x = numpy.sum(observation, None=0)"):                       "the argument None",
		body("break"):                                                    "break is outside of a loop",
		body("f() = 1"):                                                  "only names, elements",
		body("observation.size = 1"):                                     "only names, elements",
		body("(x, y) += 1"):                                              "a tuple cannot be assigned to here",
		body("def g(): pass"):                                            "this statement is not allowed",
		body("x = a"):                                                    "the name a is not allowed or not defined",
		body("x = f'{a}'"):                                               "line 2: ",
		body("x = 1 # see https://evil.example"):                         "it must not contain addresses",
		body("x = 'é'"):                                                  "printable ASCII",
		body("\tx = 1"):                                                  "printable ASCII",
		body("x = " + strings.Repeat("(", 60) + strings.Repeat(")", 60)): "it is nested too deeply",
		body("# rewardwatch:end"):                                        "a keep marker",
		body("x = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'"):           "looks like a secret",
		"def features(observation):\n    return\n":                       "the function returns nothing",
		"def features(observation, more=open):\n    return 1\n":          "consist of only the function",
		"def features(*observation):\n    return 1\n":                    "consist of only the function",
		"x = 1\n" + body("pass"):                                         "consist of only the function",
		"@x\n" + body("pass"):                                            "decorator",
		"load('f', 'x')\n" + body("pass"):                                "consist of only the function",
		"class A:\n    pass\n":                                           "line 1: ",
		"":                                                               "it is empty",
		strings.Repeat("#", 5000):                                        "exceed the limit of 4096",
	} {
		h := Holes()[1]
		if got := strings.Join(h.check(text, ""), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// pythonFaults compiles functions with Python, and returns those that it rejects.
func pythonFaults(t *testing.T, functions []string) []string {
	t.Helper()
	const program = `
import json, sys, warnings
warnings.simplefilter("ignore")
refused = []
for text in json.load(sys.stdin):
    try:
        compile(text, "features", "exec")
    except Exception as e:
        refused.append(f"{e}:\n{text}")
json.dump(refused, sys.stdout)
`
	in, err := json.Marshal(functions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", program)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var refused []string
	if err := json.Unmarshal(out, &refused); err != nil {
		t.Fatal(err)
	}
	return refused
}

// functions are valid functions that use everything that is allowed.
var functions = []string{
	goodFunction,
	"def features(observation): return observation\n",
	"def features(observation):\n    \"\"\"Says what it does.\"\"\"\n    (a, b), c = [(1, 2), 3]\n    a += b\n    a //= 2 | 4 & 1 ^ c << 1\n    d = {\"x\": a, 'y': -b}\n" +
		"    d[\"z\"] = a if b > 1 and not c else [1.5e-3, 0x1f][0]\n    e = [x * y for x, y in zip(range(3), range(3)) if x % 2 == 0]\n" +
		"    for i, v in enumerate(e):\n        if i == 1:\n            continue\n        elif v != 2:\n            pass\n        else:\n            break\n" +
		"    f = {k: v for k, v in d.items() if k not in (\"x\",)}\n    return numpy.concatenate([observation[1:-1], numpy.array([a, numpy.linalg.norm(observation), len(f)])], axis=0)\n",
}

// Valid answers are valid Python: mutations of valid functions are either rejected, or compile.
func TestSimWhatIsAcceptedCompiles(t *testing.T) {
	h := Holes()[1]
	for _, text := range functions {
		if faults := h.check(text, ""); len(faults) > 0 {
			t.Errorf("%s: %v", text, faults)
		}
	}
	pieces := strings.Fields("( ) [ ] { } , : = == + - * ** / // . ; \\ ' \" # \n if else for in not and or is return None True x observation numpy def 0 07 1_0 1. 1j b'a' @ := -> ... $ ? ! ~ lambda")
	pieces = append(pieces, "\n", "\n    ", " ", "    ")
	r := rand.New(rand.NewPCG(1, 2))
	accepted := append([]string{}, functions...)
	const mutations = 20000
	for range mutations {
		text := functions[r.IntN(len(functions))]
		for range 1 + r.IntN(3) {
			i := r.IntN(len(text))
			j := min(len(text), i+r.IntN(4))
			text = text[:i] + pieces[r.IntN(len(pieces))] + text[j:]
		}
		if len(h.check(text, "")) == 0 {
			accepted = append(accepted, text)
		}
	}
	if len(accepted) < 500 {
		t.Errorf("only %d of %d mutations are accepted", len(accepted), mutations)
	}
	for i, fault := range pythonFaults(t, accepted) {
		if i < 5 {
			t.Errorf("accepted, but not Python: %s", fault)
		}
	}
	t.Logf("%d of %d mutations are accepted", len(accepted)-len(functions), mutations)
}

func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		goodProse:                       "",
		"Réglé, à 3 °C (or more); 5%.":  "",
		"Two\nlines":                    "one line of printable characters, but contains U+000A",
		"An \x1b[31mescape":             "U+001B",
		"A \u202eturn":                  "U+202E",
		"A [link](x)":                   "markup, but contains '['",
		"A <script>":                    "'<'",
		"See www.example.org":           "it must not contain addresses",
		"Mail me@example":               "it must not contain addresses",
		"Look at evil.example.com now":  "it must not contain addresses",
		"# Title":                       "markup",
		"- A list":                      "it must start with a letter",
		" ":                             "it is empty",
		strings.Repeat("a", 801):        "its 801 bytes exceed the limit of 800",
		"A \xff":                        "it is not UTF-8",
		"The key is " + secretKey + ".": "the key of the endpoint",
	} {
		h := Holes()[0]
		got := strings.Join(h.check(text, secretKey), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A remark is a comment on each of its lines.
func TestRemarksAreWrapped(t *testing.T) {
	h := Holes()[2]
	for line := range strings.Lines(h.lines(strings.Repeat("word ", 100))) {
		if !strings.HasPrefix(line, "    # word") || len(line) > remarkWidth+10 {
			t.Errorf("%q", line)
		}
	}
}

func FuzzFunction(f *testing.F) {
	for _, text := range functions {
		f.Add(text)
	}
	h := Holes()[1]
	f.Fuzz(func(t *testing.T, text string) {
		if len(h.check(text, "")) > 0 {
			return
		}
		if refused := pythonFaults(t, []string{text}); len(refused) > 0 {
			t.Error(refused)
		}
	})
}
