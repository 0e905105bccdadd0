package commandline

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/modules"
)

func TestArgumentsOfCommands(t *testing.T) {
	env, seed, fast := modules.Option{Name: "env", Position: true}, modules.Option{Name: "--seed"}, modules.Option{Name: "--fast", Boolean: true}
	flags := Flags{env, seed, fast}
	args := []string{"--fast", "Ant-v5", "--seed=3"}
	if got := flags.Given(args, env); got != "Ant-v5" {
		t.Errorf("env is %q", got)
	}
	if got := flags.Given(args, seed); got != "3" {
		t.Errorf("seed is %q", got)
	}
	if got := flags.Positions([]string{"--seed", "3", "--fast", "Ant-v5"}); got != 1 {
		t.Errorf("%d positional arguments, want 1", got)
	}
	if got := flags.Give(args, env, "Hopper-v5"); !slices.Equal(got, []string{"--fast", "Hopper-v5", "--seed=3"}) {
		t.Error(got)
	}
	if got := Set(args, seed, "4"); !slices.Equal(got, []string{"--fast", "Ant-v5", "--seed=4"}) {
		t.Error(got)
	}
	if got := Set(nil, seed, "4"); !slices.Equal(got, []string{"--seed", "4"}) {
		t.Error(got)
	}
	if Has(args, env) || !Has(args, fast) {
		t.Errorf("%q", args)
	}
}

func TestQuotedWords(t *testing.T) {
	for word, want := range map[string]string{
		"plain":               "plain",
		"it's":                `'it'\''s'`,
		"$HOME":               `'$HOME'`,
		Work + "model.zip":    `"$WORK/model.zip"`,
		"--out=" + Work + "a": `--out="$WORK/a"`,
		LastModel + ".pt":     `"$(find "$WORK" -name "*.pt" -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2-)"`,
	} {
		if got := Quoted(word); got != want {
			t.Errorf("%s becomes %s, want %s", word, got, want)
		}
	}
}
