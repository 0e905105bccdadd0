package recording

import (
	"io"
	"os"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
)

// openInput opens a file, or a local log as text.
func openInput(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return os.Open(path)
	}
	view, err := locallog.OpenView(path)
	if err != nil {
		return nil, err
	}
	first, _ := view.Ends()
	all := func(string) bool { return true } // the service itself recorded the senders
	return &logText{reader: view.NewReader(first), recent: receive.Recent{Senders: all}}, nil
}

// logSize returns the size in bytes of the log in a directory.
func logSize(path string) (int64, error) {
	view, err := locallog.OpenView(path)
	if err != nil {
		return 0, err
	}
	return view.Size(), nil
}

// logText reads the values of a local log as text. Like the service, it skips messages that were sent again.
type logText struct {
	reader  *locallog.Reader
	recent  receive.Recent
	records []locallog.Record // not read yet
	rest    []byte            // of the current value
}

// Read implements io.Reader.
func (t *logText) Read(b []byte) (int, error) {
	for len(t.rest) == 0 {
		if err := t.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// advance moves to the next value.
func (t *logText) advance() (err error) {
	if len(t.records) == 0 {
		if t.records, err = t.reader.Next(); err != nil {
			return err
		}
	}
	r := &t.records[0]
	t.records = t.records[1:]
	if !t.recent.Seen(&ingest.Message{Headers: r.Headers}) {
		t.rest = r.Value
	}
	return nil
}

// Close implements io.Closer.
func (t *logText) Close() error { return t.reader.Close() }
