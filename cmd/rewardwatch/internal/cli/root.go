package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/calibrate"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/client"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/demo"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/inspect"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/pipelines"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
)

// The exit codes of every verb.
const (
	exitFine    = 0
	exitDrift   = 1 // drift was found, also if it resolved, or a gate failed
	exitError   = 2 // usage, configuration or environment error, or no valid event at all
	exitOpen    = 3 // a gate does not have enough data for a verdict, or a request has no data to export
	exitRefused = 4 // the service refused what a script repeats, a gate or a job's status: trying again is of no use
)

// Run parses the command line, runs the command and returns the exit status.
func Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends a shutdown that takes too long
	c := &terminal.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	return execute(ctx, c, os.Args[1:])
}

// execute runs one command line on a console. The command stops when the context ends.
func execute(ctx context.Context, c *terminal.Console, args []string) int {
	root := newRootCommand(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, terminal.ErrDriftFound), errors.Is(err, calibrate.ErrNotKept), errors.Is(err, errGateFailed):
		return exitDrift
	case errors.Is(err, errGateOpen):
		return exitOpen
	case errors.Is(err, errNoOffsets):
		c.Report(err)
		return exitOpen
	case errors.Is(err, terminal.ErrReported):
		return exitError
	}
	c.Report(err)
	if _, is := errors.AsType[refused](err); is {
		return exitRefused
	}
	return exitError
}

// refused is an error of a verb that exits with exitRefused.
type refused struct{ client.Refusal }

// orRefused returns err as refused if the service refused the request, otherwise as it is.
func orRefused(err error) error {
	if refusal, is := errors.AsType[client.Refusal](err); is {
		return refused{refusal}
	}
	return err
}

// Commands returns the command line, for its manual pages.
func Commands() *cobra.Command {
	return newRootCommand(&terminal.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

func newRootCommand(c *terminal.Console) *cobra.Command {
	build := app.ReadBuildInfo()
	root := showsHelp(&cobra.Command{
		Use:           "rewardwatch",
		Short:         "Monitor deployed reinforcement-learning agents for drift",
		Version:       build.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetVersionTemplate(build.String())
	root.SetFlagErrorFunc(flagError)
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.PersistentFlags().Var(&c.Output, "output", "output format: text or json")
	c.LogLevel = zerolog.InfoLevel
	root.PersistentFlags().Var((*terminal.LevelFlag)(&c.LogLevel), "log-level", "minimum log level: debug, info, warn or error")
	completeFlag(root, "output", completeWords([]string{"text", "json"}))
	completeFlag(root, "log-level", completeWords([]string{"debug", "info", "warn", "error"}))
	root.AddCommand(verbs(c)...)
	refuseUnknown(root)
	tellUsage(root)
	return root
}

// verbs returns the commands; cobra adds completion and help.
func verbs(c *terminal.Console) []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(c),
		demo.NewCommand(c),
		inspect.NewCommand(c),
		calibrate.NewCommand(c),
		replay.NewCommand(c),
		newExplainCommand(c),
		newValidateCommand(c),
		newBaselineCommand(c),
		newIncidentCommand(c),
		newForgetCommand(c),
		newGateCommand(c),
		newGuardCommand(c),
		newRetrainCommand(c),
		showsHelp(pipelines.NewCommand(c, app.ReadBuildInfo().Release())),
		newRunCommandCommand(),
		newSecretCommand(c),
		newRulesCommand(c),
		newDashboardsCommand(c),
		newVersionCommand(c),
	}
}
