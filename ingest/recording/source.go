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

// expansion is how much longer than a record may be the JSON of one of an Avro file is, before it counts as damage.
const expansion = 16

// source is an open file or the standard input, with the line that is to be read next.
type source struct {
	name   string
	lines  lineReader
	closes []io.Closer

	line []byte // its beginning where it is too long; valid until the next one
	size int64  // of the whole line
	done bool   // there is no further line
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
			return nil, fmt.Errorf("reading telemetry: %w", err)
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
	if mark, _ := text.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) { // the first read returns its error again
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
	return f.advance(ctx, s)
}

// advance reads the next line that is not blank.
func (f *fileReader) advance(ctx context.Context, s *source) error {
	for {
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
			return nil
		}
	}
}

// Close closes the file, and what decompresses it.
func (s *source) Close() {
	for _, c := range s.closes {
		_ = c.Close() // all has been read, or reading has failed
	}
	s.closes = nil
}

// brokenOff processes what was read before the error.
func (f *fileReader) brokenOff(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("reading %s: %w", name, ctx.Err())
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // of a header that ends early; io.EOF would mean success
	}
	err = fmt.Errorf("reading %s: interrupted after %d records of the input: %w", name, f.counts.Read, err)
	return errors.Join(err, f.Flush(ctx))
}

// refuseRest refuses the beginning of a line whose end could not be read: it may look like a complete record.
func (f *fileReader) refuseRest(ctx context.Context, line []byte, size int64) {
	if size == 0 || ctx.Err() != nil {
		return
	}
	f.refuse(&ingest.RecordError{Pos: f.next(), Reason: ingest.ReasonTruncated, Size: size, Msg: "the input was interrupted"}, line)
}
