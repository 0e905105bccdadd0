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
		{[]string{"cp", "--to=${SHIP_KEY}/x"}, 1, "must not contain ${SHIP_KEY}"},
		{[]string{"cp", "a", "&&", "b"}, 2, "must not be &&"},
		{[]string{"grep", "^cost: $"}, 1, ""},
		{[]string{"ssh", "a", "b $REQUEST"}, 2, "which the other machine does not have"},
		{[]string{"ssh", "-oSendEnv=REQUEST", "a", "b $REQUEST"}, 3, ""},
		{[]string{"sh", "-c", "ship $REQEUST"}, 2, "did you mean $REQUEST?"},
		{[]string{"sh", "-c", "ship $SHIP_KYE"}, 2, "did you mean $SHIP_KEY?"},
		{[]string{"sh", "-c", "for REQEUST in 1 2; do ship $REQEUST; done"}, 2, ""},
		{[]string{"sh", "-c", "ship ${REQEUST:-1} $WORKDIR $PATH"}, 2, ""},
		// The other machine expands its own variables.
		{[]string{"ssh", "deploy@prod", "~/bin/deploy.sh"}, 2, ""},
		{[]string{"ssh", "host", "$HOME/deploy.sh"}, 2, ""},
		{[]string{"ssh", "host", "$SHIP_KEY"}, 2, "must not contain $SHIP_KEY, which the other machine does not have"},
		{[]string{"scp", "~/model", "host:"}, 1, "must not contain ~/"},
		// su starts a shell with the same variables, unless an option requests a login shell.
		{[]string{"su", "app", "-c", "deploy $VERSION"}, 3, ""},
		{[]string{"su", "-s", "/bin/sh", "-c", "deploy", "app"}, 5, ""},
		{[]string{"su", "app", "--command=~/deploy $VERSION"}, 2, ""},
		{[]string{"su", "-", "app", "-c", "~/deploy $HOME"}, 4, ""},
		{[]string{"su", "-", "app", "-c", "deploy $VERSION"}, 4, "must not contain $VERSION, which su does not keep"},
		{[]string{"su", "app", "-c", "deploy $VERISON"}, 3, "did you mean $VERSION?"},
		{[]string{"su", "app", "deploy", "$VERSION"}, 3, "must not contain $VERSION, because no shell"},
		// Shell options before the script.
		{[]string{"bash", "-o", "errexit", "-c", "ship now $VERSION"}, 4, ""},
		{[]string{"bash", "-eo", "pipefail", "-o", "nounset", "-c", "ship now $VERSION"}, 6, ""},
		{[]string{"bash", "-O", "extglob", "+x", "-c", "ship now $VERSION"}, 5, ""},
		{[]string{"bash", "-ce", "ship now $VERSION"}, 2, ""},
		{[]string{"bash", "-o", "errexit", "ship now; $VERSION"}, 3, "must be the file of a script"},
		{[]string{"bash", "+x", "ship.sh", "$VERSION"}, 3, "must not contain $VERSION"},
		// Programs read other variables than those of the stage themselves.
		{[]string{"jq", "-n", "$ENV"}, 2, ""},
		{[]string{"python", "train.py", "--lr=${lr}"}, 2, ""},
		{[]string{"python", "train.py", "--out=${WROK}"}, 2, ""},
		{[]string{"python", "train.py", "--out=$VERISON"}, 2, "must not contain $VERISON"},
		{[]string{"python", "train.py", "--out=${HOME}"}, 2, "must not contain ${HOME}"},
		// The word after a script is its name, $0.
		{[]string{"sh", "-c", "ship it", "deploy"}, 3, ""},
		{[]string{"sh", "-c", "cd a && ship", "ship.sh"}, 3, ""},
		{[]string{"sh", "-c", "ship", "deploy", "now"}, 4, "must be part of the script"},
		{[]string{"sh", "-c", "python", "ship.py"}, 3, "must be part of the script"},
		// A sourced file may set any variable.
		{[]string{"sh", "-c", "set -a; . ./env; ship $SHIP_KYE"}, 2, ""},
		{[]string{"bash", "-c", "source env && ship $SHIP_KYE"}, 2, ""},
		{[]string{"bash", "-c", "mapfile SHIP_KEYS < a; printf -v SHIP_KYE x; ship $SHIP_KYE"}, 2, ""},
		{[]string{"sh", "-c", "find . -name a; ship $SHIP_KYE"}, 2, "did you mean $SHIP_KEY?"},
	} {
		got := Fault(test.words, test.at, []string{"SHIP_KEY"}, false)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("word %d of %q: %q, want %q", test.at, test.words, got, test.want)
		}
	}
}

// A script may set variables of any name.
func TestVariablesThatScriptsSet(t *testing.T) {
	for script, want := range map[string]string{
		`while IFS= read -r -d x work; do ship "$work"; done`: "",
		`read -ra work; ship "${work[0]}"`:                    "",
		`read -p "which one; or all? " image; ship $image`:    "",
		`read -r name < a; ship $image`:                       "must not contain $image, which nothing sets",
		`read -p "an $image" name; ship $image`:               "must not contain $image",
		`select image in a b; do ship $image; done`:           "",
		`select name in a b; do ship $image; done`:            "must not contain $image",
		`declare -A image; ship ${image[a]}`:                  "",
		`f() { local name version; ship $version; }`:          "",
		`declare -A images; ship $image`:                      "must not contain $image",
		`version+=x; ship $version`:                           "",
		`((version += 1)); ship $version`:                     "",
		`(( n = 2, version++ )); ship $version`:               "",
		`((version > 1)) && ship $version`:                    "must not contain $version",
		`((version == 1)) && ship $version`:                   "must not contain $version",
		`while getopts ab image; do ship $image; done`:        "",
		`while getopts image name; do ship $image; done`:      "must not contain $image",
		`perl -e "my \$version = 1; print \$version"`:         "",
		`echo "\\$version"`:                                   "must not contain $version",
		`echo "$a$version"`:                                   "must not contain $version",
		`jq --arg version 1 "\$version" a; ship $VERSION`:     "",
	} {
		if got := Fault([]string{"bash", "-c", script}, 2, nil, false); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
