package cli

import (
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// newRunCommandCommand returns the command that the service runs for a target that is a command. It is not for people.
func newRunCommandCommand() *cobra.Command {
	var supervise bool
	cmd := &cobra.Command{
		Use:    command.Verb + " DIR",
		Short:  "Supervise a training command",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if supervise {
				return command.Supervise(cmd.Context(), args[0])
			}
			return command.Launch(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&supervise, command.SuperviseFlag, false, "run as the supervisor until the command ends")
	return cmd
}
