package words

import (
	"strings"
	"testing"
)

func TestFaultsOfWords(t *testing.T) {
	for _, test := range []struct {
		words []string
		at    int
		want  string
	}{
		{[]string{"./ship", ""}, 1, "must not be empty"},
		{[]string{"python ship.py"}, 0, "must be a program without arguments"},
		{[]string{"./ship --now"}, 0, "must be a program without arguments"},
		{[]string{"./our ship"}, 0, ""},
		{[]string{"sh", "ship it"}, 1, "must be the file of a script"},
		{[]string{"sh", "./our ship.sh"}, 1, ""},
		{[]string{"nice", "-n", "5", "zsh", "a; b"}, 4, "must be the file of a script"},
		{[]string{"./ship", "sh", "a; b"}, 2, ""},
		{[]string{"sh", "-ec", "a && b $X"}, 2, ""},
		{[]string{"sh", "-c", "ship", "sh"}, 3, ""},
		{[]string{"sh", "-c", "ship", "--now"}, 3, "must be part of the script"},
		{[]string{"sh", "-c", "ship $1", "sh", "$WORK"}, 4, "must not contain $WORK"},
		{[]string{"sh", "ship.sh", "$IMAGE"}, 2, "must not contain $IMAGE"},
		{[]string{"cp", "~/model", "/srv"}, 1, "must not contain ~/"},
		{[]string{"cp", "--to=${SHIP}/x"}, 1, "must not contain ${SHIP}"},
		{[]string{"cp", "a", "&&", "b"}, 2, "must not be &&"},
		{[]string{"grep", "^cost: $"}, 1, ""},
		{[]string{"ssh", "a", "b $REQUEST"}, 2, "which the other machine does not have"},
		{[]string{"ssh", "-oSendEnv=REQUEST", "a", "b $REQUEST"}, 3, ""},
		{[]string{"sh", "-c", "ship $REQEUST"}, 2, "did you mean $REQUEST?"},
		{[]string{"sh", "-c", "ship $SHIP_KYE"}, 2, "did you mean $SHIP_KEY?"},
		{[]string{"sh", "-c", "for REQEUST in 1 2; do ship $REQEUST; done"}, 2, ""},
		{[]string{"sh", "-c", "ship ${REQEUST:-1} $WORKDIR $PATH"}, 2, ""},
	} {
		got := Fault(test.words, test.at, []string{"SHIP_KEY"})
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("word %d of %q: %q, want %q", test.at, test.words, got, test.want)
		}
	}
}
