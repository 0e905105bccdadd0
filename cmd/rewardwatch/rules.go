package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain"
)

func newRulesCommand(c *console) *cobra.Command {
	var dir, config string
	cmd := &cobra.Command{
		Use:   "rules -o DIR",
		Short: "Write Prometheus recording and alerting rules and promtool's tests of them",
		Long: "Write Prometheus recording and alerting rules and promtool's tests of them. Where the configuration pushes to Alertmanager, the " +
			"alerts of drift and of telemetry faults are left out, or each would page twice.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return writeRules(c, dir, config) },
	}
	writerFlags(cmd, &dir, &config)
	return cmd
}

func writeRules(c *console, dir, configFile string) error {
	cfg, err := LoadConfig(configFile)
	if err != nil {
		return err
	}
	err = alerts.WriteRules(dir, alerts.RulesOptions{
		Push:            len(cfg.Alerts.Alertmanager.URLs) > 0,
		GroupLabels:     cfg.groupLabels(),
		WebhooksGivenUp: retrain.MetricGivenUp,
		RetrainRequests: retrain.MetricRequests,
		Memory:          MetricMemory,
		MemoryLimit:     MetricMemoryLimit,
		UnitDelay:       MetricUnitDelay,
	})
	if err != nil {
		return err
	}
	return c.wrote(filepath.Join(dir, alerts.RulesFile), filepath.Join(dir, alerts.RulesTestFile))
}
