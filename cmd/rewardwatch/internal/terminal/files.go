package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// WriteWhole writes a temporary file next to path and renames it, so that a reader never sees half of it. After an
// error, path is unchanged.
func WriteWhole(path string, write func(io.Writer) error) error {
	f, err := os.Create(fmt.Sprintf("%s.%d.part", path, os.Getpid()))
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
