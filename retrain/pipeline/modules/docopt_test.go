package modules

import (
	"fmt"
	"strings"
	"testing"
)

// Each [options] stands for the same options, however often a line has it.
func TestOptionsOfDocoptCountOnce(t *testing.T) {
	var doc strings.Builder
	doc.WriteString("\"\"\"Lab.\n\nUsage:\n  lab.py train --o1=<v> [options] [options] <config>\n")
	for i := range maxCommands {
		fmt.Fprintf(&doc, "  lab.py c%d%s\n", i, strings.Repeat(" [options]", 300))
	}
	doc.WriteString("\nOptions:\n")
	for i := range 2 * MaxFlags {
		fmt.Fprintf(&doc, "  --o%d=<v>  Value.\n", i)
	}
	doc.WriteString("\"\"\"\nargs = docopt(__doc__)\n")
	commands := filesOf(map[string]string{"lab.py": doc.String()}).SubCommands("lab.py")
	if len(commands) != maxCommands {
		t.Fatalf("%d commands", len(commands))
	}
	for _, c := range commands {
		names := map[string]bool{}
		for _, x := range c.Flags {
			names[x.Name] = true
		}
		if len(c.Flags) != MaxFlags || len(names) != MaxFlags {
			t.Fatalf("%s: %d arguments with %d names, want %d", c.Path, len(c.Flags), len(names), MaxFlags)
		}
	}
	if first := commands[0].Flags; first[0].Name != "--o1" || !first[0].Required || !first[1].Position || first[2].Name != "--o0" || first[2].Required {
		t.Errorf("%+v", first[:3])
	}
}

// Words between bars are not a command, and neither options in alternatives nor those in brackets are required.
func TestAlternativesOfDocopt(t *testing.T) {
	const described = "\n\nOptions:\n  -c <config>, --config=<config>  Settings.\n  -q, --quiet  Less output.\n"
	for line, want := range map[string]string{
		"train <config>":                           "train: config!",
		"(train | eval) [options]":                 "",
		"train | eval":                             "",
		"train (fast | slow) --lr=<n>":             "",
		"train [fast | slow] --lr=<n>":             "train: --lr!",
		"train -c <config>":                        "train: --config!",
		"train -c CONFIG -q":                       "train: --config!",
		"train -d<dir> [-e=<env>]":                 "train: -d! -e",
		"train [-c <config>] <env>":                "train: --config env!",
		"train (--fast | --slow=<n>) --lr=<x>":     "train: --fast --slow --lr!",
		"train (--lr=<x> --steps=<n>)":             "train: --lr! --steps!",
		"train [(--lr=<x> --steps=<n>)] <env>...":  "train: --lr --steps env!",
		"train --lr=<x> | --config=<config>":       "train: --lr --config",
		"train (<env> | --env=<id>) (-h | --help)": "train: env --env --help",
	} {
		text := "\"\"\"Lab.\n\nUsage:\n  lab.py " + line + described + "\"\"\"\nargs = docopt(__doc__)\n"
		var got []string
		for _, c := range filesOf(map[string]string{"lab.py": text}).SubCommands("lab.py") {
			got = append(got, strings.Join(c.Path, " ")+":")
			for _, x := range c.Flags {
				name := x.Name
				if x.Required {
					name += "!"
				}
				got = append(got, name)
			}
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s: %q, want %q", line, all, want)
		}
	}
}
