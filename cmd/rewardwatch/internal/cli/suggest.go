package cli

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rewardwatch/rewardwatch/ingest/nearest"
)

// showsHelp makes a command that only has subcommands print its help, and name the nearest one if there is a typing
// error in its name.
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

func unknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	err := fmt.Errorf("unknown command %q for %q", name, cmd.CommandPath())
	if best := nearest.Of(name, slices.Values(known)); best != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, best)
	}
	return err
}

// unknownFlag matches the error of the flag library for a flag that does not exist.
var unknownFlag = regexp.MustCompile(`^unknown flag: --(.+)$`)

// flagError adds the nearest flag to the error of one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	name := unknownFlag.FindStringSubmatch(err.Error())
	if name == nil {
		return err
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	if best := nearest.Of(name[1], slices.Values(flags)); best != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, best)
	}
	return err
}
