package pipeline

import (
	"os/exec"
	"strings"
	"testing"
)

// What commands run is in the image, or building the image fails.
func TestImagesHaveThePrograms(t *testing.T) {
	const deploy, base = "[python, deploy.py, --to, production]", "project: cartpole"
	for name, test := range map[string]struct {
		replaced       []string
		wanted, absent string
	}{
		"nothing":       {nil, "COPY . .", "for program in"},
		"of Debian":     {[]string{deploy, "[sh, -c, 'rsync -a $WORK/model.zip robots: && ssh robots ./restart']"}, "RUN apt-get update && apt-get install --yes --no-install-recommends openssh-client rsync && rm", "\x00"},
		"of others":     {[]string{deploy, "[kubectl, apply, -f, a.yaml]"}, "\nRUN for program in kubectl; do command -v \"$program\" || {", "apt-get"},
		"own image":     {[]string{deploy, "[rsync, -a, a, \"b:\"]", base, base + "\nbase: ghcr.io/acme/python:3.11.1"}, "RUN for program in rsync; do", "openssh"},
		"other system":  {[]string{deploy, "[rsync, -a, a, \"b:\"]", base, base + "\nbase: python:3.11.15-alpine3.22"}, "RUN for program in rsync; do", "apt-get"},
		"choice":        {[]string{deploy, "[sh, -c, 'scp a b: || ./ship']"}, "install-recommends openssh-client &&", "for program in"},
		"own programs":  {[]string{deploy, "[./kubectl, apply]"}, "COPY . .", "for program in"},
		"several stage": {[]string{deploy, "[helm, upgrade]", "data:\n", "shadow: {command: [sh, -c, 'jq . a | curl -d @- http://robots'], stop: [kubectl, delete, -f, a]}\ndata:\n"}, "for program in curl helm jq kubectl; do", "\x00"},
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

// The line of the image fails with the name of what is missing.
func TestMissingProgramsAreNamed(t *testing.T) {
	w := mustRun(t, "[python, deploy.py, --to, production]", "[sh, -c, 'ls && no-such-program && env']")
	for i := range w.Artefacts {
		if w.Artefacts[i].Path != "pipeline/Dockerfile" {
			continue
		}
		_, line, _ := strings.Cut(w.Artefacts[i].Text, "RUN for program")
		line, _, _ = strings.Cut(line, "\nCOPY")
		out, err := exec.Command("sh", "-c", "for program"+line).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no-such-program, which a command runs, is missing: install it") {
			t.Errorf("%v: %s", err, out)
		}
		out, err = exec.Command("sh", "-c", "for program"+strings.Replace(line, "no-such-program", "cat", 1)).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
