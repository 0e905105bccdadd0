package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxSize is the maximum size of a file in bytes.
const MaxSize = 1 << 20

var errNotRegular = errors.New("it is not a regular file")

// Load returns the text of a regular file of at most MaxSize bytes. It never waits for a pipe without a writer, and
// never reads from a device, which may be endless.
func Load(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() { // before opening it, which may have side effects on a device
		return nil, errNotRegular
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // it was replaced since
		return nil, errNotRegular
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("it is %d bytes long, but the limit is %d", max(info.Size(), MaxSize+1), MaxSize)
	}
	return text, nil
}
