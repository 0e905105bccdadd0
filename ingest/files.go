package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// FilesConfig says how files are read.
type FilesConfig struct {
	Policy    string    // policy of the rows of monitor.csv files; "" for the env_id of their header
	MaxRecord int       // longest record in bytes; 0 for DefaultMaxRecord
	Stdin     io.Reader // what the path "-" reads; os.Stdin where nil

	// Refuse is told of every refused record, with at most its first MaxRecord+1 bytes, which are valid until it
	// returns. It may be nil.
	Refuse func(e *RecordError, raw []byte)
	// Accepted is told of every accepted record, with its text, valid until it returns as the event is: a line of NDJSON,
	// or nil for a row of a monitor.csv. It is called before the event is processed. It may be nil.
	Accepted func(e *Event, record []byte)
	// Progress is told how many bytes of the files, as they lie there, have been read, and their total, 0 where it is
	// not known. It is called about every 64 KiB and may be nil.
	Progress func(bytesRead, bytesTotal int64)
}

// Counts says what became of the records read.
type Counts struct {
	Read     int64 // Accepted and all that were refused
	Accepted int64
	Refused  map[Reason]int64
}

const (
	fileBatch  = 256      // events given to the Processor at once
	fileBuffer = 64 << 10 // bytes read at once
	// maxWindow is how far a zstd stream may refer back: what `zstd --long` needs, and a bound for hostile streams.
	maxWindow = 128 << 20
)

// ReadFiles reads files of telemetry one after the other, as one input, and gives the events to p in batches. A file is
// NDJSON (an event a line) or a monitor.csv of Stable-Baselines3, plain or compressed by gzip or zstd: its content
// tells, not its name. "-" is the standard input. Blank lines are no records, and a byte order mark at the beginning of
// a file is skipped.
//
// Input that breaks off is an error, which names the file and the record, after everything before it has been processed
// and the rest of the broken line was refused; the files behind it are not read then. ReadFiles does not call p.Idle.
func ReadFiles(ctx context.Context, cfg FilesConfig, paths []string, p Processor) (Counts, error) {
	if cfg.MaxRecord == 0 {
		cfg.MaxRecord = DefaultMaxRecord
	}
	f := &fileReader{cfg: cfg, processor: p, decoder: NewDecoder(cfg.MaxRecord), batch: make([]Event, 0, fileBatch)}
	f.counts.Refused = map[Reason]int64{}
	var err error
	if f.bytesTotal, err = totalSize(paths); err != nil {
		return f.counts, err
	}
	for _, path := range paths {
		if err := f.file(ctx, path); err != nil {
			return f.counts, err
		}
	}
	return f.counts, f.flush(ctx)
}

// totalSize adds up the files, so that a missing one is found before hours of reading. It is 0 where one of them has no
// size.
func totalSize(paths []string) (total int64, err error) {
	known := true
	for _, path := range paths {
		if path == "-" {
			known = false
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, fmt.Errorf("reading telemetry: %w", err)
		}
		if info.IsDir() {
			return 0, fmt.Errorf("reading telemetry: %s is a directory", path)
		}
		known = known && info.Mode().IsRegular()
		total += info.Size()
	}
	if !known {
		return 0, nil
	}
	return total, nil
}

// fileReader is the state of one ReadFiles.
type fileReader struct {
	cfg       FilesConfig
	processor Processor
	decoder   *Decoder
	batch     []Event
	counts    Counts

	bytesRead, bytesTotal int64
}

func (f *fileReader) file(ctx context.Context, path string) error {
	if path == "-" {
		if f.cfg.Stdin != nil {
			return f.stream(ctx, "standard input", f.cfg.Stdin)
		}
		return f.stream(ctx, "standard input", os.Stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading telemetry: %w", err)
	}
	defer file.Close()
	return f.stream(ctx, path, file)
}

// stream reads one file.
func (f *fileReader) stream(ctx context.Context, name string, src io.Reader) error {
	plain, err := decompress(bufio.NewReaderSize(&watchedReader{ctx, src, f}, fileBuffer))
	if err != nil {
		return f.brokenOff(ctx, name, err)
	}
	defer plain.Close()
	lines := lineReader{src: bufio.NewReaderSize(plain, fileBuffer), limit: f.cfg.MaxRecord}
	format := fileFormat{monitor: monitor{fixedPolicy: f.cfg.Policy}}
	for {
		line, size, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			f.refuseRest(ctx, line, size)
			return f.brokenOff(ctx, name, err)
		}
		f.line(&format, line, size)
		if len(f.batch) == fileBatch {
			if err := f.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// brokenOff processes what was read before the error.
func (f *fileReader) brokenOff(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("reading %s: %w", name, ctx.Err())
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // of a header that ends early; io.EOF would say that all is well
	}
	err = fmt.Errorf("reading %s: broken off after %d records of the input: %w", name, f.counts.Read, err)
	return errors.Join(err, f.flush(ctx))
}

// refuseRest refuses the beginning of a line whose end could not be read: it may look like a whole record.
func (f *fileReader) refuseRest(ctx context.Context, line []byte, size int64) {
	if size == 0 || ctx.Err() != nil {
		return
	}
	f.refuse(&RecordError{Pos: f.next(), Reason: ReasonTruncated, Size: size, Msg: "the input broke off"}, line)
}

func (f *fileReader) flush(ctx context.Context) error {
	if len(f.batch) == 0 {
		return nil
	}
	if err := f.processor.Process(ctx, f.batch); err != nil {
		return fmt.Errorf("processing record %d and those before it: %w", f.batch[len(f.batch)-1].Pos.Offset, err)
	}
	f.batch = f.batch[:0]
	f.decoder.Reset()
	return nil
}

// next counts one more record and gives its place.
func (f *fileReader) next() Position {
	f.counts.Read++
	return Position{Offset: f.counts.Read - 1}
}

// accept counts the event that is the last of the batch.
func (f *fileReader) accept(record []byte) {
	f.counts.Accepted++
	if f.cfg.Accepted != nil {
		f.cfg.Accepted(&f.batch[len(f.batch)-1], record)
	}
}

func (f *fileReader) refuse(e *RecordError, raw []byte) {
	f.counts.Refused[e.Reason]++
	if f.cfg.Refuse != nil {
		f.cfg.Refuse(e, raw)
	}
}

// fileFormat is how the lines of one file are read; its first line that is not blank decides.
type fileFormat struct {
	started   bool // a line was seen
	decided   bool
	isMonitor bool
	monitor   monitor
}

// line reads one line, of which line may hold only the beginning.
func (f *fileReader) line(format *fileFormat, line []byte, size int64) {
	if !format.started {
		format.started = true
		trimmed := bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		size -= int64(len(line) - len(trimmed))
		line = trimmed
	}
	if size == int64(len(line)) && blank(line) {
		return
	}
	if !format.decided {
		format.decided, format.isMonitor = true, line[0] == '#'
	}
	switch {
	case size > int64(f.cfg.MaxRecord):
		f.refuse(tooLarge(f.next(), size, f.cfg.MaxRecord), line)
	case format.isMonitor:
		f.monitorLine(&format.monitor, line)
	default:
		before := len(f.batch)
		f.batch = f.decoder.decodeRecord(f.batch, line, f.next(), f.refuse)
		if len(f.batch) > before {
			f.accept(line)
		}
	}
}

// tooLarge refuses a record that was not held in memory as a whole.
func tooLarge(pos Position, size int64, limit int) *RecordError {
	return &RecordError{
		Pos: pos, Reason: ReasonTooLarge, Size: size, Msg: fmt.Sprintf("%d bytes, and the limit is %d", size, limit),
	}
}

func (f *fileReader) monitorLine(m *monitor, line []byte) {
	line = bytes.TrimRight(line, "\r")
	heading, ok := m.heading(f.decoder, line)
	if heading && ok {
		return
	}
	pos := f.next()
	if !heading {
		var ev *Event
		f.batch, ev = nextEvent(f.batch, pos)
		if m.row(f.decoder, ev, line) {
			f.accept(nil)
			return
		}
		f.batch = f.batch[:len(f.batch)-1]
	}
	f.refuse(&RecordError{
		Pos: pos, Reason: f.decoder.fault.reason, Column: f.decoder.fault.at + 1, Size: int64(len(line)),
		Msg: f.decoder.fault.msg,
	}, line)
}

// watchedReader ends with the context and reports progress.
type watchedReader struct {
	ctx context.Context
	src io.Reader
	f   *fileReader
}

func (w *watchedReader) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.src.Read(b)
	w.f.bytesRead += int64(n)
	if w.f.cfg.Progress != nil {
		w.f.cfg.Progress(w.f.bytesRead, w.f.bytesTotal)
	}
	return n, err
}

// decompress finds out by its first bytes how src is compressed.
func decompress(src *bufio.Reader) (io.ReadCloser, error) {
	magic, _ := src.Peek(4) // an error comes again with the first read
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(src)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), isSkippableFrame(magic):
		d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(src), nil
}

// isSkippableFrame knows the frames that pzstd puts before those with data.
func isSkippableFrame(magic []byte) bool {
	return len(magic) == 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

// lineReader cuts a stream into lines and holds no more than limit+1 bytes of one.
type lineReader struct {
	src   *bufio.Reader
	limit int
	long  []byte // the beginning of a line longer than the buffer of src
}

// next gives the next line without its newline, or limit+1 bytes of a longer one, valid until the next call, and the
// size that it has as a whole. A last line need not end in a newline. io.EOF comes without a line; another error
// comes with what was read of the line that it broke.
func (l *lineReader) next() (line []byte, size int64, err error) {
	l.long = l.long[:0]
	for {
		part, err := l.src.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		size += int64(len(part))
		full := errors.Is(err, bufio.ErrBufferFull)
		if errors.Is(err, io.EOF) && size > 0 {
			err = nil
		}
		if !full && size == int64(len(part)) {
			return part[:min(len(part), l.limit+1)], size, err
		}
		l.long = append(l.long, part[:min(len(part), l.limit+1-len(l.long))]...)
		if !full {
			return l.long, size, err
		}
	}
}
