package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func newRunCommand(c *console) *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:   "run [--config FILE]",
		Short: "Run the service",
		Long: "Reads telemetry from Kafka until it is told to stop (SIGINT, SIGTERM). SIGHUP reads the configuration again\n" +
			"and restarts the service with it, from the state that it has saved; a bad configuration changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runService(cmd.Context(), c, config) },
	}
	cmd.Flags().StringVar(&config, "config", "", "configuration file; the defaults hold without one")
	return cmd
}

// errReload ends one run of the service so that the next begins with the configuration that was read again.
var errReload = errors.New("configuration was read again")

// runService runs the service, once for each configuration that it is given.
func runService(ctx context.Context, c *console, file string) error {
	cfg, err := LoadServiceConfig(file)
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	var before *Config // that ran, while the present one has not
	refused := false   // the configuration that was read last is not the one in use
	for {
		next, err := serve(ctx, c, file, cfg, refused, hangups)
		refused = errors.Is(err, errNotStarted)
		switch {
		case errors.Is(err, errNotStarted) && before != nil:
			c.report(fmt.Errorf("the configuration that was read cannot be used, going on with the one before: %w", err))
			cfg, before = before, nil
		case err != nil || next == nil:
			return err
		default:
			cfg, before = next, cfg
		}
	}
}

// errNotStarted ends a run that could not open what its configuration names.
var errNotStarted = errors.New("cannot start")

// serve runs the service with one configuration, and gives the next one where a reload ended it.
func serve(ctx context.Context, c *console, file string, cfg *Config, refused bool, hangups <-chan os.Signal) (next *Config, err error) {
	log := c.log()
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	reloaded := make(chan *Config, 1)
	var a *app
	reload := func() error {
		read, err := LoadServiceConfig(file)
		if err != nil {
			a.reloaded.Set(0)
			return fmt.Errorf("the configuration stays as it was: %w", err)
		}
		select {
		case reloaded <- read:
			stop(errReload)
		default: // one that was read a moment ago is about to be used
		}
		return nil
	}
	if a, err = newApp(running, cfg, reload, log); err != nil {
		if ctx.Err() != nil {
			log.Info().Err(err).Msg("stopped before it had started")
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	if refused {
		a.reloaded.Set(0)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(running) }()
	for {
		select {
		case <-hangups:
			if err := reload(); err != nil {
				log.Error().Err(err).Msg("cannot reload")
			}
		case err := <-done:
			if err == nil && errors.Is(context.Cause(running), errReload) {
				log.Info().Msg("starting again with the configuration that was read")
				return <-reloaded, nil
			}
			return nil, err
		}
	}
}
