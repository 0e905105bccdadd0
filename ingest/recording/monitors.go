package recording

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// input is a file to read, or "-" for the standard input.
type input struct {
	path    string
	monitor telemetry.Monitor // format if it is a monitor.csv
	run     string            // inputs with the same run are merged if they are monitor.csv files; "" for none
}

// inputsOf lists the files to read. A directory that is not a local log stands for the monitor.csv files in it. policy
// is the policy of their rows; if it is "", the header or the path determines the policy.
func inputsOf(paths []string, policy string) ([]input, error) {
	var inputs []input
	for _, name := range paths {
		if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() || locallog.IsLog(name) {
			in := input{path: name, monitor: telemetry.Monitor{Policy: policy, Unnamed: folderOf(name), Agent: agentOf(name)}}
			if in.monitor.Agent != "" {
				in.run = filepath.Dir(name)
			}
			inputs = append(inputs, in)
			continue
		}
		found, err := monitorsIn(name, policy)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, nil
}

// monitorsIn lists the monitor.csv files in a directory and its subdirectories. Their policy is the relative path of
// their folder, or the name of the directory for files directly in it.
func monitorsIn(directory, policy string) (inputs []input, err error) {
	err = fs.WalkDir(os.DirFS(directory), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isMonitor(name) {
			return err
		}
		file, folder := filepath.Join(directory, filepath.FromSlash(name)), path.Dir(name)
		if folder == "." {
			folder = folderOf(file)
		}
		inputs = append(inputs, input{file, telemetry.Monitor{Policy: cmp.Or(policy, folder), Env: true, Agent: agentOf(file)}, directory})
		return nil
	})
	if err == nil && len(inputs) == 0 {
		err = fmt.Errorf("%s is a directory that contains neither a local log nor a file named monitor.csv or *.monitor.csv", directory)
	}
	return inputs, err
}

// isMonitor reports whether a file has a name that Stable-Baselines3 uses, possibly with a suffix for compression.
func isMonitor(name string) bool {
	name = uncompressed(path.Base(name))
	return name == "monitor.csv" || strings.HasSuffix(name, ".monitor.csv")
}

func uncompressed(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// agentOf returns the name of the parallel environment that writes a file, such as 3 for 3.monitor.csv, or "".
func agentOf(name string) string {
	agent, is := strings.CutSuffix(uncompressed(filepath.Base(name)), ".monitor.csv")
	if !is {
		return ""
	}
	return agent
}

// folderOf returns the name of the folder that contains a file, or "" if there is none.
func folderOf(name string) string {
	whole, err := filepath.Abs(name)
	folder := filepath.Base(filepath.Dir(whole))
	if name == "-" || err != nil || folder == string(filepath.Separator) {
		return ""
	}
	return folder
}

// monitor is an open monitor.csv with its next row.
type monitor struct {
	*source
	decoder ingest.Decoder
	row     []ingest.Event // at most one event
	due     int64          // latest time of the rows so far, in Unix nanoseconds
}

// monitors are the monitor.csv files of one run.
type monitors []*monitor

// merge reads monitor.csv files, and merges their rows by time. A row without a time follows the previous row of its
// file.
func (f *fileReader) merge(ctx context.Context, run monitors) error {
	var left monitors // files that have a row
	for _, m := range run {
		if err := f.nextRow(ctx, m); err != nil {
			return err
		}
		if len(m.row) > 0 {
			left = append(left, m)
		}
	}
	for len(left) > 0 {
		first := slices.MinFunc(left, func(a, b *monitor) int { return cmp.Compare(a.due, b.due) })
		f.accept(&first.row[0])
		if err := f.flushFull(ctx); err != nil {
			return err
		}
		if err := f.nextRow(ctx, first); err != nil {
			return err
		}
		if len(first.row) == 0 {
			left = slices.DeleteFunc(left, func(m *monitor) bool { return m == first })
		}
	}
	return nil
}

// accept adds a row to the batch.
func (f *fileReader) accept(row *ingest.Event) {
	row.Pos = f.next()
	f.batch = append(f.batch, *row)
	f.counts.Read++
	f.counts.Accepted++
	if f.cfg.Accepted != nil {
		f.cfg.Accepted(row, nil)
	}
}

// nextRow reads the next row that is not refused. At the end of the file, m.row is empty.
func (f *fileReader) nextRow(ctx context.Context, m *monitor) error {
	m.row = m.row[:0]
	for !m.done && len(m.row) == 0 {
		if m.size > int64(f.cfg.MaxRecord) {
			f.refuse(ingest.TooLarge(f.next(), m.size, f.cfg.MaxRecord), m.line)
		} else {
			f.message = ingest.Message{Pos: f.next(), Value: m.line}
			m.row = m.decoder.Decode(m.row, &f.message, f.refused)
		}
		if err := f.advance(ctx, m.source); err != nil {
			return err
		}
	}
	if len(m.row) > 0 {
		m.due = max(m.due, m.row[0].TS)
	}
	return nil
}
