package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/dashboards"
)

func newDashboardsCommand(c *terminal.Console) *cobra.Command {
	var dir, config string
	cmd := &cobra.Command{
		Use:   "dashboards -o DIR",
		Short: "Write the Grafana dashboards",
		Long:  "Writes the Grafana dashboards as JSON, and all of them as a Kubernetes ConfigMap. The dashboard variables follow the group_by labels of the configuration.",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return writeDashboards(c, dir, config) },
	}
	writerFlags(cmd, &dir, &config)
	return cmd
}

func writeDashboards(c *terminal.Console, dir, configFile string) error {
	cfg, err := config.Load(configFile)
	if err != nil {
		return err
	}
	files, err := dashboards.Write(dir, dashboards.Options{GroupBy: cfg.Settings().GroupLabels()})
	if err != nil {
		return err
	}
	return wrote(c, files...)
}

// writerFlags adds the flags of a command that writes files.
func writerFlags(cmd *cobra.Command, dir, config *string) {
	cmd.Flags().StringVarP(dir, "directory", "o", "", "directory to write to; created if it does not exist")
	cmd.Flags().StringVar(config, "config", "", "configuration file; the defaults apply if not set")
	// Fails only for a flag that does not exist.
	_ = cmd.MarkFlagRequired("directory")
}

// wrote prints the names of the files that a command has written.
func wrote(c *terminal.Console, files ...string) error {
	return c.Print(map[string][]string{"files": files}, func(w io.Writer) error {
		for _, f := range files {
			if _, err := fmt.Fprintln(w, f); err != nil {
				return err
			}
		}
		return nil
	})
}
