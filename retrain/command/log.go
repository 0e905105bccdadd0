package command

import (
	"io"
	"os"
)

// maxLog is how large a log gets before it takes the place of the older one, in bytes: a run keeps at most twice as much.
const maxLog = 16 << 20

// keepLog writes what comes into the log of a run until it ends.
func keepLog(r run, from io.Reader) {
	l := &rotating{path: r.file(logFile), most: maxLog}
	_, _ = io.Copy(l, from) // the reader is closed where a process that has left the group goes on writing
	l.close()
}

// rotating is a log of bounded size in two files, of which the older one has the suffix ".1".
type rotating struct {
	path string
	most int64
	file *os.File // nil where none is open
	size int64
}

// Write never fails. What cannot be kept, as on a full disk, is dropped: a command whose output nobody takes would wait for
// ever.
func (l *rotating) Write(text []byte) (int, error) {
	if l.file != nil && l.size+int64(len(text)) > l.most {
		l.close()
		_ = os.Rename(l.path, l.path+".1") // else it is begun anew
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
