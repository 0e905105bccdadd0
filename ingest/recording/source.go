package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/avro"
)

// expansion is the maximum size of a record of an Avro file as JSON, in multiples of the maximum record size. Larger
// records count as damage.
const expansion = 16

// source is an open file or the standard input, with its current line.
type source struct {
	name   string
	lines  lineReader
	table  *table // for a CSV file, whose rows are converted to lines; otherwise nil
	closes []io.Closer

	line []byte // current line, or the beginning of one that is too long; valid until the next one
	size int64  // size of the complete line
	done bool   // there are no more lines
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// open opens an input, and reads its first line.
func (f *fileReader) open(ctx context.Context, in input) (*source, error) {
	s := &source{name: in.path}
	var raw io.Reader = os.Stdin
	switch {
	case in.path != "-":
		file, err := openInput(in.path)
		if err != nil {
			return nil, fmt.Errorf("read telemetry: %w", err)
		}
		s.closes, raw = append(s.closes, file), file
	case f.cfg.Stdin != nil:
		s.name, raw = "standard input", f.cfg.Stdin
	default:
		s.name = "standard input"
	}
	err := f.begin(ctx, s, raw)
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (f *fileReader) begin(ctx context.Context, s *source, raw io.Reader) error {
	plain, err := decompress(bufio.NewReaderSize(&watchedReader{ctx, raw, f}, fileBuffer))
	if err != nil {
		return f.brokenOff(ctx, s.name, err)
	}
	s.closes = append(s.closes, plain)
	text := bufio.NewReaderSize(plain, fileBuffer)
	if mark, _ := text.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) { // an error occurs again on the first read
		_, _ = text.Discard(len(mark))
	}
	if magic, _ := text.Peek(len(avro.Magic)); string(magic) == avro.Magic {
		container, err := avro.OpenContainer(text, expansion*f.cfg.MaxRecord)
		if err != nil {
			return f.brokenOff(ctx, s.name, err)
		}
		text = bufio.NewReaderSize(container, fileBuffer)
	}
	s.lines = lineReader{src: text, limit: f.cfg.MaxRecord}
	if err := f.advance(ctx, s); err != nil || s.done || s.size > int64(len(s.line)) {
		return err
	}
	s.line = bytes.Clone(s.line)                             // Peek may overwrite it
	if next, _ := s.lines.src.Peek(1); string(next) == "{" { // JSON after a line that is not JSON
		return nil
	}
	if s.table = tableOf(s.line); s.table == nil {
		return nil
	}
	s.lines.read = s.table.quote.read
	return f.advance(ctx, s)
}

// advance reads the next line that is not blank. For a CSV file, it is the next row as JSON.
func (f *fileReader) advance(ctx context.Context, s *source) error {
	for {
		if s.table != nil {
			s.table.quote.begin()
		}
		line, size, err := s.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			s.line, s.done = nil, true
			return nil
		case err != nil:
			f.refuseRest(ctx, line, size)
			return f.brokenOff(ctx, s.name, err)
		case size > int64(len(line)) || len(bytes.TrimLeft(line, " \t\r")) > 0:
			s.line, s.size = line, size
			if s.table == nil {
				return nil
			}
			if isRow, err := f.tabulate(ctx, s); isRow || err != nil {
				return err
			}
		}
	}
}

// tabulate converts the current line, and those that belong to the same row, to JSON. It returns false if it has
// refused the row.
func (f *fileReader) tabulate(ctx context.Context, s *source) (isRow bool, err error) {
	row, size := s.line, s.size
	if s.table.quote.open {
		s.table.row = append(s.table.row[:0], row...)
		for s.table.quote.open {
			line, more, err := s.lines.next()
			if err != nil {
				f.refuseRest(ctx, s.table.row, size)
				if errors.Is(err, io.EOF) {
					s.line, s.done = nil, true
					return true, nil // the file ends within quotes
				}
				return false, f.brokenOff(ctx, s.name, err)
			}
			if size += 1 + more; size <= int64(f.cfg.MaxRecord) {
				s.table.row = append(append(s.table.row, '\n'), line...)
			}
		}
		row = s.table.row
	}
	if size > int64(f.cfg.MaxRecord) {
		f.refuse(ingest.TooLarge(f.next(), size, f.cfg.MaxRecord), row[:min(len(row), f.cfg.MaxRecord+1)])
		return false, nil
	}
	object, refused := s.table.object(row)
	if refused != nil {
		refused.Pos, refused.Size = f.next(), size
		f.refuse(refused, row)
		return false, nil
	}
	s.line, s.size = object, size
	return true, nil
}

// Close closes the file and its decompressor.
func (s *source) Close() {
	for _, c := range s.closes {
		_ = c.Close() // everything was read, or reading has failed
	}
	s.closes = nil
}

// brokenOff processes the records that were read before the error.
func (f *fileReader) brokenOff(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("read %s: %w", name, ctx.Err())
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // a header that ends early; io.EOF would mean success
	}
	err = fmt.Errorf("read %s: interrupted after %d records of the input: %w", name, f.counts.Read, err)
	return errors.Join(err, f.Flush(ctx))
}

// refuseRest refuses the beginning of a line whose end could not be read. It may look like a complete record.
func (f *fileReader) refuseRest(ctx context.Context, line []byte, size int64) {
	if size == 0 || ctx.Err() != nil {
		return
	}
	f.refuse(&ingest.RecordError{Pos: f.next(), Reason: ingest.ReasonTruncated, Size: size, Msg: "the input was interrupted"}, line)
}
