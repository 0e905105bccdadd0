package retrain

import (
	"context"
	"slices"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/target"
)

// runsCommands reports whether a target is a command.
func (c Config) runsCommands() bool {
	return slices.ContainsFunc(c.Targets, func(t target.Target) bool { return t.Command.Given() })
}

// openRuns opens the directory of the runs if a target is a command, and returns nil otherwise.
func (c Config) openRuns(log zerolog.Logger) (*command.Runner, error) {
	if !c.runsCommands() {
		return nil, nil
	}
	return command.Open(c.Runs, log)
}

// watchRuns reports on commands until ctx ends or the ledger fails.
func (d *Desk) watchRuns(ctx context.Context) error {
	if d.runs == nil {
		<-ctx.Done()
		return nil
	}
	return d.watch(ctx, func() error { return d.runs.Run(ctx, d.reporter(byCommand)) })
}

// byCommand is the reporter recorded for a command.
const byCommand = "command"
