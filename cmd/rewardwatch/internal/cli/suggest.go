package cli

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// showsHelp makes a command that only has subcommands print its help. If the name of a subcommand is misspelled, the
// error suggests the most similar one.
func showsHelp(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// refuseUnknown makes the commands that cobra adds refuse unknown names, as all others do. They would otherwise print a
// help text, which a redirection would take for the completions of a shell.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			showsHelp(cmd)
		case "help":
			show := cmd.Run
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				of, left, err := root.Find(args)
				if err != nil {
					return err
				}
				if len(left) > 0 && of.HasSubCommands() {
					return unknownCommand(of, left[0])
				}
				show(cmd, args)
				return nil
			}
		}
	}
}

// unknownCommand returns an error that suggests the commands of that name elsewhere, the subcommand with the most similar
// name, or the commands elsewhere with the most similar name.
func unknownCommand(cmd *cobra.Command, name string) error {
	var near []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			near = append(near, c.Name())
		}
	}
	paths := map[string][]string{}
	addPaths(paths, cmd.Root(), "")
	found := paths[name]
	if len(found) == 0 {
		if best := nearest.Of(name, slices.Values(near)); best != "" {
			found = []string{best}
		} else {
			found = paths[nearest.Of(name, slices.Values(slices.Sorted(maps.Keys(paths))))]
		}
	}
	err := fmt.Errorf("unknown command %q for %q", name, cmd.CommandPath())
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w (did you mean %s?)", err, strings.Join(found, " or "))
}

// addPaths adds the commands below a command that have no subcommands, by name. The prefix is what a user types before.
func addPaths(paths map[string][]string, cmd *cobra.Command, prefix string) {
	for _, c := range cmd.Commands() {
		switch {
		case !c.IsAvailableCommand():
		case c.HasSubCommands():
			addPaths(paths, c, prefix+c.Name()+" ")
		default:
			paths[c.Name()] = append(paths[c.Name()], prefix+c.Name())
		}
	}
}

// helpWidth is the width of a small terminal.
const helpWidth = 80

// reflowed wraps the paragraphs of a text to the width of a small terminal. Indented lines stay as they are.
func reflowed(text string) string {
	var b strings.Builder
	column := 0
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			column = 0
			continue
		}
		for word := range strings.FieldsSeq(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+n > helpWidth:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// tellUsage makes all commands below a command answer a wrong number of arguments with their usage, and makes their
// help fit a small terminal.
func tellUsage(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		tellUsage(c)
	}
	cmd.Long = reflowed(cmd.Long)
	check := cmd.Args
	if cmd.HasSubCommands() || check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		return fmt.Errorf("%s given; usage: %s", terminal.Plural(len(args), "argument"), cmd.UseLine())
	}
}

// unknownFlag matches the flag library's error for a flag that does not exist.
var unknownFlag = regexp.MustCompile(`^unknown flag: --(.+)$`)

// flagError adds the most similar flag, or the usage of the command, to the error for an unknown flag. After a
// misspelled subcommand, it returns the error for the subcommand, because the flag may belong to the intended one.
func flagError(cmd *cobra.Command, err error) error {
	name := unknownFlag.FindStringSubmatch(err.Error())
	if name == nil {
		return err
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	if best := nearest.Of(name[1], slices.Values(flags)); best != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, best)
	}
	return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
}
