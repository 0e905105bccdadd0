package locallog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest/datadir"
)

// commitFile contains the last committed offset as text.
const commitFile = "committed"

// Commit records that everything before an offset is part of a checkpoint of the reader. The log may then remove the
// records before the previous commit. It keeps those since then, because the last checkpoint may turn out to be
// damaged. Lower offsets than before are ignored.
func (l *Log) Commit(next int64) error {
	l.committing.Lock()
	defer l.committing.Unlock()
	before, known := l.Committed()
	if known && next <= before {
		return nil
	}
	if err := saveCommit(l.o.Directory, next); err != nil {
		return fmt.Errorf("commit a log offset: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed = next
	if known {
		l.released = max(l.released, before)
		l.poke()
	}
	return nil
}

// Committed returns the last committed offset, which may be from an earlier process, and whether there is one.
func (l *Log) Committed() (next int64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.committed, l.committed >= 0
}

// CommitFile returns the path of the file with the committed offset.
func (l *Log) CommitFile() string { return filepath.Join(l.o.Directory, commitFile) }

func saveCommit(directory string, next int64) error {
	return datadir.Replace(filepath.Join(directory, commitFile), fmt.Appendln(nil, next), 0o640)
}

// loadCommit returns the offset that an earlier process committed, or -1.
func loadCommit(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	if n := len(text); n > 0 && text[n-1] == '\n' {
		if next, err := strconv.ParseInt(string(text[:n-1]), 10, 64); err == nil && next >= 0 {
			return next, nil
		}
	}
	return 0, fmt.Errorf("%s contains %.20q instead of an offset; move it aside: it is only used if the checkpoint of the partition is missing", path, text)
}
