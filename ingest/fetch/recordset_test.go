package fetch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/segmentio/kafka-go/compress"
)

// fuzzLimit is the maximum size of a record's value in FuzzRecordSet.
const fuzzLimit = 1 << 10

// seedBatch returns a record batch with two records. The second one exceeds the limit.
func seedBatch(codec compress.Compression) []byte {
	var records []byte
	for i, size := range []int{3, 2 * fuzzLimit} {
		record := binary.AppendVarint([]byte{0, 0}, int64(i))
		record = append(binary.AppendVarint(record, 1), 'k')
		record = append(binary.AppendVarint(record, int64(size)), bytes.Repeat([]byte("v"), size)...)
		record = append(record, 0)
		records = append(binary.AppendVarint(records, int64(len(record))), record...)
	}
	b := make([]byte, batchHeader, batchHeader+len(records))
	binary.BigEndian.PutUint32(b[8:], uint32(batchHeader-batchPrefix+len(records)))
	b[16] = 2
	binary.BigEndian.PutUint32(b[23:], 1)
	binary.BigEndian.PutUint32(b[57:], 2)
	return compressed(append(b, records...), codec)
}

// compressed returns a record batch with its records compressed.
func compressed(batch []byte, codec compress.Compression) []byte {
	if codec == compress.None {
		return batch
	}
	out := bytes.NewBuffer(slices.Clone(batch[:batchHeader]))
	w := codec.Codec().NewWriter(out)
	w.Write(batch[batchHeader:]) //nolint:errcheck // into memory
	w.Close()
	b := out.Bytes()
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-batchPrefix))
	b[22] = byte(codec)
	return b
}

// FuzzRecordSet reads record sets that no broker sends. Reading must end without a panic, and every step must make
// progress.
func FuzzRecordSet(f *testing.F) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		f.Add(append(seedBatch(codec), seedBatch(codec)...))
	}
	f.Add(batchOf(7, 0, record(0, 0, []byte("k"), []byte("v"), headersOf("trace", "7", "none", "-")), record(1, 0, nil, nil, []byte{2, 1})))
	var s, slow Batches
	f.Fuzz(func(t *testing.T, sent []byte) {
		in := bufio.NewReader(bytes.NewReader(sent))
		s.begin(in, int64(len(sent)), fuzzLimit, []abortedTransaction{{producer: 1}})
		slow.begin(bufio.NewReader(bytes.NewReader(sent)), int64(len(sent)), fuzzLimit, []abortedTransaction{{producer: 1}})
		for {
			step, err := s.Step()
			if want, wantErr := unbufferedStep(&slow); fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && !sameStep(step, &want) {
				t.Fatalf("step %+v, %v, want %+v, %v", step, err, want, wantErr)
			}
			if errors.Is(err, io.EOF) {
				if rest, _ := in.Peek(1); len(rest) > 0 {
					t.Fatal("the end comes before the bytes do")
				}
				return
			}
			if err != nil {
				return
			}
			if step.Next <= step.Offset || len(step.Value) > ingest.MaxDeadLetterRaw || int64(len(step.Value)) > max(step.Size, 0) ||
				step.Size <= fuzzLimit && int64(len(step.Value)) != step.Size && step.Kind == KindRecord {
				t.Fatalf("step %+v", step)
			}
		}
	})
}

// unbufferedStep is like Step, but reads all records field by field.
func unbufferedStep(s *Batches) (Found, error) {
	for {
		f, err := s.advance()
		if err != nil || f.Next > f.Offset {
			return f, err
		}
	}
}

func sameStep(a, b *Found) bool {
	header := func(x, y ingest.Header) bool { return x.Key == y.Key && bytes.Equal(x.Value, y.Value) }
	return a.Kind == b.Kind && a.Offset == b.Offset && a.Next == b.Next && a.Records == b.Records && a.ts == b.ts && a.Size == b.Size &&
		(a.Key == nil) == (b.Key == nil) && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		slices.EqualFunc(a.headers, b.headers, header) && fmt.Sprint(a.Why) == fmt.Sprint(b.Why)
}

// The records are the same with every codec.
func TestRecordSet(t *testing.T) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		var s Batches
		sent := seedBatch(codec)
		s.begin(bufio.NewReader(bytes.NewReader(sent)), int64(len(sent)), fuzzLimit, nil)
		for offset, want := range []struct{ value, size int }{{3, 3}, {fuzzLimit * 2, fuzzLimit * 2}} {
			f, err := s.Step()
			if err != nil || f.Offset != int64(offset) || string(f.Key) != "k" || len(f.Value) != want.value || f.Size != int64(want.size) {
				t.Errorf("%v: %+v, %v, want offset %d and %d bytes", codec, f, err, offset, want.size)
			}
		}
		if f, err := s.Step(); !errors.Is(err, io.EOF) {
			t.Errorf("%v: %+v, %v, want the end", codec, f, err)
		}
	}
}

// record returns a record of a batch as producers write it, with its offset and its milliseconds relative to the first
// record. The key may be nil.
func record(offset, ms int64, key, value []byte, headers []byte) []byte {
	b := binary.AppendVarint(binary.AppendVarint([]byte{0}, ms), offset)
	if key == nil {
		b = binary.AppendVarint(b, -1)
	} else {
		b = append(binary.AppendVarint(b, int64(len(key))), key...)
	}
	b = append(binary.AppendVarint(b, int64(len(value))), value...)
	b = append(b, headers...)
	return append(binary.AppendVarint(nil, int64(len(b))), b...)
}

// headersOf returns the headers of a record from alternating keys and values. The value "-" stands for null.
func headersOf(texts ...string) []byte {
	b := binary.AppendVarint(nil, int64(len(texts)/2))
	for i, text := range texts {
		if text == "-" && i%2 == 1 {
			b = binary.AppendVarint(b, -1)
			continue
		}
		b = append(binary.AppendVarint(b, int64(len(text))), text...)
	}
	return b
}

// batchOf returns a record batch that begins at ms.
func batchOf(ms int64, attributes byte, records ...[]byte) []byte {
	b := make([]byte, batchHeader)
	for _, r := range records {
		b = append(b, r...)
	}
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-batchPrefix))
	b[16], b[22] = 2, attributes
	binary.BigEndian.PutUint32(b[23:], uint32(len(records)-1))
	binary.BigEndian.PutUint64(b[27:], uint64(ms))
	binary.BigEndian.PutUint64(b[35:], uint64(ms+9))
	binary.BigEndian.PutUint32(b[57:], uint32(len(records)))
	return b
}

// Key, headers and time of a record are those that the producer set, regardless of where they lie in memory.
func TestRecordSetGivesKeysHeadersAndTimes(t *testing.T) {
	const limit = 1 << 20
	large := bytes.Repeat([]byte("v"), 200_000)
	headers := headersOf("trace", "7", "none", "-", "", "")
	want := []Found{
		{Key: []byte("k"), Value: []byte("v"), headers: []ingest.Header{{Key: "trace", Value: []byte("7")}, {Key: "none"}, {Value: []byte{}}}, ts: 1000},
		{Key: []byte{}, Value: large, headers: []ingest.Header{{Key: "large", Value: []byte("8")}}, ts: 1005},
		{Value: []byte("v"), ts: 1000},
		{Key: []byte("k"), Value: []byte("v"), ts: 1000}, // its headers are too many to be read
		{Kind: KindRefused, Why: errHeaders, Key: []byte("k"), Value: []byte("v"), ts: 1000},
		{Value: []byte("last"), ts: 1000},
	}
	sent := batchOf(1000, 0, record(0, 0, []byte("k"), []byte("v"), headers), record(1, 5, []byte{}, large, headersOf("large", "8")),
		record(2, 0, nil, []byte("v"), headersOf()), record(3, 0, []byte("k"), []byte("v"), headersOf("many", string(large))),
		record(4, 0, []byte("k"), []byte("v"), binary.AppendVarint(nil, 3)), record(5, 0, nil, []byte("last"), headersOf()))
	for _, attributes := range []byte{0, attributeAppendTime} {
		sent[22] = attributes
		var s Batches
		s.begin(bufio.NewReader(bytes.NewReader(sent)), int64(len(sent)), limit, nil)
		for offset, w := range want {
			f, err := s.Step()
			if attributes != 0 {
				w.ts = 1009
			}
			if err != nil || f.Offset != int64(offset) || f.Kind != w.Kind || !errors.Is(f.Why, w.Why) || f.ts != w.ts || f.Final != (offset == len(want)-1) || !bytes.Equal(f.Value, w.Value) {
				t.Errorf("offset %d: %v %v at %d with %d bytes, %v", offset, f.Kind, f.Why, f.ts, len(f.Value), err)
			}
			if (f.Key == nil) != (w.Key == nil) || !bytes.Equal(f.Key, w.Key) || !reflect.DeepEqual(append([]ingest.Header(nil), f.headers...), w.headers) {
				t.Errorf("offset %d: key %q, headers %q, want %q and %q", offset, f.Key, f.headers, w.Key, w.headers)
			}
		}
		if f, err := s.Step(); !errors.Is(err, io.EOF) {
			t.Errorf("%+v, %v, want the end", f, err)
		}
	}
}

// Invalid headers are an error of their record only, and cause no panic.
func TestRecordSetRefusesBrokenHeaders(t *testing.T) {
	for _, headers := range [][]byte{nil, {2}, {2, 0}, {2, 200}, {2, 4, 'k'}, {2, 1, 40, 'v'}, {0x80}} {
		sent := batchOf(0, 0, record(0, 0, nil, []byte("v"), headers))
		var s Batches
		s.begin(bufio.NewReader(bytes.NewReader(sent)), int64(len(sent)), 100, nil)
		if f, err := s.Step(); err != nil || f.Kind != KindRefused || !errors.Is(f.Why, errHeaders) || string(f.Value) != "v" {
			t.Errorf("headers %v: %+v, %v", headers, f, err)
		}
	}
}

// BenchmarkRecordSet reads record batches of 500 records of 290 bytes. The bytes of an operation are those of one batch.
func BenchmarkRecordSet(b *testing.B) {
	const records = 500
	all := make([][]byte, records)
	for i := range all {
		value := fmt.Appendf(nil, `{"ts":"2026-11-01T00:00:00.%03dZ","policy":"policy-%03d","agent_id":"agent-%d","reward":%.4f}`, i, i%20, i, float64(i*i%97)/97)
		all[i] = record(int64(i), int64(i), nil, append(value, bytes.Repeat([]byte{' '}, 290-len(value))...), headersOf())
	}
	for _, codec := range []compress.Compression{compress.None, compress.Lz4} {
		b.Run(codec.String(), func(b *testing.B) {
			sent := compressed(batchOf(1000, 0, all...), codec)
			in, set := bytes.NewReader(nil), Batches{}
			b.ReportAllocs()
			for b.Loop() {
				in.Reset(sent)
				set.begin(bufio.NewReader(in), int64(len(sent)), 1<<20, nil)
				for range records {
					if _, err := set.Step(); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
		})
	}
}
