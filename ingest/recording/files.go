// Package recording reads recorded telemetry without a consumer group: files, topics, and ranges of their offsets.
package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// FilesConfig configures ReadFiles.
type FilesConfig struct {
	Policy    string        // policy of the rows of monitor.csv files; "" for the one that ReadFiles determines
	Format    ingest.Format // format of lines in files other than monitor.csv; nil for telemetry version 1
	Topics    []FileTopic   // topics whose files are merged by time; nil if all files have the same Format
	MaxRecord int           // maximum size of a record in bytes; 0 for DefaultMaxRecord
	Stdin     io.Reader     // input for the path "-"; nil for os.Stdin

	// Refuse, if not nil, is called for every refused record, with at most its first MaxRecord+1 bytes. For an invalid
	// record in a CSV file, raw is its row as JSON. raw is valid until Refuse returns.
	Refuse func(e *ingest.RecordError, raw []byte)
	// Accepted, if not nil, is called for every event before it is processed. record is its line in telemetry version 1,
	// which for a CSV file is its row as JSON, or nil if it has another format. Both arguments are valid until Accepted
	// returns.
	Accepted func(e *ingest.Event, record []byte)
	// Progress, if not nil, is called about every 64 KiB with the number of raw file bytes read and their total, which is
	// 0 if unknown.
	Progress func(bytesRead, bytesTotal int64)
}

// FileTopic is a topic whose records are in files.
type FileTopic struct {
	Index  int           // index of the topic in the positions of its events
	Format ingest.Format // format of the lines of its files
	Has    func(path string) bool
}

// Counts contains the numbers of records read.
type Counts struct {
	Read     int64 // accepted and refused
	LeftOut  int64 // skipped by the mapping; not included in Read
	Accepted int64
	Refused  map[ingest.Reason]int64
}

const (
	readBatch  = 256      // number of events passed to the Processor at once
	keptEvents = 4096     // maximum size of a batch kept for reuse: some messages have thousands of events, most have one
	fileBuffer = 64 << 10 // bytes per read
	// maxWindow is the maximum window size of a zstd stream. It is large enough for `zstd --long`, and limits the memory
	// that hostile streams can use.
	maxWindow = 128 << 20
)

// ReadFiles reads telemetry files in order, as one input, and passes the events to p in batches. Files of several
// topics are merged as in Merge. A file is NDJSON (one event per line), CSV with a header (one event per row), an Avro
// object container file, or a monitor.csv of Stable-Baselines3. It may be compressed with gzip or zstd. The content
// determines the format, not the name. "-" is the standard input. Blank lines are not records, and a byte order mark at
// the beginning of a file is skipped. The directory of a local log is read like a file with its records, except batches
// that were sent again.
//
// The policy of a monitor.csv is the env_id of its header or, if there is none, the name of its folder. In any other
// directory, all files with the names that Stable-Baselines3 uses are read. Their policy is the relative path of their
// folder, and their env is the env_id. Files of a directory are merged by the times of their rows. So are consecutive
// files named *.monitor.csv in the same folder, because the parallel environments of a run write them.
//
// If reading an input fails, ReadFiles processes everything before that point, refuses the incomplete line, and returns
// an error with the file and the record. It does not read later files. ReadFiles does not call p.Idle.
func ReadFiles(ctx context.Context, cfg FilesConfig, paths []string, p ingest.Processor) (Counts, error) {
	if cfg.MaxRecord == 0 {
		cfg.MaxRecord = ingest.DefaultMaxRecord
	}
	if cfg.Format == nil {
		cfg.Format = telemetry.V1{}
	}
	inputs, err := inputsOf(paths, cfg.Policy)
	total := int64(0)
	if err == nil {
		total, err = totalSize(inputs)
	}
	if err != nil {
		return Counts{Refused: map[ingest.Reason]int64{}}, fmt.Errorf("read telemetry: %w", err)
	}
	if cfg.Topics == nil {
		return readInputs(ctx, cfg, 0, inputs, total, p)
	}
	var sources []Source
	done := make([]int64, len(cfg.Topics)) // bytes
	for i, t := range cfg.Topics {
		of := cfg
		of.Format = t.Format
		if cfg.Progress != nil {
			of.Progress = func(read, _ int64) {
				done[i] = read
				cfg.Progress(sum(done), total)
			}
		}
		if own := slices.DeleteFunc(slices.Clone(inputs), func(in input) bool { return !t.Has(in.path) }); len(own) > 0 {
			sources = append(sources, func(ctx context.Context, p ingest.Processor) (Counts, error) {
				return readInputs(ctx, of, t.Index, own, total, p)
			})
		}
	}
	return Merge(ctx, sources, p)
}

func sum(all []int64) (total int64) {
	for _, n := range all {
		total += n
	}
	return total
}

// readInputs reads the files of one topic. total is the size of the files of all topics.
func readInputs(ctx context.Context, cfg FilesConfig, topic int, inputs []input, total int64, p ingest.Processor) (Counts, error) {
	f := &fileReader{cfg: cfg, processor: p, partition: ingest.PartitionOf(topic, 0), bytesTotal: total, batch: make([]ingest.Event, 0, readBatch)}
	f.counts.Refused, f.refused = map[ingest.Reason]int64{}, f.refuse
	if err := f.read(ctx, inputs); err != nil {
		return f.counts, err
	}
	return f.counts, f.Flush(ctx)
}

// totalSize returns the total size of the files. It reports a missing file before hours of reading. The size is 0 if
// that of one of them is unknown.
func totalSize(inputs []input) (total int64, err error) {
	known := true
	for _, in := range inputs {
		if in.path == "-" {
			known = false
			continue
		}
		info, err := os.Stat(in.path)
		if err != nil {
			return 0, err
		}
		size := info.Size()
		if info.IsDir() {
			if size, err = logSize(in.path); err != nil {
				return 0, err
			}
		}
		known = known && (info.IsDir() || info.Mode().IsRegular())
		total += size
	}
	if !known {
		return 0, nil
	}
	return total, nil
}

// fileReader is the state of reading the files of one topic.
type fileReader struct {
	cfg       FilesConfig
	processor ingest.Processor
	partition ingest.Partition
	decoder   ingest.Decoder // for all files except monitor.csv; nil before the first one
	message   ingest.Message // line being decoded
	refused   func(*ingest.RecordError, []byte)
	batch     []ingest.Event
	counts    Counts

	bytesRead, bytesTotal int64
}

// read reads the inputs in order. Consecutive monitor.csv files of the same run are merged.
func (f *fileReader) read(ctx context.Context, inputs []input) error {
	for len(inputs) > 0 {
		n := 1
		for n < len(inputs) && inputs[0].run != "" && inputs[n].run == inputs[0].run {
			n++
		}
		if err := f.readRun(ctx, inputs[:n]); err != nil {
			return err
		}
		inputs = inputs[n:]
	}
	return nil
}

// readRun reads the inputs of one run.
func (f *fileReader) readRun(ctx context.Context, inputs []input) error {
	var run monitors
	for _, in := range inputs {
		s, err := f.open(ctx, in)
		if err != nil {
			return errors.Join(f.merge(ctx, run), f.Flush(ctx), err)
		}
		defer s.Close() // at the end, because the rows of the files are merged
		if s.done || s.line[0] != '#' {
			err = f.lines(ctx, s)
		} else {
			run = append(run, &monitor{source: s, decoder: in.monitor.NewDecoder(f.decoderOptions())})
		}
		if err != nil {
			return err
		}
	}
	return f.merge(ctx, run)
}

// lines reads a file that is not a monitor.csv.
func (f *fileReader) lines(ctx context.Context, s *source) error {
	if f.decoder == nil {
		f.decoder = f.cfg.Format.NewDecoder(f.decoderOptions())
	}
	for !s.done {
		f.line(s.line, s.size)
		if err := f.flushFull(ctx); err != nil {
			return err
		}
		if err := f.advance(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *fileReader) decoderOptions() ingest.DecoderOptions {
	return ingest.DecoderOptions{MaxRecord: f.cfg.MaxRecord, LeftOut: func(ingest.Position) { f.counts.LeftOut++ }}
}

// flushFull flushes the batch if it is full.
func (f *fileReader) flushFull(ctx context.Context) error {
	if len(f.batch) < readBatch {
		return nil
	}
	return f.Flush(ctx)
}

func (f *fileReader) Flush(ctx context.Context) error {
	if len(f.batch) == 0 {
		return nil
	}
	if err := f.processor.Process(ctx, f.batch); err != nil {
		return fmt.Errorf("process record %d and those before it: %w", f.batch[len(f.batch)-1].Pos.Offset, err)
	}
	f.batch = f.batch[:0]
	if f.decoder != nil {
		f.decoder.Reset()
	}
	return nil
}

// next returns the position of the next record.
func (f *fileReader) next() ingest.Position {
	return ingest.Position{Partition: f.partition, Offset: f.counts.Read + f.counts.LeftOut}
}

func (f *fileReader) refuse(e *ingest.RecordError, raw []byte) {
	f.counts.Read++
	f.counts.Refused[e.Reason]++
	if f.cfg.Refuse != nil {
		f.cfg.Refuse(e, raw)
	}
}

// line processes one line of the given size. line may contain only its beginning.
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
	if _, isV1 := f.cfg.Format.(telemetry.V1); !isV1 {
		line = nil
	}
	for i := range accepted {
		f.cfg.Accepted(&accepted[i], line)
	}
}

// watchedReader stops when the context ends, and reports progress.
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
	magic, _ := src.Peek(4) // an error occurs again on the first read
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

// isSkippableFrame detects the frames that pzstd writes before those with data.
func isSkippableFrame(magic []byte) bool {
	return len(magic) == 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18})
}

// lineReader splits a stream into lines. It keeps at most limit+1 bytes of a line.
type lineReader struct {
	src   *bufio.Reader
	limit int
	long  []byte            // beginning of a line that is longer than the buffer of src
	read  func(part []byte) // called with all parts of all lines; may be nil
}

// next returns the next line without its newline, or the first limit+1 bytes of a longer line. The line is valid until
// the next call. size is that of the complete line. The last line need not end in a newline. io.EOF is returned without
// a line, and any other error with the incomplete line.
func (l *lineReader) next() (line []byte, size int64, err error) {
	l.long = l.long[:0]
	for {
		part, err := l.src.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if l.read != nil {
			l.read(part)
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
