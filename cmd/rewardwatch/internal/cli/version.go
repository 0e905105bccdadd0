package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
)

func newVersionCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and build information",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := app.ReadBuildInfo()
			return c.Print(b, func(w io.Writer) error {
				_, err := io.WriteString(w, b.String())
				return err
			})
		},
	}
}
