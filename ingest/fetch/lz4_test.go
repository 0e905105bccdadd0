package fetch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// unpacked decompresses a frame, which arrives through a small buffer.
func unpacked(l *lz4Reader, frame []byte) (all []byte, err error) {
	l.reset(&rawBytes{in: bufio.NewReaderSize(bytes.NewReader(frame), 16), left: int64(len(frame))})
	defer l.close()
	for {
		b, err := l.next()
		all = append(all, b...)
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
	}
}

// lines returns text as it is in testdata/linked.lz4.
func lines(n int) (text []byte) {
	for i := range n {
		text = fmt.Appendf(text, `{"step":%d,"agent_id":"agent-%d","reward":%d}`+"\n", i, i*7919%400, i*i%9973)
	}
	return text
}

// Frames of all kinds that kafka-go and other producers write are decompressed, with one reader.
func TestLz4(t *testing.T) {
	noise := make([]byte, 200_000) // its blocks are stored
	for i, rng := 0, rand.New(rand.NewPCG(15, 1)); i < len(noise); i++ {
		noise[i] = byte(rng.Uint32())
	}
	var l lz4Reader
	for name, text := range map[string][]byte{"nothing": nil, "a byte": {7}, "lines": lines(30_000), "noise": noise} {
		for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block256Kb, lz4.Block1Mb, lz4.Block4Mb} {
			for _, checksums := range []bool{false, true} {
				var frame bytes.Buffer
				w := lz4.NewWriter(&frame)
				err := w.Apply(lz4.BlockSizeOption(size), lz4.ChecksumOption(checksums), lz4.BlockChecksumOption(checksums), lz4.SizeOption(uint64(len(text))))
				if err == nil {
					_, err = w.Write(text)
				}
				if err = errors.Join(err, w.Close()); err != nil {
					t.Fatal(err)
				}
				got, err := unpacked(&l, frame.Bytes())
				if err != nil || !bytes.Equal(got, text) {
					t.Errorf("%s in blocks of %d, checksums %t: %d bytes, want %d: %v", name, size, checksums, len(got), len(text), err)
				}
			}
		}
	}
	if got, err := unpacked(&l, nil); len(got) > 0 || err != nil {
		t.Errorf("without a frame: %d bytes, %v", len(got), err)
	}
}

// Blocks may refer to up to 64 KiB of earlier ones, as those that Python's lz4 writes do by default. The file was written by
// its LZ4FrameCompressor with block_linked, block_checksum and content_checksum, in blocks of at most 40,000 bytes.
func TestLz4OfLinkedBlocks(t *testing.T) {
	frame, err := os.ReadFile("testdata/linked.lz4")
	if err != nil {
		t.Fatal(err)
	}
	if frame[4]&lz4Independent != 0 {
		t.Fatal("its blocks are independent")
	}
	var l lz4Reader
	for range 2 {
		if got, err := unpacked(&l, frame); err != nil || !bytes.Equal(got, lines(3000)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	for _, end := range []int{3, 6, 14, 20, 500, len(frame) - 10} {
		if got, err := unpacked(&l, frame[:end]); err == nil {
			t.Errorf("the first %d bytes were accepted as %d bytes", end, len(got))
		}
	}
}

// Frames that do not follow the format are errors that say why.
func TestLz4RefusesOtherFrames(t *testing.T) {
	header := func(flags, size byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, lz4Magic), flags, size, 0)
	}
	block := func(size uint32, text string) []byte {
		return append(binary.LittleEndian.AppendUint32(header(0x60, 0x40), size), text...)
	}
	for want, frame := range map[string][]byte{
		"does not begin with the header of": []byte("0123456789"),
		"but with 04224d18a040":             header(0xa0, 0x40),
		"unknown size 3":                    header(0x60, 0x30),
		"requires a dictionary":             header(0x61, 0x40),
		"a block takes 65537 bytes":         block(65537, ""),
		"lz4: invalid source":               block(4, "\xff\xff\xff\xff"),
		"unexpected":                        block(10, "12345"),
		"unexpected EOF":                    header(0x68, 0x40),
		"at most 65536 are announced":       block(65537|lz4Stored, ""),
	} {
		var l lz4Reader
		if _, err := unpacked(&l, frame); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, want %q", frame, err, want)
		}
	}
}

// A block that is larger than announced is an error, even if the reader has more memory from an earlier frame.
func TestLz4RefusesLargeBlocks(t *testing.T) {
	packed := make([]byte, 10_000)
	n, err := lz4.CompressBlock(make([]byte, 200_000), packed, nil)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	frame := binary.LittleEndian.AppendUint32(nil, lz4Magic)
	frame = binary.LittleEndian.AppendUint32(append(frame, 0x60, 0x40, 0), uint32(n))
	frame = append(append(frame, packed[:n]...), 0, 0, 0, 0)
	var wide bytes.Buffer
	w := lz4.NewWriter(&wide)
	if err := errors.Join(w.Apply(lz4.BlockSizeOption(lz4.Block1Mb)), w.Close()); err != nil {
		t.Fatal(err)
	}
	var l lz4Reader
	for range 2 {
		if got, err := unpacked(&l, frame); !errors.Is(err, errLz4) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := unpacked(&l, wide.Bytes()); err != nil {
			t.Fatal(err)
		}
		l.most = keptUnpackMemory
		l.memory()
	}
}

// A reader takes only small buffers for itself. Those for the largest blocks are shared.
func TestLz4KeepsNoLargeBuffers(t *testing.T) {
	var frame bytes.Buffer
	w := lz4.NewWriter(&frame) // with blocks of 4 MiB, like kafka-go
	if _, err := w.Write(lines(100)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var l lz4Reader
	if got, err := unpacked(&l, frame.Bytes()); err != nil || !bytes.Equal(got, lines(100)) {
		t.Fatal(err)
	}
	if l.large != nil || cap(l.small) > 0 {
		t.Errorf("it keeps %d bytes", cap(l.small))
	}
}
