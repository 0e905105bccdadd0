package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// shownCommand is a command of docs/getting-started.md and the output that the page shows; ... stands for omitted
// lines.
type shownCommand struct {
	line   string
	output []string
}

func commandsOf(page string) (commands []shownCommand) {
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimRight(line, " \n")
			if command, is := strings.CutPrefix(line, "$ "); is {
				commands = append(commands, shownCommand{line: command})
			} else {
				last := &commands[len(commands)-1]
				last.output = append(last.output, line)
			}
		}
	}
	return commands
}

// Every command of the page is run and prints what the page shows, except for those that README.md also has: make build
// and the service.
func TestSimGettingStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	readme, commands := testkit.Read(t, "../../../../README.md"), commandsOf(testkit.Read(t, "../../../../docs/getting-started.md"))
	dir := t.TempDir()
	example := filepath.Join(dir, "docs", "examples", filepath.Base(exampleFile))
	if err := os.MkdirAll(filepath.Dir(example), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(example, []byte(testkit.Read(t, exampleFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	ran := 0
	for _, c := range commands {
		args, ours := strings.CutPrefix(c.line, "bin/rewardwatch ")
		if !ours || strings.HasPrefix(args, "run ") {
			if !strings.Contains(readme, c.line) && !strings.HasPrefix(c.line, "git clone ") {
				t.Fatalf("nothing runs %q", c.line)
			}
			continue
		}
		ran++
		args, file, redirected := strings.Cut(args, " >")
		got := runVerb(strings.Fields(args)...)
		if got.code == exitError || got.err != "" {
			t.Fatalf("%s: exit %d: %s", c.line, got.code, got.err)
		}
		if redirected {
			if err := os.WriteFile(file, []byte(got.out), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		rest := got.out
		for _, line := range c.output {
			before, after, found := strings.Cut("\n"+rest, "\n"+line+"\n")
			if line == "" || line == "..." {
				continue
			}
			if !found {
				t.Fatalf("%s does not print %q, but\n%s", c.line, line, got.out)
			}
			_, rest = before, after
		}
	}
	if ran < 6 {
		t.Errorf("ran %d commands of the page", ran)
	}
	if !strings.Contains(readme, "(docs/getting-started.md)") {
		t.Error("README.md does not lead to the page")
	}
}
