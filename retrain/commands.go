package retrain

import (
	"context"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/retrain/command"
)

// CommandTarget is a program that retrains on the machine of the service.
type CommandTarget struct {
	command.Config `yaml:",inline"`
}

func defaultCommand() CommandTarget {
	return CommandTarget{command.Config{TimeLimit: command.DefaultTimeLimit}}
}

func (c CommandTarget) given() bool     { return c.Given() }
func (c CommandTarget) address() string { return "command" } // no command ever answers that it is gone

func (c CommandTarget) check(report func(key, msg string)) {
	c.Check(below("command", report))
}

func (c CommandTarget) adapter(line line) (adapter, error) {
	return program{c.Config, line.runs}, nil
}

// program is the adapter of a command.
type program struct {
	config command.Config
	runs   *command.Runner
}

// send starts the command: the order is delivered when its supervisor has it. What becomes of it is reported by the runner.
func (p program) send(ctx context.Context, m message) outcome {
	err := p.runs.Start(ctx, p.config, m.body)
	if err == nil {
		return outcome{result: ResultDelivered}
	}
	o := outcome{result: ResultUnreachable, err: err.Error()}
	if _, busy := errors.AsType[*command.BusyError](err); busy {
		o.result = ResultRejected
	}
	return o
}

// runsCommands reports whether a target is a command.
func (c Config) runsCommands() bool {
	return slices.ContainsFunc(c.Targets, func(t Target) bool { return t.Command.given() })
}

// openRuns opens the directory of the runs where a target is a command, and gives nil where none is.
func (c Config) openRuns(log zerolog.Logger) (*command.Runner, error) {
	if !c.runsCommands() {
		return nil, nil
	}
	return command.Open(c.Runs, log)
}

// watchRuns reports what becomes of commands until ctx ends or the ledger fails.
func (d *Desk) watchRuns(ctx context.Context) error {
	if d.runs == nil {
		<-ctx.Done()
		return nil
	}
	return d.runs.Run(ctx, d.reportRun)
}

// byCommand is who reports of a command.
const byCommand = "command"

// reportRun has the same words for the states as Report.
func (d *Desk) reportRun(ctx context.Context, request string, r command.Report) error {
	_, err := d.Report(ctx, request, Report{State: r.State, Version: r.Version, Error: r.Error, Log: r.Log, By: byCommand})
	if _, otherState := errors.AsType[*StateError](err); otherState || errors.Is(err, ErrUnknownRequest) {
		return errors.Join(command.ErrSettled, err)
	}
	return err
}
