package retrain

import (
	"context"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
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
	err := d.runs.Run(ctx, d.reportRun)
	for errors.Is(err, ledger.ErrSuspended) && d.back(ctx) {
		err = d.runs.Run(ctx, d.reportRun)
	}
	return unlessSuspended(err)
}

// byCommand is the reporter recorded for a command.
const byCommand = "command"

// reportRun records a report. command.Report has the same words for the states as Report.
func (d *Desk) reportRun(ctx context.Context, request string, r command.Report) error {
	err := d.reportEnd(ctx, request, byCommand, r)
	if settled(err) {
		return errors.Join(command.ErrSettled, err)
	}
	return err
}

// reportEnd records a report without the secrets that the program may have printed.
func (d *Desk) reportEnd(ctx context.Context, request, by string, r command.Report) error {
	known := d.cfg.printable()
	_, err := d.Report(ctx, request, Report{
		State: r.State, Version: r.Version, Error: known.Clean(r.Error, len(r.Error)), Log: known.CleanEnd(r.Log, command.KeptLog), By: by,
	})
	return err
}

// settled reports whether a request no longer accepts reports. A program may have reported another version before.
func settled(err error) bool {
	_, otherState := errors.AsType[*ledger.StateError](err)
	return otherState || errors.Is(err, ledger.ErrUnknownRequest) || errors.Is(err, ErrOtherVersion)
}

// printable returns the secrets that commands and Jobs may print. It reads them for each report, as they may have changed.
func (c Config) printable() target.Secrets {
	var all target.Secrets
	for _, t := range c.Targets {
		all = t.Kubernetes.Printable(t.Command.Printable(all))
	}
	return all
}
