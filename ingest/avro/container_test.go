package avro

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

const stepSchema = `{"type":"record","name":"Step","fields":[{"name":"arm","type":"string"},{"name":"reward","type":["null","double"]}]}`

// codecs returns the codecs of the library. The first one means no compression.
func codecs() []ocf.Codec {
	return []ocf.Codec{nil, ocf.DeflateCodec(flate.DefaultCompression), ocf.SnappyCodec(), ocf.MustZstdCodec(nil, nil)}
}

// containerOf returns a container with n records in blocks of ten.
func containerOf(t testing.TB, n int, codec ocf.Codec) []byte {
	t.Helper()
	var out bytes.Buffer
	opts := []ocf.WriterOpt{ocf.WithBlockCount(10)}
	if codec != nil {
		opts = append(opts, ocf.WithCodec(codec))
	}
	e, err := ocf.NewWriter(&out, avro.MustParse(stepSchema), opts...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := e.Encode(map[string]any{"arm": fmt.Sprint("a", i%3), "reward": float64(i) / 2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readContainer(file []byte) (string, error) {
	c, err := OpenContainer(bytes.NewReader(file), 1<<20)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}

func TestContainersAreReadAsLinesOfJSON(t *testing.T) {
	var want strings.Builder
	for i := range 95 {
		fmt.Fprintf(&want, `{"arm":"a%d","reward":%v}`+"\n", i%3, float64(i)/2)
	}
	for _, codec := range codecs() {
		if got, err := readContainer(containerOf(t, 95, codec)); err != nil || got != want.String() {
			t.Errorf("%T: %v\n%s", codec, err, got)
		}
	}
	if got, err := readContainer(containerOf(t, 0, nil)); err != nil || got != "" {
		t.Errorf("an empty one: %v %q", err, got)
	}
}

// Records before damaged data are read, and the damage is an error.
func TestDamagedContainersAreErrors(t *testing.T) {
	good := containerOf(t, 95, nil)
	block := bytes.Index(good, []byte("a0")) // in the first record
	for name, c := range map[string]struct {
		file []byte
		err  string
	}{
		"empty":            {nil, "not an Avro object container file"},
		"another file":     {[]byte(`{"a":1}`), "not an Avro object container file"},
		"only a beginning": {good[:20], "read the header"},
		"cut short":        {good[:len(good)-5], "read a block"},
		"another mark":     {append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]+1), "its sync marker does not match the file header"},
		"another codec":    {bytes.Replace(containerOf(t, 95, codecs()[1]), []byte("deflate"), []byte("lzma-ng"), 1), `codec "lzma-ng"`},
		"a length":         {append(bytes.Clone(good[:block-1]), append([]byte{0x7e}, good[block:]...)...), "bad_encoding"},
		"a huge block":     {append(bytes.Clone(good), 2, 0xfe, 0xff, 0xff, 0xff, 0x7f), "exceed the limit of"},
		"too many records": {append(bytes.Clone(good), append([]byte{0xfe, 0x7f, 0}, good[len(good)-16:]...)...), "more records than bytes"},
	} {
		if _, err := readContainer(c.file); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %s", name, err, c.err)
		}
	}
}

// A truncated file must not look complete unless it ends between two blocks. Otherwise, its last records would be lost.
func TestContainersThatAreCutShortAreErrors(t *testing.T) {
	for _, codec := range codecs() {
		good := containerOf(t, 20, codec)
		sync := good[len(good)-16:]
		for end := range good {
			between := bytes.HasSuffix(good[:end], sync)
			if _, err := readContainer(good[:end]); (err == nil || errors.Is(err, io.EOF)) != between {
				t.Errorf("%T: %d of %d bytes: %v", codec, end, len(good), err)
			}
		}
	}
}

// A header cannot exhaust memory, because its total size is limited, not only that of each entry.
func TestHugeHeadersAreErrors(t *testing.T) {
	entries := func(yield func([]byte) bool) {
		more := yield(append([]byte(Magic), 0x80, 0x08)) // 512 entries
		for i := 0; more && i < 512; i++ {
			entry := append([]byte{6}, fmt.Sprintf("%03d", i)...)
			more = yield(append(binary.AppendVarint(entry, 1<<16), make([]byte, 1<<16)...))
		}
	}
	var file []byte
	for part := range entries {
		file = append(file, part...)
	}
	if _, err := readContainer(file); err == nil || !strings.Contains(err.Error(), "exceed the limit of") {
		t.Errorf("a header of %d bytes: %v", len(file), err)
	}
}

func FuzzContainer(f *testing.F) {
	for _, codec := range codecs() {
		f.Add(containerOf(f, 20, codec))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := OpenContainer(bytes.NewReader(file), 1<<16)
		if err != nil {
			return
		}
		if n, err := io.CopyN(io.Discard, c, 1<<20); n == 0 && err == nil {
			t.Error("neither records nor an error")
		}
	})
}
