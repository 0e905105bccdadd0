package avro

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Magic is the beginning of every object container file.
const Magic = "Obj\x01"

// The limits of a container.
const (
	maxHeader = 4 << 20
	maxBlock  = 64 << 20 // decompressed
)

// Container reads an object container file of Avro 1.11. Its header contains the schema.
type Container struct {
	src    *bufio.Reader
	schema *Schema
	codec  string
	sync   [16]byte
	limit  int // of a record as JSON, in bytes

	block []byte
	left  int64 // number of remaining records in the block
	line  []byte
}

// OpenContainer reads the header of a container. limit is the maximum size of a record as JSON, in bytes.
func OpenContainer(src io.Reader, limit int) (*Container, error) {
	c := &Container{src: bufio.NewReader(src), limit: limit}
	magic := make([]byte, len(Magic))
	if _, err := io.ReadFull(c.src, magic); err != nil || string(magic) != Magic {
		return nil, errors.New("not an Avro object container file")
	}
	meta, err := c.readMeta()
	if err == nil {
		_, err = io.ReadFull(c.src, c.sync[:])
	}
	if err != nil {
		return nil, fmt.Errorf("read the header of an Avro file: %w", inside(err))
	}
	c.schema, err = Parse(string(meta["avro.schema"]))
	if c.codec = string(meta["avro.codec"]); c.codec == "" {
		c.codec = "null"
	}
	return c, err
}

// inside converts io.EOF to io.ErrUnexpectedEOF, for reads after which the file must not end.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readMeta reads the entries of the header, which must not exceed maxHeader bytes in total.
func (c *Container) readMeta() (map[string][]byte, error) {
	meta := map[string][]byte{}
	for left := int64(maxHeader); ; {
		n, err := c.blockCount()
		if n == 0 || err != nil {
			return meta, err
		}
		for range n {
			name, err := c.bytes(left)
			if err != nil {
				return nil, err
			}
			left -= int64(len(name))
			value, err := c.bytes(left)
			if err != nil {
				return nil, err
			}
			left -= int64(len(value))
			meta[string(name)] = value
		}
	}
}

// blockCount reads the number of entries in a block of a map. It skips the size of the block, which may follow.
func (c *Container) blockCount() (int64, error) {
	n, err := binary.ReadVarint(c.src)
	if n < 0 && err == nil {
		n = -n
		_, err = binary.ReadVarint(c.src)
	}
	if n < 0 || n > maxHeader {
		err = errors.New("too many entries")
	}
	return n, err
}

// bytes reads a length-prefixed value.
func (c *Container) bytes(limit int64) ([]byte, error) {
	n, err := binary.ReadVarint(c.src)
	switch {
	case err != nil:
		return nil, err
	case n < 0 || n > limit:
		return nil, fmt.Errorf("%d bytes exceed the limit of %d", n, limit)
	}
	var out bytes.Buffer // grows with the existing data, regardless of the length
	if _, err := io.CopyN(&out, c.src, n); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return out.Bytes(), nil
}

// Read implements io.Reader. It returns the records as JSON, one per line.
func (c *Container) Read(b []byte) (int, error) {
	for len(c.line) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.line)
	c.line = c.line[n:]
	return n, nil
}

// next converts the next record to a line.
func (c *Container) next() error {
	for c.left == 0 {
		if err := c.readBlock(); err != nil {
			return err
		}
	}
	c.left--
	w := writer{src: c.block, dst: c.line[:0:0], limit: c.limit}
	if !w.value(c.schema.root) {
		return fmt.Errorf("read a record of an Avro file: %s: %s", w.err.Reason, w.err.Msg)
	}
	c.block, c.line = c.block[w.at:], append(w.dst, '\n')
	return nil
}

// readBlock reads the next block. It returns io.EOF if there is none.
func (c *Container) readBlock() error {
	n, err := binary.ReadVarint(c.src)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err == nil {
		c.left = n
		c.block, err = c.bytes(maxBlock)
	}
	if err == nil && n < 0 {
		err = errors.New("negative number of records")
	}
	if err == nil {
		c.block, err = c.decompress()
	}
	if err == nil && n > int64(len(c.block)) {
		err = errors.New("more records than bytes")
	}
	var sync [16]byte
	if err == nil {
		_, err = io.ReadFull(c.src, sync[:])
	}
	if err == nil && sync != c.sync {
		err = errors.New("its sync marker does not match the file header")
	}
	if err != nil {
		return fmt.Errorf("read a block of an Avro file: %w", inside(err))
	}
	return nil
}

// decompress returns the decompressed block.
func (c *Container) decompress() ([]byte, error) {
	switch c.codec {
	case "null":
		return c.block, nil
	case "deflate":
		return readBounded(flate.NewReader(bytes.NewReader(c.block)))
	case "snappy": // ends with a four-byte checksum
		if size, err := snappy.DecodedLen(c.block); err != nil || size > maxBlock || len(c.block) < 4 {
			return nil, errors.New("not a snappy block, or too large")
		}
		return snappy.Decode(nil, c.block[:len(c.block)-4])
	case "zstandard":
		d, err := zstd.NewReader(bytes.NewReader(c.block), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return readBounded(d)
	}
	return nil, fmt.Errorf("unsupported codec %q: must be null, deflate, snappy or zstandard", c.codec)
}

func readBounded(r io.Reader) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, maxBlock+1))
	if err == nil && len(out) > maxBlock {
		err = fmt.Errorf("%s: exceeds the limit of %d bytes", ingest.ReasonTooLarge, maxBlock)
	}
	return out, err
}
