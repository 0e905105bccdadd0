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

// input is a file to be read, or the standard input, "-".
type input struct {
	path    string
	monitor telemetry.Monitor // how it is read if it is a monitor.csv
	run     string            // what it is merged with if it is; "" for nothing
}

// inputsOf lists the files to be read: a directory that is no local log stands for the files of monitor.csv in it. policy is that of their
// rows, "" for the one that their header or their path says.
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

// monitorsIn lists the files of monitor.csv in a directory, and in those in it. Their policy is the path of their folder
// in the directory, and the name of the directory itself for those right in it.
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

// isMonitor reports whether a file has one of the names that Stable-Baselines3 gives, perhaps compressed.
func isMonitor(name string) bool {
	name = uncompressed(path.Base(name))
	return name == "monitor.csv" || strings.HasSuffix(name, ".monitor.csv")
}

func uncompressed(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// agentOf returns which of the parallel environments of a run writes a file, such as 3 for 3.monitor.csv; "" for none.
func agentOf(name string) string {
	agent, is := strings.CutSuffix(uncompressed(filepath.Base(name)), ".monitor.csv")
	if !is {
		return ""
	}
	return agent
}

// folderOf returns the name of the folder that a file is in, "" where it is in none.
func folderOf(name string) string {
	whole, err := filepath.Abs(name)
	folder := filepath.Base(filepath.Dir(whole))
	if name == "-" || err != nil || folder == string(filepath.Separator) {
		return ""
	}
	return folder
}

// monitor is a monitor.csv that is being read, with its next row.
type monitor struct {
	*source
	decoder ingest.Decoder
	row     []ingest.Event // one event
	due     int64          // time of the row in Unix nanoseconds, or of one before it if that is later
}

// monitors are the files of monitor.csv of one run.
type monitors []*monitor

// merge reads files of monitor.csv, the rows of all in the order of their times. A row without a time follows the one
// before it in its file.
func (f *fileReader) merge(ctx context.Context, run monitors) error {
	var left monitors // those with a row
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

// nextRow reads the next row that is not refused. At the end of the file there is none.
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
