// Package recording reads existing telemetry: files, topics and ranges of their offsets, without a consumer group.
package recording

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
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// FilesConfig configures how files are read.
type FilesConfig struct {
	Policy    string        // policy of the rows of monitor.csv files; "" for the env_id in their header
	Format    ingest.Format // of the lines of files that are no monitor.csv; nil for telemetry version 1
	MaxRecord int           // longest record in bytes; 0 for DefaultMaxRecord
	Stdin     io.Reader     // what the path "-" reads; nil for os.Stdin

	// Refuse, if not nil, is called for every refused record, with at most its first MaxRecord+1 bytes, which are valid
	// until it returns.
	Refuse func(e *ingest.RecordError, raw []byte)
	// Accepted, if not nil, is called for every event before it is processed. record is its line of telemetry version 1,
	// or nil where it is of another format. Both arguments are valid until it returns.
	Accepted func(e *ingest.Event, record []byte)
	// Progress, if not nil, is called about every 64 KiB with the number of raw file bytes read and their total, which
	// is 0 if unknown.
	Progress func(bytesRead, bytesTotal int64)
}

// Counts is the outcome of the records read.
type Counts struct {
	Read     int64 // accepted and refused records
	LeftOut  int64 // others, which the mapping does not take
	Accepted int64
	Refused  map[ingest.Reason]int64
}

const (
	readBatch  = 256      // events passed to the Processor at once
	keptEvents = 4096     // kept for reuse: one message may hold many thousand events, and the next ones one each
	fileBuffer = 64 << 10 // bytes per read
	// maxWindow limits how far a zstd stream may refer back: `zstd --long` needs as much, and hostile streams are
	// bounded.
	maxWindow = 128 << 20
)

// ReadFiles reads telemetry files in order, as one input, and passes the events to p in batches. A file is NDJSON (one
// event per line) or a monitor.csv of Stable-Baselines3, plain or compressed with gzip or zstd; its content decides,
// not its name. "-" is the standard input. Blank lines are not records, and a byte order mark at the beginning of a
// file is skipped.
//
// If an input breaks off, ReadFiles processes everything before that, refuses the rest of the broken line, and returns
// an error that names the file and the record. It does not read later files. ReadFiles does not call p.Idle.
func ReadFiles(ctx context.Context, cfg FilesConfig, paths []string, p ingest.Processor) (Counts, error) {
	if cfg.MaxRecord == 0 {
		cfg.MaxRecord = ingest.DefaultMaxRecord
	}
	if cfg.Format == nil {
		cfg.Format = telemetry.V1{}
	}
	f := &fileReader{cfg: cfg, processor: p, batch: make([]ingest.Event, 0, readBatch)}
	f.counts.Refused, f.refused = map[ingest.Reason]int64{}, f.refuse
	var err error
	if f.bytesTotal, err = totalSize(paths); err != nil {
		return f.counts, err
	}
	for _, path := range paths {
		if err := f.file(ctx, path); err != nil {
			return f.counts, err
		}
	}
	return f.counts, f.Flush(ctx)
}

// totalSize returns the total size of the files, so that a missing one is reported before hours of reading. It is 0 if
// one of them has no size.
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
	processor ingest.Processor
	decoder   ingest.Decoder // of the file
	json      ingest.Decoder // of all files of NDJSON, nil before the first one
	message   ingest.Message // the line being decoded
	refused   func(*ingest.RecordError, []byte)
	batch     []ingest.Event
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
	begun := false // a line that is not blank was seen
	for first := true; ; first = false {
		line, size, err := lines.next()
		if first {
			trimmed := bytes.TrimPrefix(line, byteOrderMark)
			line, size = trimmed, size-int64(len(line)-len(trimmed))
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			f.refuseRest(ctx, line, size)
			return f.brokenOff(ctx, name, err)
		}
		if size == int64(len(line)) && len(bytes.TrimLeft(line, " \t\r")) == 0 {
			continue
		}
		if !begun {
			if err := f.begin(ctx, line); err != nil {
				return err
			}
			begun = true
		}
		f.line(line, size)
		if len(f.batch) >= readBatch {
			if err := f.Flush(ctx); err != nil {
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
		err = io.ErrUnexpectedEOF // of a header that ends early; io.EOF would mean success
	}
	err = fmt.Errorf("reading %s: broken off after %d records of the input: %w", name, f.counts.Read, err)
	return errors.Join(err, f.Flush(ctx))
}

// refuseRest refuses the beginning of a line whose end could not be read: it may look like a complete record.
func (f *fileReader) refuseRest(ctx context.Context, line []byte, size int64) {
	if size == 0 || ctx.Err() != nil {
		return
	}
	f.refuse(&ingest.RecordError{Pos: f.next(), Reason: ingest.ReasonTruncated, Size: size, Msg: "the input broke off"}, line)
}

func (f *fileReader) Flush(ctx context.Context) error {
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

// next returns the position of the next record.
func (f *fileReader) next() ingest.Position {
	return ingest.Position{Offset: f.counts.Read + f.counts.LeftOut}
}

func (f *fileReader) refuse(e *ingest.RecordError, raw []byte) {
	f.counts.Read++
	f.counts.Refused[e.Reason]++
	if f.cfg.Refuse != nil {
		f.cfg.Refuse(e, raw)
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// line processes one line, of which line may hold only the beginning.
func (f *fileReader) line(line []byte, size int64) {
	if size > int64(f.cfg.MaxRecord) {
		f.refuse(ingest.TooLarge(f.next(), size, f.cfg.MaxRecord), line)
		return
	}
	before := len(f.batch)
	f.message = ingest.Message{Pos: f.next(), Value: line}
	f.batch = f.decoder.Decode(f.batch, &f.message, f.refused)
	accepted := f.batch[before:]
	f.counts.Read += int64(len(accepted))
	f.counts.Accepted += int64(len(accepted))
	if f.cfg.Accepted == nil {
		return
	}
	if _, isV1 := f.cfg.Format.(telemetry.V1); f.decoder != f.json || !isV1 {
		line = nil
	}
	for i := range accepted {
		f.cfg.Accepted(&accepted[i], line)
	}
}

// begin selects the decoder of a file from its first line. It first processes the events of other decoders, which
// become invalid when those are reset.
func (f *fileReader) begin(ctx context.Context, first []byte) error {
	next := f.decoderOf(first)
	if next == f.decoder {
		return nil
	}
	err := f.Flush(ctx)
	f.decoder = next
	return err
}

// decoderOf returns the decoder of a file, given its first line that is not blank.
func (f *fileReader) decoderOf(first []byte) ingest.Decoder {
	o := ingest.DecoderOptions{MaxRecord: f.cfg.MaxRecord, LeftOut: func(ingest.Position) { f.counts.LeftOut++ }}
	if first[0] == '#' {
		return telemetry.Monitor{Policy: f.cfg.Policy}.NewDecoder(o)
	}
	if f.json == nil {
		f.json = f.cfg.Format.NewDecoder(o)
	}
	return f.json
}

// watchedReader stops with the context and reports progress.
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

// decompress detects the compression of src from its first bytes.
func decompress(src *bufio.Reader) (io.ReadCloser, error) {
	magic, _ := src.Peek(4) // the first read returns the error again
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

// isSkippableFrame detects the frames that pzstd puts before those with data.
func isSkippableFrame(magic []byte) bool {
	return len(magic) == 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

// lineReader splits a stream into lines and holds at most limit+1 bytes of one.
type lineReader struct {
	src   *bufio.Reader
	limit int
	long  []byte // the beginning of a line longer than the buffer of src
}

// next returns the next line without its newline, or limit+1 bytes of a longer one, valid until the next call. size is
// that of the whole line. A last line need not end in a newline. io.EOF comes without a line; any other error comes
// with the part read of the line that it broke.
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
