package placeholders

import (
	"strings"
	"testing"
)

// A placeholder is replaced by the first value of the list or sentence that explains it.
func TestPlaceholdersAreReplacedByListedValues(t *testing.T) {
	const run = "python main.py --config=<algo> with key=<task>"
	isCommand := func(line string) bool { return strings.HasPrefix(line, "python ") }
	for page, want := range map[string]string{
		"Replace `<algo>` by one of these:\n\n- \"coma\"\n- \"qmix\"\n\nReplace `<algo>` and `<task>`:\n" + run + "\nThe `<task>` is:\n* `lb:A-v2` / `lb:A-v3`\n* other\n": "--config=coma with key=lb:A-v2",
		"The `<algo>` can be `ppo` or `dqn`.\n" + run + "\n`<task>` is one of 'reach', 'push'\n":                                                                           "--config=ppo with key=reach",
		"The `<algo>` can be `ppo` or `dqn`.\n" + run + "\nEdit `<task>` before.\n\nThen:\n- train\n":                                                                      "--config=<algo> with key=<task>",
		run + "\n": "--config=<algo> with key=<task>",
	} {
		_, arguments, _ := strings.Cut(run, ".py ")
		if got := Filled(page, strings.Index(page, run)+len(run), arguments, isCommand); got != want {
			t.Errorf("%q in\n%s, want %q", got, page, want)
		}
	}
	if In("--env=Ant-v4") || !In("--env={task}") || In("<Algo>") {
		t.Error("placeholders are not recognized")
	}
}
