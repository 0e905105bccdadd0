// Package datadir restricts a directory to one process at a time, and writes files that survive a crash intact.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrLocked means that another process uses the directory.
var ErrLocked = errors.New("the directory is in use")

const lockFile = "lock"

// Lock locks a directory for this process until the file is closed or the process ends, however it ends. The file
// names the process, for the error message of the next one, which is ErrLocked.
func Lock(directory string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(directory, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockError(directory, f, err), f.Close())
	}
	if err := writeHolder(f); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the directory: %w", err), f.Close())
	}
	return f, nil
}

func lockError(directory string, f *os.File, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("locking the directory %s: %w", directory, err)
	}
	holder, _ := io.ReadAll(io.LimitReader(f, 20)) // the process may not have written it yet
	return fmt.Errorf("%w: process %[3]q has locked %[2]s; use a separate directory for each instance",
		ErrLocked, directory, strings.TrimSpace(string(holder)))
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Sync makes the entries of a directory durable: files that were made, renamed or removed.
func Sync(directory string) error {
	f, err := os.Open(directory)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteFile is os.WriteFile, and returns once the content is on the disk. A file that is new is durable only after Sync
// of its directory.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Replace writes a file at once: after a crash, and for every reader, it has either its old content or all of the new.
// It is durable when Replace returns. The new content is first in path.tmp, a name that only one caller may use at a
// time, and that a failure may leave behind.
func Replace(path string, content []byte, mode fs.FileMode) error {
	temporary := path + ".tmp"
	if err := WriteFile(temporary, content, mode); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return Sync(filepath.Dir(path))
}
