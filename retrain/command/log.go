package command

import (
	"io"
	"os"
)

// maxLog is the size in bytes at which a log is rotated: a run keeps at most twice as much.
const maxLog = 16 << 20

// keepLog copies output to the log of a run until it ends.
func keepLog(r run, from io.Reader) {
	l := &rotating{path: r.file(logFile), most: maxLog}
	_, _ = io.Copy(l, from) // the reader is closed if a process that has left the group keeps writing
	l.close()
}

// rotating is a log of bounded size in two files. The older one has the suffix ".1".
type rotating struct {
	path string
	most int64
	file *os.File // nil if none is open
	size int64
}

// Write never fails. It drops output that cannot be written, as on a full disk: otherwise the command would block
// forever.
func (l *rotating) Write(text []byte) (int, error) {
	if l.file != nil && l.size+int64(len(text)) > l.most {
		l.close()
		_ = os.Rename(l.path, l.path+".1") // otherwise the old log is truncated
	}
	if l.file == nil {
		l.file, _ = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		l.size = 0
	}
	if l.file != nil {
		n, _ := l.file.Write(text)
		l.size += int64(n)
	}
	return len(text), nil
}

func (l *rotating) close() {
	if l.file != nil {
		_ = l.file.Close() // what could be written is written
		l.file = nil
	}
}
