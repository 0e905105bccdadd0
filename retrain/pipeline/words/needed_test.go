package words

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestProgramsThatCommandsNeed(t *testing.T) {
	for _, test := range []struct {
		words        []string
		all, certain string
	}{
		{[]string{"kubectl", "set", "image"}, "kubectl", "kubectl"},
		{[]string{"python", "deploy.py"}, "", ""},
		{[]string{"./ship"}, "", ""},
		{[]string{"/opt/bin/ship"}, "", ""},
		{[]string{"env", "A=1", "timeout", "5m", "sudo", "-E", "rsync", "a", "b:"}, "env rsync sudo timeout", "env rsync sudo timeout"},
		{[]string{"sh", "-c", "cd a && aws s3 cp x y; ssh host 'systemctl restart a' | tee log"}, "aws ssh tee", "ssh tee"},
		{[]string{"bash", "-ec", "helm upgrade a b --set tag=$VERSION"}, "bash helm", "bash helm"},
		{[]string{"sh", "-c", "kubectl apply -f a || ./kubectl apply -f a"}, "kubectl", ""},
		{[]string{"sh", "-c", "if command -v helm; then helm upgrade a; fi"}, "helm", ""},
		{[]string{"sh", "-c", "curl -fsS $URL; for h in a b; do scp x $h:; done"}, "curl scp", "curl"},
		{[]string{"sudo", "-u", "app", "kubectl", "apply"}, "kubectl sudo", "kubectl sudo"},
		{[]string{"sudo", "-nu", "app", "--group", "ops", "-Cuser", "kubectl"}, "kubectl sudo", "kubectl sudo"},
		{[]string{"sudo", "-i", "kubectl"}, "kubectl sudo", "sudo"},
		{[]string{"timeout", "-s", "KILL", "-k", "5", "1.5h", "kubectl"}, "kubectl timeout", "kubectl timeout"},
		{[]string{"timeout", "--unheard-of", "5m", "kubectl"}, "kubectl timeout", "timeout"},
		{[]string{"env", "-u", "FOO", "-C", "dir", "--unset=B", "--", "kubectl"}, "env kubectl", "env kubectl"},
		{[]string{"env", "-u", "PATH", "kubectl"}, "env kubectl", "env"},
		{[]string{"env", "-i", "kubectl"}, "env kubectl", "env"},
		{[]string{"env", "-", "kubectl"}, "env kubectl", "env"},
		{[]string{"env", "PATH=/work/bin", "sh", "-c", "kubectl apply"}, "env kubectl", "env"},
		{[]string{"env", "-S", "kubectl apply"}, "env", "env"},
		{[]string{"stdbuf", "-o", "L", "-eL", "nice", "-n", "5", "kubectl"}, "kubectl nice stdbuf", "kubectl nice stdbuf"},
		{[]string{"nice", "-10", "nohup", "setsid", "-w", "kubectl"}, "kubectl nice nohup setsid", "nice nohup setsid"},
		{[]string{"sudo", "-u", "app"}, "sudo", "sudo"},
		{[]string{"xargs", "-n", "1", "kubectl"}, "xargs", "xargs"},
		{[]string{"sh", "-c", "sudo -u app kubectl apply"}, "sudo", "sudo"},
		{[]string{"bash", "-c", "mapfile -t x < a; ship \"${x[0]}\""}, "bash ship", "bash ship"},
		{[]string{"bash", "-c", "time ship; let a=1; local b; [[ -f c ]]; coproc ls; \"other\" e"}, "bash other ship", "bash other ship"},
		{[]string{"sh", "-c", "[ -n \"$A\" ] && kubectl apply"}, "kubectl", ""},
		{[]string{"sh", "-c", "git pull && kubectl apply && helm upgrade"}, "git helm kubectl", "git"},
		{[]string{"sh", "-c", "helm version && helm upgrade a; ssh host"}, "helm ssh", "ssh"},
		{[]string{"sh", "-c", "for x in $L; do kubectl apply; done; ship"}, "kubectl ship", "ship"},
		{[]string{"sh", "-c", "if helm version; then kubectl; fi; while kubectl; do helm; done; case $A in a) helm;; esac; ! helm"}, "helm kubectl", ""},
		{[]string{"sh", "-c", "if (helm version); then :; fi; (ship; { curl a; })"}, "curl helm ship", "curl ship"},
		{[]string{"sh", "-c", "git pull; exit 0; kubectl apply"}, "git kubectl", "git"},
		{[]string{"sh", "-c", "git pull; [ -z \"$A\" ] && exit 0; kubectl apply"}, "git kubectl", "git"},
		{[]string{"sh", "-c", "git pull; exec ./ship; kubectl apply"}, "git kubectl", "git"},
		{[]string{"sh", "-c", "git pull; python -m pip install awscli; aws s3 ls"}, "aws git", "git"},
		{[]string{"sh", "-c", "git pull; export PATH=/work/bin:$PATH; kubectl get a"}, "git kubectl", "git"},
		{[]string{"bash", "-c", "git pull; export PATH=/work/bin:$PATH; kubectl get a"}, "bash git kubectl", "bash git"},
		{[]string{"sh", "-c", "export A=1; set -eu; cd b; kubectl get a"}, "kubectl", "kubectl"},
		{[]string{"sh", "-c", "die() { exit 1; }; git pull; die; kubectl get a"}, "die git kubectl", "git"},
		{[]string{"sh", "-c", "A=${B:-$(git describe)} C=$(hg id) kubectl"}, "git hg kubectl", "hg kubectl"},
		{[]string{"sh", "-c", "ship & curl a"}, "curl ship", "curl ship"},
		{[]string{"zsh", "-c", "print a; ship"}, "print ship zsh", "zsh"},
		{[]string{"sh", "-c", "ship" + strings.Repeat(" a", maxScript)}, "", ""},
		{[]string{"sh", "-c", "PATH=/work/bin:$PATH kubectl get a"}, "kubectl", ""},
		{[]string{"sh", "-c", "ship() { echo; }; ship"}, "ship", ""},
		{[]string{"sh", "-c", `"$TOOL" run; $(ship)`}, "ship", "ship"},
		{[]string{"sh", "-c", "if"}, "", ""},
		{[]string{"sh", "ship.sh"}, "", ""},
		{[]string{"it's", "a"}, "", ""},
	} {
		all, certain := Needed(test.words)
		if strings.Join(all, " ") != test.all || strings.Join(certain, " ") != test.certain {
			t.Errorf("%q: %q and %q, want %q and %q", test.words, all, certain, test.all, test.certain)
		}
	}
	all, _ := Needed([]string{"scp", "a", "b:"}, []string{"ssh", "b"}, []string{"aws"}, []string{"kubectl"})
	if got := Packages(all); !slices.Equal(got, []string{"awscli", "openssh-client"}) {
		t.Errorf("%q", got)
	}
}

// Shell builtins and keywords are not looked up in the image.
func TestBuiltinsAreNotNeeded(t *testing.T) {
	out, err := exec.Command("bash", "-c", "compgen -b; compgen -k").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(out))
	if len(names) < 60 {
		t.Fatalf("only %q", names)
	}
	for _, name := range names {
		if all, certain := Needed([]string{"bash", "-c", `"` + name + `" a`}); len(all) != 1 || len(certain) != 1 {
			t.Errorf("%s: %q and %q", name, all, certain)
		}
	}
}
