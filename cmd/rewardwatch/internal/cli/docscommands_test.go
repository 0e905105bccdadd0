package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// Every command shown by README.md and the pages below docs exists, with the flags shown.
func TestDocsShowCommandsThatExist(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(docsDir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, filepath.Join(docsDir, "..", "README.md")) {
		for _, command := range commandsShown(testkit.Read(t, page)) {
			checked++
			if problem := wrongCommand(command); problem != "" {
				t.Errorf("%s: %s: %s", filepath.Base(page), command, problem)
			}
		}
	}
	if checked < 100 {
		t.Errorf("checked %d commands", checked)
	}
}

var (
	shownInBlocks = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	shownOnLines  = regexp.MustCompile(`(?m)^ *(?:\$ )?(?:bin/)?rewardwatch (.+)$`)
	shownInline   = regexp.MustCompile("`(?:bin/)?rewardwatch\\s+([^`]+)`")
)

// commandsShown returns the arguments of rewardwatch in the code of a page.
func commandsShown(page string) (commands []string) {
	for _, block := range shownInBlocks.FindAllString(page, -1) {
		for _, line := range shownOnLines.FindAllStringSubmatch(strings.ReplaceAll(block, "\\\n", " "), -1) {
			commands = append(commands, line[1])
		}
	}
	for _, span := range shownInline.FindAllStringSubmatch(shownInBlocks.ReplaceAllString(page, ""), -1) {
		commands = append(commands, span[1])
	}
	return commands
}

// wrongCommand returns what is wrong with the verb or a flag of a command; empty if nothing is.
func wrongCommand(command string) string {
	command, _, _ = strings.Cut(command, " | ")
	args := strings.Fields(command)
	var out bytes.Buffer
	root := newRootCommand(&terminal.Console{In: strings.NewReader(""), Out: &out, Err: &out})
	root.InitDefaultCompletionCmd()
	verb, rest, err := root.Find(args)
	switch {
	case err != nil:
		return err.Error()
	case verb.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
		return "no such verb"
	}
	for _, arg := range rest {
		if name, is := strings.CutPrefix(arg, "-"); is && name != "" && !hasFlag(verb, name) {
			return "no flag " + arg
		}
	}
	return ""
}

// hasFlag reports whether a verb has a flag; name is without the first hyphen.
func hasFlag(verb *cobra.Command, name string) bool {
	verb.InitDefaultHelpFlag()
	verb.InitDefaultVersionFlag()
	verb.InheritedFlags() // adds the flags of its parents
	if long, is := strings.CutPrefix(name, "-"); is {
		long, _, _ = strings.Cut(long, "=")
		return verb.Flags().Lookup(long) != nil
	}
	return verb.Flags().ShorthandLookup(name[:1]) != nil
}

func TestWrongCommands(t *testing.T) {
	for command, right := range map[string]bool{
		"run --config F": true, "incident mute I --for 4h | cat --nothing": true, "dashboards -o DIR": true, "retrain list --server=x": true,
		"walk": false, "run --fast": false, "incident shown I": false, "dashboards -z": false,
	} {
		if problem := wrongCommand(command); (problem == "") != right {
			t.Errorf("%s: %q", command, problem)
		}
	}
	if got := commandsShown("`rewardwatch\nrun` rewardwatch\n```\n$ bin/rewardwatch a \\\n b\nx rewardwatch c\n```\n"); strings.Join(got, ";") != "a   b;run" {
		t.Errorf("found %q", got)
	}
}
