package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
)

func newForgetCommand(c *terminal.Console) *cobra.Command {
	var why wire.Reason
	service := &client.Client{}
	cmd := &cobra.Command{
		Use:   "forget POLICY --why TEXT",
		Short: "Remove a policy and its baselines from a running service",
		Long: "Removes the baselines, alarms and open episodes of a policy, and frees its share of limits.streams.\n" +
			"In a cluster, you can send the command to any instance.\n" +
			"If events of the policy still arrive, a new warm-up starts. To prevent that, change policies in the configuration.",
		Example: "  rewardwatch forget checkout-ranker-test --why \"a finished load test\"",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: completePolicies(service),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := why.Check(); err != nil {
				return err
			}
			var answer wire.Forgotten
			if err := service.Post(cmd.Context(), why, &answer, "policies", args[0], "forget"); err != nil {
				return err
			}
			return c.Print(answer, func(w io.Writer) error {
				said := "forgot %s\n"
				if answer.Pending {
					said = "asked all instances to forget %s\n"
				}
				_, err := fmt.Fprintf(w, said, terminal.Printable(answer.Forgotten))
				return err
			})
		},
	}
	service.Flags(cmd)
	client.ReasonFlags(cmd, &why)
	return cmd
}
