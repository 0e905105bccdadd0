// Package command runs training programs on the machine of the service. It runs a configured program once per request
// and reports how it ended, across any number of restarts and crashes of the service.
//
// Every run has a directory, named after its request, which contains the run's entire state. A request is claimed
// by creating the complete directory in one step. A supervisor, which is a separate process and outlives the
// service, locks the directory. It writes started.json before it starts the program and exit.json after the program
// has ended. The service reads them. The lock shows whether the supervisor still runs, because the kernel releases
// it however the supervisor ends. Process ids do not show that, because they may have been reused.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

// The files of a run.
const (
	specFile       = "run.json"    // what to run
	orderFile      = "order.json"  // the body that a webhook would have
	configFile     = "config.json" // the resolved config of the training
	lockFile       = "lock"        // held while the supervisor or the program runs
	startedFile    = "started.json"
	exitFile       = "exit.json"
	resultFile     = "result.json"    // where the program names the version that it has produced
	logFile        = "log"            // output of the program
	supervisorFile = "supervisor.log" // errors of the supervisor itself
	reportedFile   = "reported"       // marks that the ledger has the outcome
)

// spec is what a supervisor must run.
type spec struct {
	Request     string        `json:"request"`
	Policy      string        `json:"policy"`
	Run         []string      `json:"run"`
	Directory   string        `json:"directory"`
	Environment []string      `json:"environment"` // NAME=value
	TimeLimit   time.Duration `json:"time_limit_ns"`
	Grace       time.Duration `json:"grace_ns"` // between SIGTERM and SIGKILL
}

// start identifies the supervisor for people who want to end the program: the supervisor forwards SIGTERM.
type start struct {
	Supervisor int       `json:"supervisor_pid"`
	At         time.Time `json:"at"`
}

// exit is how the program ended.
type exit struct {
	Error string    `json:"error"` // "" for exit code 0
	At    time.Time `json:"at"`
}

// run is the directory of a run.
type run string

func (r run) file(name string) string { return filepath.Join(string(r), name) }

func (r run) has(name string) (bool, error) {
	_, err := os.Stat(r.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// read reads a JSON file into value, and reports whether the file exists.
func (r run) read(name string, value any) (bool, error) {
	text, err := os.ReadFile(r.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", r.file(name), err)
	}
	return true, nil
}

// write writes a JSON file that is complete and durable when it appears.
func (r run) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", r.file(name), err)
	}
	if err := datadir.Replace(r.file(name), text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", r.file(name), err)
	}
	return nil
}

// errHeld means that another process holds the lock of a run.
var errHeld = errors.New("another process owns the run")

// lock locks a run for this process and those that inherit the file, until all of them have closed it or ended.
func (r run) lock() (*os.File, error) {
	f, err := os.OpenFile(r.file(lockFile), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", r.file(lockFile), err), f.Close())
	}
	return f, nil
}

// phase is how far a run has got.
type phase int

const (
	claimed phase = iota // its program was not started; the next delivery of the request starts it
	running
	ended
	vanished // its program was started, but how it ended is unknown
)

// phase returns how far the run has got; e is valid if it has ended.
func (r run) phase() (p phase, e exit, err error) {
	if begun, err := r.has(startedFile); err != nil || !begun {
		return claimed, exit{}, err
	}
	if done, err := r.read(exitFile, &e); done || err != nil {
		return ended, e, err
	}
	held, err := r.lock()
	if errors.Is(err, errHeld) {
		return running, exit{}, nil
	}
	if err != nil {
		return running, exit{}, err
	}
	defer func() { _ = held.Close() }() // nothing was written
	// Read it again: the supervisor writes the file before it releases the lock.
	if done, err := r.read(exitFile, &e); done || err != nil {
		return ended, e, err
	}
	return vanished, exit{}, nil
}

// KeptLog is how many bytes from the end of a log a report should keep. The report carries logMargin more before them,
// so that a secret that begins there can be recognized.
const (
	KeptLog   = 16 << 10
	logMargin = 8 << 10
)

// tail returns the end of a log, "" if there is none.
func (r run) tail() string {
	var text []byte
	for _, name := range []string{logFile + ".1", logFile} {
		text = append(text, readEnd(r.file(name), KeptLog+logMargin)...)
	}
	return string(text[max(0, len(text)-KeptLog-logMargin):])
}

// readEnd returns the last bytes of a file, or nothing if it cannot be read: a missing log must not lose an
// outcome.
func readEnd(path string, most int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // nothing was written
	if _, err := f.Seek(-most, io.SeekEnd); err != nil {
		_, _ = f.Seek(0, io.SeekStart) // the file is shorter than that
	}
	text, _ := io.ReadAll(io.LimitReader(f, most))
	return text
}

// maxResult bounds the size in bytes of the file in which a program names its version.
const maxResult = 64 << 10

// version reads the policy_version that the program reports.
func (r run) version() (string, error) {
	const wanted = `{"policy_version": "..."} to the file in ` + variablePrefix + `RESULT`
	info, err := os.Stat(r.file(resultFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("the command exited with code 0 but did not write " + wanted)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxResult:
		return "", fmt.Errorf("the command must write %s as a regular file of at most %d bytes", wanted, maxResult)
	}
	var result struct {
		Version string `json:"policy_version"`
	}
	text, err := os.ReadFile(r.file(resultFile))
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return "", fmt.Errorf("the command wrote %s, but its content is invalid: %w", wanted, err)
	}
	if result.Version == "" {
		return "", errors.New("the command must write " + wanted + ", but it has no policy_version")
	}
	return result.Version, nil
}
