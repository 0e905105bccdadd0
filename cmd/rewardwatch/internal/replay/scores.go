package replay

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// scoresFile is the file of --scores. It is created with the first score, or at the end, so that an input that cannot
// be read leaves an existing file unchanged.
type scoresFile struct {
	name string
	file *os.File
	text *bufio.Writer
}

// newScoresFile returns an error if the directory is missing, so that this is reported now, not after hours of reading.
func newScoresFile(name string) (*scoresFile, error) {
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return nil, fmt.Errorf("write scores: %w", err)
	}
	return &scoresFile{name: name}, nil
}

func (f *scoresFile) create() (err error) {
	if f.file != nil {
		return nil
	}
	if f.file, err = os.Create(f.name); err != nil {
		return fmt.Errorf("write scores: %w", err)
	}
	f.text = bufio.NewWriter(f.file)
	return nil
}

// Write adds to the file.
func (f *scoresFile) Write(b []byte) (int, error) {
	if err := f.create(); err != nil {
		return 0, err
	}
	return f.text.Write(b)
}

// finish writes the remaining text.
func (f *scoresFile) finish() error {
	if err := f.create(); err != nil {
		return err
	}
	return errors.Join(f.text.Flush(), f.file.Close())
}
