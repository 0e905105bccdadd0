package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
)

func newRulesCommand(c *terminal.Console) *cobra.Command {
	var dir, config string
	cmd := &cobra.Command{
		Use:   "rules -o DIR",
		Short: "Write Prometheus recording and alerting rules, and promtool tests for them",
		Long: "Writes Prometheus recording and alerting rules, and promtool tests for them. If alerts.alertmanager is set, omits the " +
			"alerts for drift and telemetry faults, because otherwise each would notify you twice.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return writeRules(c, dir, config) },
	}
	writerFlags(cmd, &dir, &config)
	return cmd
}

func writeRules(c *terminal.Console, dir, configFile string) error {
	cfg, err := config.Load(configFile)
	if err != nil {
		return err
	}
	err = rules.Write(dir, rules.Options{
		Push:        len(cfg.Alerts.Alertmanager.URLs) > 0,
		GroupLabels: cfg.Settings().GroupLabels(),
		GrafanaURL:  cfg.Alerts.GrafanaURL,
	})
	if err != nil {
		return err
	}
	return wrote(c, filepath.Join(dir, rules.RulesFile), filepath.Join(dir, rules.RulesTestFile))
}
