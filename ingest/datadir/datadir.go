// Package datadir restricts a directory to one process at a time, and writes files that survive a crash.
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

// ErrLocked means that another process is using the directory.
var ErrLocked = errors.New("the directory is in use")

const lockFile = "lock"

// Lock locks a directory for this process until the returned file is closed or the process ends, even by a crash. The
// file contains the process ID, for the error message of other processes. The error is ErrLocked if another process has
// the lock.
func Lock(directory string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(directory, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockError(directory, f, err), f.Close())
	}
	if err := writeHolder(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the directory: %w", err), f.Close())
	}
	return f, nil
}

func lockError(directory string, f *os.File, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("lock the directory %s: %w", directory, err)
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

// Sync makes the entries of a directory durable, after files were created, renamed or removed.
func Sync(directory string) error {
	f, err := os.Open(directory)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteFile is like os.WriteFile, but returns once the content is on disk. A new file becomes durable only after Sync
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

// Replace replaces the content of a file atomically. After a crash, and for every reader, the file has either its old
// or its new content. It is durable when Replace returns. The new content is first written to path.tmp. Only one caller
// at a time may use this name, and a failure may leave the file behind.
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
