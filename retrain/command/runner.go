package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
	"github.com/rewardwatch/rewardwatch/retrain/training"
)

// Grace is how long a program has between SIGTERM and SIGKILL.
const Grace = 30 * time.Second

// How often runs are checked, how long their directories are kept once the ledger has their outcome, and after which
// time the remains of an interrupted creation or removal are removed.
const (
	lookEvery = time.Second
	kept      = 7 * 24 * time.Hour
	leftOver  = time.Hour
)

// Runner starts runs and follows all runs in its directory, including those that other processes started.
type Runner struct {
	directory string
	log       zerolog.Logger
	every     time.Duration
	grace     time.Duration

	mu    sync.Mutex        // held to start a run: only one starts at a time
	known map[string]string // by request, the last report of its run by this process
}

// Open opens the directory of the runs, and creates it if missing.
func Open(directory string, log zerolog.Logger) (*Runner, error) {
	directory, err := filepath.Abs(directory)
	if err == nil {
		err = os.MkdirAll(directory, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open the directory for command runs: %w", err)
	}
	return &Runner{directory: directory, log: log, every: lookEvery, grace: Grace, known: map[string]string{}}, nil
}

// BusyError means that a run of the same policy has not ended.
type BusyError struct{ Request string }

func (e *BusyError) Error() string {
	return "the run of " + e.Request + " for the same policy has not ended"
}

// Start runs a command for the request of an order, which is the body of a webhook. When it returns nil, the program
// was started or is about to be, whatever happens to this process. It may be called again for the same order after an
// error or a crash. It never starts a program twice, but then reports the outcome once more.
func (r *Runner) Start(ctx context.Context, c Config, body []byte) error {
	o, err := readOrder(body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.free(o); err != nil {
		return err
	}
	at := r.run(o.ID)
	if err := r.claim(at, c, o, body); err != nil {
		return fmt.Errorf("create the run directory: %w", err)
	}
	if err := os.Remove(at.file(reportedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return launch(ctx, at)
}

func (r *Runner) run(request string) run { return run(filepath.Join(r.directory, request)) }

// free returns a BusyError if a run of another request for the same policy has not ended.
func (r *Runner) free(o order) error {
	requests, err := r.requests()
	if err != nil {
		return err
	}
	for _, request := range requests {
		if request == o.ID {
			continue
		}
		p, _, err := r.run(request).phase()
		if err != nil || p != running {
			continue // the periodic check reports the error
		}
		var s spec
		if _, err := r.run(request).read(specFile, &s); err != nil {
			return err
		}
		if s.Policy == o.Policy {
			return &BusyError{request}
		}
	}
	return nil
}

// requests returns the requests that have a run.
func (r *Runner) requests() ([]string, error) {
	entries, err := os.ReadDir(r.directory)
	if err != nil {
		return nil, fmt.Errorf("list the runs: %w", err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && requestID.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// claim creates the directory of a run, with everything that the supervisor needs, unless it exists. It renames a
// complete directory into place, which fails if there is already one.
func (r *Runner) claim(at run, c Config, o order, body []byte) error {
	if _, err := os.Stat(string(at)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.MkdirTemp(r.directory, ".new-")
	if err != nil {
		return err
	}
	made := run(dir)
	err = errors.Join(
		datadir.WriteFile(made.file(lockFile), nil, 0o600),
		datadir.WriteFile(made.file(orderFile), body, 0o600),
		datadir.WriteFile(made.file(configFile), o.Config, 0o600),
		made.write(specFile, spec{
			Request: o.ID, Policy: o.Policy, Run: c.Run, Directory: c.Directory, Environment: c.environment(o, string(at)),
			TimeLimit: time.Duration(c.TimeLimit), Grace: r.grace,
		}),
	)
	if err == nil {
		err = os.Rename(dir, string(at))
		if errors.Is(err, fs.ErrExist) {
			err = nil // another process was first
		}
	}
	return errors.Join(err, os.RemoveAll(dir), datadir.Sync(r.directory))
}

// launch runs Launch in a separate process.
func launch(ctx context.Context, at run) error {
	if begun, err := at.has(startedFile); begun || err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start a supervisor: %w", err)
	}
	said, err := exec.CommandContext(ctx, self, Verb, string(at)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("start a supervisor: %w: %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// Run reports on the runs until the context ends, and removes those no longer needed. It returns only errors of the
// Reporter.
func (r *Runner) Run(ctx context.Context, report training.Reporter) error {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		if err := r.look(ctx, report); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look checks all runs once.
func (r *Runner) look(ctx context.Context, report training.Reporter) error {
	requests, err := r.requests()
	if err != nil {
		r.complain("", err)
		return nil
	}
	for _, request := range requests {
		if err := r.follow(ctx, request, report); err != nil {
			return err
		}
	}
	r.removeLeftOver()
	return nil
}

// follow reports how far a run has got, unless that was reported already.
func (r *Runner) follow(ctx context.Context, request string, report training.Reporter) error {
	at := r.run(request)
	p, e, err := at.phase()
	if err != nil {
		r.complain(request, err)
		return nil
	}
	if p == claimed {
		return r.expire(request, specFile)
	}
	if known, err := at.has(reportedFile); known || err != nil {
		return r.expire(request, reportedFile)
	}
	rep := at.report(p, e)
	if rep.State == training.Started && r.known[request] == training.Started {
		return nil
	}
	if err := report(ctx, request, rep); errors.Is(err, training.ErrSettled) {
		r.log.Info().Err(err).Str("request", request).Str("state", rep.State).Str("error", rep.Error).Msg("the request no longer accepts reports from its command")
	} else if err != nil {
		return fmt.Errorf("report the result of the run for %s: %w", request, err)
	}
	r.known[request] = rep.State
	if rep.State != training.Started {
		if err := at.write(reportedFile, rep.State); err != nil {
			r.complain(request, err) // the next check reports it again
		}
	}
	return nil
}

// report returns the report on a run.
func (r run) report(p phase, e exit) training.Report {
	switch p {
	case running:
		return training.Report{State: training.Started}
	case vanished:
		e.Error = "the machine or the supervisor stopped before the command exited"
	}
	version := ""
	if e.Error == "" {
		var err error
		if version, err = r.version(); err != nil {
			e.Error = err.Error()
		}
	}
	if e.Error != "" {
		return training.Report{State: training.Failed, Error: e.Error, Log: r.tail()}
	}
	return training.Report{State: training.Succeeded, Version: version, Log: r.tail()}
}

// expire removes a run that has not changed for long enough, by the time of the file. It renames the directory
// first, so that a crash leaves no half-removed run. It holds the run's lock meanwhile, so that no supervisor
// begins.
func (r *Runner) expire(request, file string) error {
	at := r.run(request)
	info, err := os.Stat(at.file(file))
	if err != nil || time.Since(info.ModTime()) < kept {
		return nil // the next check tries again
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	held, err := at.lock()
	if errors.Is(err, errHeld) {
		return nil
	}
	if err == nil {
		defer func() { _ = held.Close() }() // nothing was written
		gone := filepath.Join(r.directory, ".removed-"+request)
		err = errors.Join(os.Rename(string(at), gone), os.RemoveAll(gone))
	}
	if err != nil {
		r.complain(request, err)
		return nil
	}
	delete(r.known, request)
	return nil
}

// removeLeftOver removes what crashes during the creation or removal of runs have left.
func (r *Runner) removeLeftOver() {
	entries, _ := os.ReadDir(r.directory) // it was just read
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), ".") && time.Since(info.ModTime()) > leftOver {
			if err := os.RemoveAll(filepath.Join(r.directory, e.Name())); err != nil {
				r.complain(e.Name(), err)
			}
		}
	}
}

// complain logs a disk error once: the next check finds it again.
func (r *Runner) complain(request string, err error) {
	if r.known[request] != err.Error() {
		r.known[request] = err.Error()
		r.log.Error().Err(err).Str("request", request).Msg("failed to check the status of a command")
	}
}
