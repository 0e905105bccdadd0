// Package reading reads the files of a repository that may describe its project, within limits.
package reading

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/programs"
)

// Limits bound how much is read, so that a large or hostile repository does not take longer than the limits allow.
type Limits struct {
	Entries int   // files and directories visited
	Files   int   // files read
	Source  int64 // size of a source file, in bytes
	Lock    int64 // size of a file that declares packages or of a notebook, in bytes
	Bytes   int64 // total size of all files read, in bytes
	Time    time.Duration
}

// Usual are the limits for a proposal.
var Usual = Limits{Entries: 200_000, Files: 2000, Source: 1 << 20, Lock: 8 << 20, Bytes: 64 << 20, Time: time.Minute}

// Reader reads the files of a repository within limits, and records what it skips.
type Reader struct {
	Limits
	began      time.Time
	large      []string // files over their size limit
	seen, read int
	kept       int64
	stopped    string // why the remaining files were not read
}

// New returns a reader whose time limit begins now.
func New(l Limits) *Reader { return &Reader{Limits: l, began: time.Now()} }

// Late reports whether the time limit is exceeded.
func (r *Reader) Late() bool { return time.Since(r.began) > r.Time }

// WorkflowsOf is the directory with GitHub workflows, from which only Python versions are read.
const WorkflowsOf = ".github"

// Walk calls take with each file that may describe the project.
func (r *Reader) Walk(repository fs.FS, take func(file string, text []byte)) error {
	return fs.WalkDir(repository, ".", func(file string, d fs.DirEntry, err error) error {
		r.seen++
		switch {
		case err != nil && file == ".":
			return err
		case err != nil: // an unreadable directory is not part of the project
			return fs.SkipDir
		case d.IsDir() && file != "." && file != WorkflowsOf && file != ".devcontainer" && (strings.HasPrefix(d.Name(), ".") || programs.IsForeign(repository, file)):
			return fs.SkipDir
		case file != "." && r.full(file):
			return fs.SkipAll
		case d.Type().IsRegular() && isRead(file):
			r.file(repository, file, d, take)
		}
		return nil
	})
}

// isRead reports whether a file may describe the project.
func isRead(file string) bool {
	return path.Ext(file) == ".py" || path.Ext(file) == ".ipynb" || IsYAML(file) || pins.IsDeclaration(file)
}

// full reports whether a limit for the whole repository is reached, and records which.
func (r *Reader) full(file string) bool {
	switch {
	case r.seen > r.Entries:
		r.stopped = fmt.Sprintf("the repository contains more than %d files", r.Entries)
	case r.read >= r.Files:
		r.stopped = fmt.Sprintf("the limit of %d files was reached", r.read)
	case r.kept >= r.Bytes:
		r.stopped = fmt.Sprintf("the limit of %d MiB was reached", r.kept>>20)
	case r.Late():
		r.stopped = fmt.Sprintf("the time limit of %v was reached", r.Time)
	default:
		return false
	}
	r.stopped = "files from " + file + " on, because " + r.stopped
	return true
}

func (r *Reader) file(repository fs.FS, file string, d fs.DirEntry, take func(file string, text []byte)) {
	most := r.Source
	if pins.IsDeclaration(file) || path.Ext(file) == ".ipynb" { // notebooks contain outputs as well
		most = r.Lock
	}
	info, err := d.Info()
	if err != nil {
		return
	}
	if info.Size() > most {
		r.large = append(r.large, file)
		return
	}
	if text, err := fs.ReadFile(repository, file); err == nil {
		r.read++
		r.kept += int64(len(text))
		take(file, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	}
}

// Unread describes the files that were not read, for output.
func (r *Reader) Unread() []string {
	var out []string
	if n := len(r.large); n > 0 {
		names := strings.Join(r.large[:min(n, 3)], ", ")
		if n > 3 {
			names += fmt.Sprintf(" and %d others", n-3)
		}
		out = append(out, fmt.Sprintf("%s: larger than %d KiB", names, r.Source>>10))
	}
	if r.stopped != "" {
		out = append(out, r.stopped)
	}
	return out
}

// IsYAML reports whether a file has the name of a YAML file.
func IsYAML(file string) bool {
	return strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml")
}
