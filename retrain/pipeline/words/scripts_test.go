package words

import (
	"os/exec"
	"strings"
	"testing"
)

func TestScriptsWithSyntaxErrors(t *testing.T) {
	for _, test := range []struct{ shell, script, want string }{
		{"sh", "for i in a b; ship $i; done", `must be a script that sh can read: ` + "`for foo [in words]` must be followed by `do`" + `, at "for i in a b; ship $..."`},
		{"sh", "if test -f a; then ship", "must end with `fi`"},
		{"bash", "if test -f a; then; fi", "`then` must be followed by a statement list"},
		{"bash", "ship && ", "`&&` must be followed by a statement"},
		{"bash", "ship )", `at ")"`},
		{"bash", "cat a | | ship", "`|` must be followed by a statement"},
		{"sh", `ship "$VERSION`, "without closing quote"},
		{"sh", "ship ${VERSION", "without matching `${`"},
		{"sh", "ship $(cat a", "without matching `$(`"},
		{"sh", "ship `cat a", "without closing quote"},
		{"sh", "echo it's done", `at "'s done"`},
		{"sh", "# later", "must not be empty"},
		{"sh", " ", "must not be empty"},
		{"sh", "a=(1 2); ship", "only bash knows \"(1 2); ship\"; write [bash, -c, '...']"},
		{"sh", "ship &> log", "only bash knows"},
		{"sh", "cat <<< $VERSION", "only bash knows"},
		{"sh", `[[ $VERSION == v1 ]] && ship`, `only bash knows "[["`},
		{"bash", `sh -c "if a"`, "must be followed by `then`"},
		{"sh", `python -c "print('$VERSION'"`, ""},
		{"sh", `python -c "import os; print(os.environ['VERSION']"`, "must be valid Python: ( is not closed"},
		{"sh", `cd a && exec python3 -u -c 'import a; for x in a.b: print(x)'`, "must be valid Python: for can only begin a line"},
		// Valid scripts.
		{"sh", `ship "${VERSION}" ${#x} $# a#'b'`, ""},
		{"sh", `echo it\'s "it's" "${x:-it's}" "\"" '\'`, ""},
		{"sh", "ship # it's done", ""},
		{"sh", `echo "$(echo '"')"; a=$((1 + 2)); echo "${a:-"x"}"`, ""},
		{"sh", `case $x in a) echo "b";; *) ship & esac`, ""},
		{"sh", "ship() { local x=1; }; ship || { echo no >&2; exit 1; }", ""},
		{"bash", `a=(1 2); [[ ${a[0]} == 1 ]] && ship "${a[@]/1/2}" &> log; echo $'it\'s' <(cat a)`, ""},
		{"sh", `python3 -c 'print({"a": [1]}["a"])' && sh -c "exit 1"`, ""},
	} {
		got := Fault([]string{test.shell, "-c", test.script}, 2, nil, true)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %q, want %q", test.shell, test.script, got, test.want)
		}
		if test.want == "" && test.shell == "bash" && exec.Command("bash", "-n", "-c", test.script).Run() != nil {
			t.Errorf("bash cannot read %s", test.script)
		}
	}
}

// Another program's sh, or the sh of another image, may be any shell.
func TestShellsThatMayBeAny(t *testing.T) {
	const script = "a=(1 2); [[ -f a ]] && ship"
	for words, want := range map[string]string{"sh -c": "only bash knows", "env A=1 dash -c": "only bash knows", "docker exec a sh -c": "", "bash -c": "", "zsh -c": "", "ksh -ec": "", "ash -c": ""} {
		command := append(strings.Fields(words), script)
		if got := Fault(command, len(command)-1, nil, true); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	if got := Fault([]string{"sh", "-c", script}, 2, nil, false); got != "" {
		t.Errorf("sh of another system: %q", got)
	}
	if got := Fault([]string{"su", "app", "-c", "if a"}, 3, nil, false); !strings.Contains(got, "must be followed by `then`") {
		t.Errorf("su: %q", got)
	}
	if got := Fault([]string{"sh", "-c", strings.Repeat("(", maxScript+1)}, 2, nil, false); got != "" {
		t.Errorf("a long script: %q", got)
	}
}

func TestProgramsOfPython(t *testing.T) {
	for command, want := range map[string]string{
		"python -c print(": "( is not closed", "env A=1 /usr/bin/python3.12 -W ignore -uc print(": "( is not closed", "docker run a python -Bc print(": "( is not closed",
		"python -c print()": "", "python2 -c print(": "", "python a.py -c print(": "", "python -m a -c print(": "", "./python.sh -c print(": "",
	} {
		words := strings.Fields(command)
		if got := Fault(words, len(words)-1, nil, false); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
