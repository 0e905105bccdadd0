package words

import (
	"strings"
	"testing"
)

func TestCommandsOfRoot(t *testing.T) {
	for _, test := range []struct {
		words []string
		at    int
		want  string
	}{
		{[]string{"sudo", "systemctl", "restart", "agent"}, 0, "must not run sudo, because the stages run in containers as a user who cannot become root"},
		{[]string{"env", "A=1", "sudo", "-E", "ship"}, 2, "must not run sudo"},
		{[]string{"/usr/bin/sudo", "ship"}, 0, "must not run sudo"},
		{[]string{"timeout", "5m", "docker", "push", "x"}, 2, "must not run docker, because the stages run in containers without a container engine"},
		{[]string{"docker", "compose", "up"}, 0, "must not run docker"},
		{[]string{"apt-get", "install", "-y", "ffmpeg"}, 0, "must not run apt-get, because the stages run as a user without root; install packages in the image"},
		{[]string{"sh", "-c", "apt-get update && apt-get install -y jq && ./ship"}, 2, "must not run apt-get"},
		{[]string{"sh", "-c", "cd a; apk add --no-cache jq; ./ship"}, 2, "must not run apk"},
		{[]string{"bash", "-c", "set -e\ndocker build -t \"x:$VERSION\" ."}, 2, "must not run docker"},
		{[]string{"sh", "-c", "(cd a && podman push x) | tee log"}, 2, "must not run podman"},
		{[]string{"sh", "-c", "{ sudo cp \"$WORK/a\" /srv; }"}, 2, "must not run sudo"},
		// Other machines have root and container engines, and a script may not always need them.
		{[]string{"ssh", "robots", "sudo", "systemctl", "restart", "agent"}, 2, ""},
		{[]string{"ssh", "robots", "docker run ship"}, 2, ""},
		{[]string{"docker", "-H", "ssh://robots", "run", "ship"}, 0, ""},
		{[]string{"docker", "--context=robots", "run", "ship"}, 0, ""},
		{[]string{"docker", "run", "--env", "SHIP_KEY", "ship"}, 0, "must not run docker"},
		{[]string{"env", "DOCKER_HOST=ssh://robots", "docker", "run", "ship"}, 2, ""},
		{[]string{"sh", "-c", "export DOCKER_HOST=ssh://robots; docker run ship"}, 2, ""},
		{[]string{"docker", "--version"}, 0, ""},
		{[]string{"apt-get", "--version"}, 0, ""},
		{[]string{"sh", "-c", "sudo ship || ship"}, 2, ""},
		{[]string{"sh", "-c", "command -v sudo && sudo ship; ship"}, 2, ""},
		{[]string{"sh", "-c", "if [ -n \"$A\" ]; then sudo ship; fi"}, 2, ""},
		{[]string{"sh", "-c", "! sudo -n true"}, 2, ""},
		{[]string{"sh", "-c", "sudo() { \"$@\"; }; sudo ship"}, 2, ""},
		{[]string{"sh", "-c", "[ -n \"$A\" ] || exit 0; sudo ship"}, 2, ""},
		{[]string{"sh", "-c", "PATH=bin:$PATH; docker run ship"}, 2, ""},
		{[]string{"sh", "-c", ". ./engine.sh\ndocker run ship"}, 2, ""},
		{[]string{"sh", "-c", "cd a && exec docker run ship"}, 2, "must not run docker"},
		{[]string{"sh", "-c", "ssh robots sudo docker pull \"$VERSION\""}, 2, ""},
		{[]string{"sh", "-c", "echo docker; \"$ENGINE\" docker"}, 2, ""},
		{[]string{"./ship", "docker", "install"}, 1, ""},
		{[]string{"make", "docker"}, 1, ""},
	} {
		got := Fault(test.words, test.at, []string{"SHIP_KEY"}, true)
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
			t.Errorf("%q: word %d: %q, want %q", test.words, test.at, got, test.want)
		}
	}
	if got := Fault([]string{"docker", "run", "ship"}, 0, []string{"DOCKER_HOST"}, true); got != "" {
		t.Errorf("with DOCKER_HOST: %q", got)
	}
}
