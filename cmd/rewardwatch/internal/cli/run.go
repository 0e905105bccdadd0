package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
)

func newRunCommand(c *terminal.Console) *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:   "run [--config FILE]",
		Short: "Run the service",
		Long: "Reads telemetry from Kafka, or from a local log of telemetry received over HTTP, until it receives SIGINT or SIGTERM.\n" +
			"On SIGHUP, the service reloads its configuration and restarts from its saved state. If the new configuration is\n" +
			"invalid, the service continues with the previous one.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runService(cmd.Context(), c, config) },
	}
	cmd.Flags().StringVar(&config, "config", "", "configuration file; the defaults apply if not set")
	return cmd
}

// errReload ends one run of the service, so that the next one starts with the reloaded configuration.
var errReload = errors.New("configuration reloaded")

// runService runs the service, once for each configuration that it loads.
func runService(ctx context.Context, c *terminal.Console, file string) error {
	cfg, err := config.LoadForService(file)
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	var before *config.Config // the last one that ran, until the current one has run
	refused := false          // whether the last loaded configuration was refused and is not in use
	for {
		next, err := serve(ctx, c, file, cfg, refused, hangups)
		refused = errors.Is(err, app.ErrNotStarted)
		switch {
		case errors.Is(err, app.ErrNotStarted) && before != nil:
			c.Report(fmt.Errorf("the new configuration is invalid; continuing with the previous one: %w", err))
			cfg, before = before, nil
		case err != nil || next == nil:
			return err
		default:
			cfg, before = next, cfg
		}
	}
}

// serve runs the service with one configuration. If a reload ends it, serve returns the next one.
func serve(ctx context.Context, c *terminal.Console, file string, cfg *config.Config, refused bool, hangups <-chan os.Signal) (next *config.Config, err error) {
	log := c.Log()
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reloaded := make(chan *config.Config, 1)
	var a *app.App
	reload := func() error {
		read, err := config.LoadForService(file)
		if err != nil {
			a.Reloaded.Set(0)
			return fmt.Errorf("the configuration was not reloaded: %w", err)
		}
		select {
		case reloaded <- read:
			stop(errReload)
		default: // a reload is already pending
		}
		return nil
	}
	if a, err = app.New(running, cfg, reload, log); err != nil {
		if ctx.Err() != nil {
			log.Info().Err(err).Msg("stopped during startup")
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %w", app.ErrNotStarted, err)
	}
	if refused {
		a.Reloaded.Set(0)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	for {
		select {
		case <-hangups:
			if err := reload(); err != nil {
				log.Error().Err(err).Msg("failed to reload the configuration")
			}
		case err := <-done:
			if err == nil && errors.Is(context.Cause(running), errReload) {
				log.Info().Msg("restarting with the new configuration")
				return <-reloaded, nil
			}
			return nil, err
		}
	}
}
