package retrain

import (
	"context"
	"errors"

	"github.com/rewardwatch/rewardwatch/retrain/command"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/target"
	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// watch calls run, which reports on trainings until its context ends or the ledger fails. It calls run again each
// time that a suspended ledger is available again.
func (d *Desk) watch(ctx context.Context, run func() error) error {
	err := run()
	for errors.Is(err, ledger.ErrSuspended) && d.back(ctx) {
		err = run()
	}
	return unlessSuspended(err)
}

// reporter returns a Reporter that records reports without the secrets that a training may have printed. The states
// in training.Report have the same names as those in Report.
func (d *Desk) reporter(by string) training.Reporter {
	return func(ctx context.Context, request string, r training.Report) error {
		known := d.cfg.printable()
		_, err := d.Report(ctx, request, Report{
			State: r.State, Version: r.Version, Error: known.Clean(r.Error, len(r.Error)), Log: known.CleanEnd(r.Log, command.KeptLog), By: by,
		})
		if settled(err) {
			return errors.Join(training.ErrSettled, err)
		}
		return err
	}
}

// settled reports whether a request no longer accepts reports. A program may have reported another version before.
func settled(err error) bool {
	_, otherState := errors.AsType[*ledger.StateError](err)
	return otherState || errors.Is(err, ledger.ErrUnknownRequest) || errors.Is(err, ErrOtherVersion)
}

// printable returns the secrets that commands and Jobs may print. It reads them for each report, because they may
// have changed.
func (c Config) printable() target.Secrets {
	var all target.Secrets
	for _, t := range c.Targets {
		all = t.Kubernetes.Printable(t.Command.Printable(all))
	}
	return all
}
