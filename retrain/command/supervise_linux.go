package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sys/unix"
)

// Supervise runs the program of a run to its end and records how it ended. It does not start a program that may
// have been started before. When ctx ends, it asks the program to end.
func Supervise(ctx context.Context, directory string) error {
	runtime.LockOSThread() // the kernel ends the program with the thread that started it
	r := run(directory)
	held, err := r.lock()
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // nothing was written
	if begun, err := r.has(startedFile); begun || err != nil {
		return err
	}
	var s spec
	if found, err := r.read(specFile, &s); err != nil || !found {
		return errors.Join(err, fmt.Errorf("%s is not a run directory", directory))
	}
	if err := r.write(startedFile, start{Supervisor: os.Getpid(), At: time.Now().UTC()}); err != nil {
		return err
	}
	var end exit
	if err := s.execute(ctx, r, held); err != nil {
		end.Error = err.Error()
	}
	return r.keep(end)
}

// keepEvery is how long the supervisor waits before it tries again to record the end, for example on a full disk.
const keepEvery = 5 * time.Second

// keep records how the program ended. It tries until it succeeds, because no other process knows how.
func (r run) keep(end exit) error {
	end.At = time.Now().UTC()
	for {
		err := r.write(exitFile, end)
		if err == nil || errors.Is(err, fs.ErrNotExist) { // the run was removed
			return err
		}
		fmt.Fprintln(os.Stderr, err)
		time.Sleep(keepEvery)
	}
}

// execute runs the program to its end. Its error is why the run failed. The program inherits the lock: if the
// supervisor dies, the run does not count as over while any process of the program remains.
func (s spec) execute(ctx context.Context, r run, held *os.File) error {
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("the command could not be started: %w", err)
	}
	defer func() { _ = out.Close() }() // nothing was written
	cmd := exec.Command(s.Run[0], s.Run[1:]...)
	cmd.Dir, cmd.Env = s.Directory, s.Environment
	cmd.Stdout, cmd.Stderr = in, in
	cmd.ExtraFiles = []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // ends with its supervisor
	err = cmd.Start()
	_ = in.Close() // the program has its own
	if err != nil {
		return fmt.Errorf("the command could not be started: %w", err)
	}
	p := process{cmd: cmd, gone: make(chan struct{}), silent: make(chan struct{})}
	go func() {
		defer close(p.gone)
		awaitExit(cmd.Process.Pid)
	}()
	go func() {
		defer close(p.silent)
		keepLog(r, out)
	}()
	return p.finish(ctx, s)
}

// process is a running program.
type process struct {
	cmd    *exec.Cmd
	gone   chan struct{} // closed when it has ended; its process id stays reserved until Wait
	silent chan struct{} // closed when all processes that could write to its log have ended
}

// finish waits for the end of the program, and ends it at its time limit or when ctx ends. The rest of its process
// group ends with it.
func (p process) finish(ctx context.Context, s spec) error {
	stopped := p.await(ctx, s.TimeLimit)
	p.signal(syscall.SIGTERM)
	grace, cancel := context.WithTimeout(context.Background(), s.Grace)
	defer cancel()
	for _, over := range []chan struct{}{p.gone, p.silent} {
		select {
		case <-over:
		case <-grace.Done():
		}
	}
	p.signal(syscall.SIGKILL)
	<-p.gone
	err := p.cmd.Wait()
	select {
	case <-p.silent:
	case <-time.After(time.Second): // a process that has left the group keeps the log open
	}
	if stopped != nil {
		return stopped
	}
	return reason(p.cmd.ProcessState, err)
}

// await returns nil when the program has ended, or the reason to end it.
func (p process) await(ctx context.Context, limit time.Duration) error {
	select {
	case <-p.gone:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("the command was stopped after its time limit of %s", model.Duration(limit))
	case <-ctx.Done():
		return errors.New("the command was stopped because its supervisor was stopped")
	}
}

// signal signals all processes of the group. The program has not been waited for, so its id cannot have been reused.
func (p process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) } // fails if none is left

// awaitExit returns when a child has ended, without waiting on it, so that its id is not reused yet.
func awaitExit(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// reason returns why the end of a program counts as a failure, nil for exit code 0.
func reason(state *os.ProcessState, err error) error {
	if state == nil {
		return fmt.Errorf("the exit status of the command is unknown: %w", err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Errorf("the command was killed by signal %d (%s)", status.Signal(), status.Signal())
	}
	if code := state.ExitCode(); code != 0 {
		return fmt.Errorf("the command exited with code %d", code)
	}
	return nil
}
