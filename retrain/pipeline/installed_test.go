package pipeline

import (
	"os/exec"
	"strings"
	"testing"
)

// The programs that commands run are in the image, or the build of the image fails.
func TestImagesHaveThePrograms(t *testing.T) {
	const deploy, base = "[python, deploy.py, --to, production]", "project: cartpole"
	for name, test := range map[string]struct {
		replaced       []string
		wanted, absent string
	}{
		"nothing":       {nil, "COPY . .", "command -v"},
		"of Debian":     {[]string{deploy, "[sh, -c, 'rsync -a $WORK/model.zip robots: && ssh robots ./restart']"}, "RUN apt-get update && apt-get install --yes --no-install-recommends openssh-client rsync && rm", "\x00"},
		"of others":     {[]string{deploy, "[kubectl, apply, -f, a.yaml]"}, "exit 1; }; \\\n    command -v kubectl || missing kubectl\n", "apt-get"},
		"own image":     {[]string{deploy, "[rsync, -a, a, \"b:\"]", base, base + "\nbase: ghcr.io/acme/python:3.11.1"}, "    command -v rsync || missing rsync\n", "openssh"},
		"other system":  {[]string{deploy, "[rsync, -a, a, \"b:\"]", base, base + "\nbase: python:3.11.15-alpine3.22"}, "    command -v rsync || missing rsync\n", "apt-get"},
		"choice":        {[]string{deploy, "[sh, -c, 'scp a b: || ./ship']"}, "install-recommends openssh-client &&", "command -v"},
		"own programs":  {[]string{deploy, "[./kubectl, apply]"}, "COPY . .", "command -v"},
		"several stage": {[]string{deploy, "[helm, upgrade]", "data:\n", "shadow: {command: [sh, -c, 'jq . a | curl -d @- http://robots'], stop: [kubectl, delete, -f, a]}\ndata:\n"}, "    command -v curl || missing curl; \\\n    command -v helm || missing helm; \\\n    command -v jq || missing jq; \\\n    command -v kubectl || missing kubectl\n", "\x00"},
	} {
		w := mustRun(t, test.replaced...)
		for i := range w.Artefacts {
			a := &w.Artefacts[i]
			if a.Path == "pipeline/Dockerfile" && (!strings.Contains(a.Text, test.wanted) || strings.Contains(a.Text, test.absent)) {
				t.Errorf("%s: must have %q and not %q:\n%s", name, test.wanted, test.absent, a.Text)
			}
		}
	}
}

// The line in the image fails with the name of the missing program.
func TestMissingProgramsAreNamed(t *testing.T) {
	w := mustRun(t, "[python, deploy.py, --to, production]", "[sh, -c, 'ls; no-such-program; env']")
	for i := range w.Artefacts {
		if w.Artefacts[i].Path != "pipeline/Dockerfile" {
			continue
		}
		_, line, _ := strings.Cut(w.Artefacts[i].Text, "RUN missing()")
		line, _, _ = strings.Cut(line, "\nCOPY")
		out, err := exec.Command("sh", "-c", "missing()"+line).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no-such-program, which a command runs, is missing: install it") {
			t.Errorf("%v: %s", err, out)
		}
		out, err = exec.Command("sh", "-c", "missing()"+strings.ReplaceAll(line, "no-such-program", "cat")).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
