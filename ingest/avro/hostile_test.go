package avro

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// longs encodes variable-length integers.
func longs(numbers ...int64) (out []byte) {
	for _, n := range numbers {
		out = binary.AppendVarint(out, n)
	}
	return out
}

// allocated returns the number of bytes that do allocates, including freed ones.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The sizes in a record do not determine how much is allocated: a few bytes cannot take much memory or time. Each of
// these records is refused after at most the size limit of a record, whereas a reader that trusts the numbers would run
// for years.
func TestHostileSizesCostNoMoreThanTheLimit(t *testing.T) {
	const limit = 1 << 16
	array := func(of string) string { return `{"type":"array","items":` + of + `}` }
	object := func(of string) string { return `{"type":"map","values":` + of + `}` }
	nothing := `{"type":"record","name":"Nothing","fields":[]}`
	empty := `{"type":"fixed","name":"Empty","size":0}`
	wide := `{"type":"record","name":"W0","fields":[{"name":"x","type":"null"}]}`
	for i := 1; i < 30; i++ { // 2^30 values without bytes
		wide = fmt.Sprintf(`{"type":"record","name":"W%d","fields":[{"name":"a","type":%s},{"name":"b","type":"W%d"}]}`, i, wide, i-1)
	}
	for _, c := range []struct {
		name, schema string
		value        []byte
		reason       ingest.Reason
	}{
		{"most nulls", array(`"null"`), longs(math.MaxInt64), ingest.ReasonTooLarge},
		{"most nulls with a size", array(`"null"`), longs(-math.MaxInt64, 0), ingest.ReasonTooLarge},
		{"most records of nothing", array(nothing), longs(math.MaxInt64), ingest.ReasonTooLarge},
		{"most fixed of no bytes", array(empty), longs(math.MaxInt64), ingest.ReasonTooLarge},
		{"most unions of null", array(`["null","string"]`), longs(math.MaxInt64), ingest.ReasonBadEncoding},
		{"most strings", array(`"string"`), longs(math.MaxInt64), ingest.ReasonBadEncoding},
		{"most arrays", array(array(`"null"`)), longs(math.MaxInt64, math.MaxInt64), ingest.ReasonTooLarge},
		{"a map of most nulls", object(`"null"`), longs(math.MaxInt64), ingest.ReasonBadEncoding},
		{"a map of most nulls with names", object(`"null"`), append(longs(math.MaxInt64), make([]byte, 2*limit)...), ingest.ReasonTooLarge},
		{"a map of least", object(`"null"`), longs(math.MinInt64, 1, 0), ingest.ReasonBadEncoding},
		{"an array of least", array(`"long"`), longs(math.MinInt64, 1, 0), ingest.ReasonBadEncoding},
		{"a negative size of a block", array(`"null"`), longs(-1, math.MinInt64, math.MaxInt64), ingest.ReasonTooLarge},
		{"blocks whose sum overflows", array(`"null"`), longs(1, math.MaxInt64, math.MaxInt64), ingest.ReasonTooLarge},
		{"many blocks", array(`"null"`), bytes.Repeat(longs(1), 2*limit), ingest.ReasonTooLarge},
		{"many blocks of a map", object(`"null"`), bytes.Repeat(longs(1, 0), 2*limit), ingest.ReasonTooLarge},
		{"longest string", `"string"`, longs(math.MaxInt64), ingest.ReasonBadEncoding},
		{"longest bytes", `"bytes"`, longs(math.MaxInt64), ingest.ReasonBadEncoding},
		{"negative bytes", `"bytes"`, longs(math.MinInt64), ingest.ReasonBadEncoding},
		{"longest name", object(`"null"`), longs(1, math.MaxInt64), ingest.ReasonBadEncoding},
		{"longest fixed", `{"type":"fixed","name":"F","size":2147483647}`, nil, ingest.ReasonBadEncoding},
		{"doubling records", wide, nil, ingest.ReasonTooLarge},
		{"deep", `{"type":"record","name":"D","fields":[{"name":"d","type":["null","D"]}]}`, bytes.Repeat(longs(1), limit), ingest.ReasonTooDeep},
	} {
		schema := mustParse(t, c.schema)
		var refused *ingest.RecordError
		cost := allocated(func() { _, refused = schema.AppendJSON(nil, c.value, limit) })
		if refused == nil || refused.Reason != c.reason {
			t.Errorf("%s: refused with %+v, want %s", c.name, refused, c.reason)
		}
		if cost > 16*limit {
			t.Errorf("%s: allocates %d bytes for %d bytes of input", c.name, cost, len(c.value))
		}
	}
}

// The same applies to files, whose header and blocks also have sizes.
func TestHostileContainersCostNoMoreThanTheirBytes(t *testing.T) {
	header := func(schema string) []byte {
		entry := append(longs(1, int64(len("avro.schema"))), "avro.schema"...)
		entry = append(append(entry, longs(int64(len(schema)))...), schema...)
		return append(append([]byte(Magic), append(entry, 0)...), make([]byte, 16)...)
	}
	block := func(schema string, records int64, data []byte) []byte {
		return append(append(append(header(schema), longs(records, int64(len(data)))...), data...), make([]byte, 16)...)
	}
	start := func(numbers ...int64) []byte { return append([]byte(Magic), longs(numbers...)...) }
	nulls := `{"type":"array","items":"null"}`
	for name, c := range map[string]struct {
		file []byte
		err  string
	}{
		"a header of most entries":            {start(math.MaxInt64), "too many entries"},
		"a header of least entries":           {start(math.MinInt64, 0), "too many entries"},
		"a header whose name is longest":      {start(1, math.MaxInt64), "exceed the limit"},
		"a header whose name has no bytes":    {start(1, 4<<20), "unexpected EOF"},
		"a header whose name is negative":     {start(1, math.MinInt64), "exceed the limit"},
		"a schema of much depth":              {header(strings.Repeat(`{"type":"array","items":`, 20_000)), "parse the Avro schema"},
		"a block of most records":             {block(`"null"`, math.MaxInt64, nil), "more records than bytes"},
		"a block of least records":            {block(`"null"`, math.MinInt64, nil), "negative number of records"},
		"a block with more bytes than follow": {append(header(`"null"`), longs(1, 64<<20)...), "unexpected EOF"},
		"most nulls in a record":              {block(nulls, 1, longs(math.MaxInt64)), string(ingest.ReasonTooLarge)},
		"a string beyond its block":           {block(`"string"`, 1, longs(1<<20)), string(ingest.ReasonBadEncoding)},
	} {
		var err error
		cost := allocated(func() { _, err = readContainer(c.file) })
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %s", name, err, c.err)
		}
		if limit := uint64(16 << 20); cost > limit {
			t.Errorf("%s: allocates %d bytes for %d bytes of input", name, cost, len(c.file))
		}
	}
}
