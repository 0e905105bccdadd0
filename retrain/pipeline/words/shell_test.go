package words

import (
	"strings"
	"testing"
)

// Each rule has a bad command and good ones that are close to it.
func TestWordsThatOnlyAShellReads(t *testing.T) {
	for _, test := range []struct {
		words []string
		at    int
		want  string
	}{
		{[]string{"python", "deploy.py", ">", "deploy.log"}, 2, "must not be >, because no shell interprets a list"},
		{[]string{"python", "deploy.py", "--now", ">", "deploy.log"}, 3, "must not be >"},
		{[]string{"check", "--op", ">", "0.5"}, 2, ""},
		{[]string{"deploy", ">>deploy.log"}, 1, "must not be >>deploy.log"},
		{[]string{"deploy", "2>/dev/null"}, 1, "must not be 2>/dev/null"},
		{[]string{"deploy", "<answers.txt"}, 1, "must not be <answers.txt"},
		{[]string{"check", ">0.5"}, 1, ""},
		{[]string{"check", "<none>"}, 1, ""},
		{[]string{"cat", "a", "|", "sh"}, 2, "must not be |"},
		{[]string{"cut", "-d", "|", "-f", "1", "a"}, 2, ""},
		{[]string{"tool", "-d", "|"}, 2, ""},
		{[]string{"grep", "-c", "x", "|"}, 3, ""},
		{[]string{"a", "b", ";", "c"}, 2, "must not be ;"},
		{[]string{"find", ".", "-exec", "rm", "{}", ";"}, 5, ""},
		{[]string{"deploy", "&"}, 1, "must not be &"},
		{[]string{"serve", "--shadow", "&"}, 2, "must not be &"},
		{[]string{"paste2", "--separator", "&"}, 2, ""},
		{[]string{"deploy", "--all", "&&", "restart"}, 2, "must not be &&"},
		{[]string{"ssh", "host", "deploy", "&&", "restart", ">", "log"}, 3, ""},
		{[]string{"ssh", "host", "deploy", "&&", "restart", ">", "log"}, 5, ""},
		{[]string{"watch", "a", "|", "b"}, 2, ""},
		{[]string{"deploy", "--tag=$(git rev-parse HEAD)"}, 1, "must not be --tag=$(git rev-parse HEAD), because no shell runs"},
		{[]string{"deploy", "`date`"}, 1, "must not be `date`"},
		{[]string{"notify", "deployed `v1` now"}, 1, ""},
		{[]string{"make", "TAG=$(LATEST)"}, 1, ""},
		{[]string{"sed", "s/$(x)/y/", "a"}, 1, ""},
		{[]string{"awk", "{print $(NF-1)}", "a"}, 1, ""},
		{[]string{"gcloud", "compute", "ssh", "vm", "--command=$(hostname)"}, 4, ""},
		{[]string{"docker", "exec", "a", "bash", "-lc", "echo $(date)"}, 5, ""},
		{[]string{"deploy", "%VERSION%"}, 1, "must not contain %VERSION%, which only Windows replaces"},
		{[]string{"date", "+%V"}, 1, ""},
		{[]string{"cp", "out/*.pt", "/srv"}, 1, "must be the name of a file, not the pattern out/*.pt"},
		{[]string{"rm", "-f", "a.{pt,zip}"}, 2, "must be the name of a file"},
		{[]string{"find", ".", "-name", "*.pt"}, 3, ""},
		{[]string{"rsync", "--exclude", "*.pt", "a", "b"}, 2, ""},
		{[]string{"ls", "--ignore", "*.pt"}, 2, ""},
		{[]string{"cd", "/srv"}, 0, "must be a program, not cd"},
		{[]string{"sudo", "-E", "export", "A=1"}, 2, "must be a program, not export"},
		{[]string{"source", "env.sh"}, 0, "must be a program, not source"},
		{[]string{"if", "a", "then", "b"}, 0, "must be a program, not if, which only a shell reads"},
		{[]string{"deploy", "set", "a"}, 1, ""},
		{[]string{"kubectl", "set", "image"}, 1, ""},
		{[]string{"test", "-f", "a"}, 0, ""},
		{[]string{"A=1", "deploy"}, 0, "must be a program, not the assignment A=1"},
		{[]string{"nice", "A=1", "deploy"}, 1, "must be a program, not the assignment A=1"},
		{[]string{"env", "A=1", "deploy"}, 1, ""},
		{[]string{"sudo", "A=1", "deploy"}, 1, ""},
		{[]string{"./deploy;", "b"}, 0, "must be a program, not ./deploy;"},
		{[]string{"$(which ship)/x"}, 0, "must be a program"},
		{[]string{"/opt/R&D/ship"}, 0, ""},
		{[]string{"select", "a"}, 0, ""},
		{[]string{"jq", "-n", "--arg", "version", "1", "$version"}, 5, ""},
		{[]string{"deploy", "$version"}, 1, "must not contain $version"},
		{[]string{"deploy", "--out=${version}"}, 1, ""},
	} {
		got := Fault(test.words, test.at, nil, false)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("word %d of %q: %q, want %q", test.at, test.words, got, test.want)
		}
	}
}

func TestInterpretersNeedAProgram(t *testing.T) {
	for command, want := range map[string]string{
		"sh -c": "must be followed by what sh -c is to run", "sudo bash -euc": "must be followed by what bash -euc is to run",
		"python -m": "must be followed by what python -m is to run", "python3.12 -u": "must be followed by the program", "/bin/sh": "must be followed by the program",
		"python -mpkg": "", "python --version": "", "python -c print()": "", "python train.py -m": "", "node -e": "must be followed by what", "bash -s": "",
		"kubectl exec -i pod -- sh": "", "python -m pkg": "", "sh deploy.sh": "", "./sh.py": "", "perl -V": "", "node app.js": "", "node --test": "", "node --eval=1": "", "node --print=1": "", "node --run=build": "", "node --test-only": "must be followed by the program", "python --test": "must be followed by the program", "env python": "must be followed by the program",
	} {
		words := strings.Fields(command)
		if got := Fault(words, len(words)-1, nil, false); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestVariablesInLowercase(t *testing.T) {
	for script, want := range map[string]string{
		"deploy $version": "(did you mean $VERSION?)", "deploy ${work}/x": "(did you mean $WORK?)", "version=1; deploy $version": "", "jq --arg version 1 '.a=$version'": "",
		"for image in a b; do deploy $image; done": "", "deploy $versions": "",
	} {
		if got := lowercase(script, everyStage); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
