package pipeline

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

// limits bound what Propose reads, so that a large or hostile repository takes no longer than a small one.
type limits struct {
	entries int   // files and directories that are looked at
	files   int   // that are read
	source  int64 // bytes of a file
	lock    int64 // bytes of a file that declares packages
	bytes   int64 // of all files
	time    time.Duration
}

var usualLimits = limits{entries: 200_000, files: 2000, source: 1 << 20, lock: 8 << 20, bytes: 64 << 20, time: time.Minute}

// reading reads the files of a repository within limits, and notes what it leaves out.
type reading struct {
	limits
	began      time.Time
	large      []string // files over their limit
	seen, read int
	kept       int64
	stopped    string // why the rest was not read
}

// late reports whether the time is over.
func (r *reading) late() bool { return time.Since(r.began) > r.time }

// workflowsOf is the directory with the workflows of GitHub, of which only versions of Python are taken.
const workflowsOf = ".github"

// walk calls take with each file that could say something of the project.
func (r *reading) walk(repository fs.FS, take func(file string, text []byte)) error {
	return fs.WalkDir(repository, ".", func(file string, d fs.DirEntry, err error) error {
		r.seen++
		switch {
		case err != nil && file == ".":
			return err
		case err != nil: // a directory that cannot be read is none of the project's
			return fs.SkipDir
		case d.IsDir() && file != "." && file != workflowsOf && file != ".devcontainer" && (strings.HasPrefix(d.Name(), ".") || programs.IsForeign(repository, file)):
			return fs.SkipDir
		case file != "." && r.full(file):
			return fs.SkipAll
		case d.Type().IsRegular() && isRead(file):
			r.file(repository, file, d, take)
		}
		return nil
	})
}

// isRead reports whether a file could say something of the project.
func isRead(file string) bool {
	return path.Ext(file) == ".py" || path.Ext(file) == ".ipynb" || isYAMLName(file) || pins.IsDeclaration(file)
}

// full reports whether a limit of the whole repository is reached, and notes which.
func (r *reading) full(file string) bool {
	switch {
	case r.seen > r.entries:
		r.stopped = fmt.Sprintf("the repository contains more than %d files", r.entries)
	case r.read >= r.files:
		r.stopped = fmt.Sprintf("the limit of %d files was reached", r.read)
	case r.kept >= r.bytes:
		r.stopped = fmt.Sprintf("the limit of %d MiB was reached", r.kept>>20)
	case r.late():
		r.stopped = fmt.Sprintf("the time limit of %v was reached", r.time)
	default:
		return false
	}
	r.stopped = "files from " + file + " on, because " + r.stopped
	return true
}

func (r *reading) file(repository fs.FS, file string, d fs.DirEntry, take func(file string, text []byte)) {
	most := r.source
	if pins.IsDeclaration(file) || path.Ext(file) == ".ipynb" { // which has outputs as well
		most = r.lock
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

// unread returns what was not read, for a person.
func (r *reading) unread() []string {
	var out []string
	if n := len(r.large); n > 0 {
		names := strings.Join(r.large[:min(n, 3)], ", ")
		if n > 3 {
			names += fmt.Sprintf(" and %d others", n-3)
		}
		out = append(out, fmt.Sprintf("%s: larger than %d KiB", names, r.source>>10))
	}
	if r.stopped != "" {
		out = append(out, r.stopped)
	}
	return out
}

func isYAMLName(file string) bool {
	return strings.HasSuffix(file, ".yml") || strings.HasSuffix(file, ".yaml")
}
