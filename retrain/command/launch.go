package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Verb is the subcommand of this binary that supervises a run: it calls Launch without SuperviseFlag, and Supervise
// with it.
const (
	Verb          = "run-command"
	SuperviseFlag = "supervise"
)

// launchTimeout bounds the start of a supervisor.
const launchTimeout = 30 * time.Second

// Launch starts a supervisor for the directory of a run, in its own session, and returns once it is about to start the
// program. It does nothing if a supervisor was already started. It runs in a separate process that ends at once. So
// the supervisor becomes a child of init, not of the service, and outlives it.
func Launch(ctx context.Context, directory string) error {
	r := run(directory)
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	if begun, err := r.has(startedFile); begun || err != nil {
		return err
	}
	ended, err := r.startSupervisor()
	if err != nil {
		return fmt.Errorf("start a supervisor: %w", err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var end error
		over := false
		select {
		case <-ctx.Done():
			return fmt.Errorf("start a supervisor: %w", ctx.Err())
		case end = <-ended:
			over = !r.held() // another supervisor may have been first
		case <-tick.C:
		}
		begun, err := r.has(startedFile)
		switch {
		case begun || err != nil:
			return err
		case over:
			said := readEnd(r.file(supervisorFile), 1<<10)
			return errors.Join(fmt.Errorf("the supervisor exited before it started the command: %s", said), end)
		}
	}
}

// held reports whether another process has locked the run.
func (r run) held() bool {
	f, err := r.lock()
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return errors.Is(err, errHeld)
}

// startSupervisor returns a channel that receives the supervisor's exit.
func (r run) startSupervisor() (<-chan error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(r.file(supervisorFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the supervisor has its own copy
	cmd := exec.Command(self, Verb, "--"+SuperviseFlag, string(r))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // it ends with this process at the latest
	return ended, nil
}
