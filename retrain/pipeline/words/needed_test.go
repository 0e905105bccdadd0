package words

import (
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
		{[]string{"sh", "-c", "cd a && aws s3 cp x y; ssh host 'systemctl restart a' | tee log"}, "aws ssh tee", "aws ssh tee"},
		{[]string{"bash", "-ec", "helm upgrade a b --set tag=$VERSION"}, "bash helm", "bash helm"},
		{[]string{"sh", "-c", "kubectl apply -f a || ./kubectl apply -f a"}, "kubectl", ""},
		{[]string{"sh", "-c", "if command -v helm; then helm upgrade a; fi"}, "command helm", ""},
		{[]string{"sh", "-c", "curl -fsS $URL; for h in a b; do scp x $h:; done"}, "curl scp", "curl scp"},
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
