package avro

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	"github.com/twmb/avro/atype"
	"google.golang.org/protobuf/encoding/protowire"
)

// writer rewrites one record. Its methods begin at the byte at of src, and leave at after the value. On failure, they
// call fail and return false.
type writer struct {
	src   []byte
	at    int
	dst   []byte
	limit int // maximum length of dst
	depth int
	err   *ingest.RecordError
}

// fail records why the record is refused. It returns false, so that callers can return its result.
func (w *writer) fail(reason ingest.Reason, msg string) bool {
	w.err = &ingest.RecordError{Reason: reason, Column: w.at + 1, Size: int64(len(w.src)), Msg: msg}
	return false
}

func (w *writer) bad(msg string) bool {
	return w.fail(ingest.ReasonBadEncoding, "does not match the Avro schema: "+msg)
}

// value rewrites a value with the given schema.
func (w *writer) value(s *node) bool {
	if len(w.dst) > w.limit {
		return w.fail(ingest.ReasonTooLarge, "exceeds the limit of "+strconv.Itoa(w.limit)+" bytes as JSON")
	}
	switch s.kind {
	case atype.Record:
		return w.nested(s, w.record)
	case atype.Array:
		return w.nested(s, w.array)
	case atype.Map:
		return w.nested(s, w.object)
	case atype.Union:
		i, ok := w.long()
		if ok && (i < 0 || i >= int64(len(s.types))) {
			return w.bad("invalid union index " + strconv.FormatInt(i, 10))
		}
		return ok && w.value(s.types[i])
	case atype.Enum:
		return w.enum(s)
	case atype.Fixed:
		b, ok := w.take(int64(s.size))
		return ok && w.binary(b, s)
	case atype.Null:
		w.dst = append(w.dst, "null"...)
		return true
	}
	return w.primitive(s)
}

// nested rewrites a value that contains other values.
func (w *writer) nested(s *node, rewrite func(*node) bool) bool {
	if w.depth == ingest.MaxDepth {
		return w.fail(ingest.ReasonTooDeep, "exceeds the maximum nesting depth of "+strconv.Itoa(ingest.MaxDepth))
	}
	w.depth++
	ok := rewrite(s)
	w.depth--
	return ok
}

func (w *writer) record(s *node) bool {
	w.dst = append(w.dst, '{')
	for i, name := range s.fields {
		w.dst = jsontext.AppendKey(w.dst, name)
		if !w.value(s.types[i]) {
			return false
		}
	}
	w.dst = append(w.dst, '}')
	return true
}

func (w *writer) array(s *node) bool {
	w.dst = append(w.dst, '[')
	ok := w.blocks(func() bool {
		w.dst = jsontext.AppendComma(w.dst)
		return w.value(s.items)
	})
	w.dst = append(w.dst, ']')
	return ok
}

func (w *writer) object(s *node) bool {
	w.dst = append(w.dst, '{')
	ok := w.blocks(func() bool {
		name, ok := w.bytes()
		if !ok {
			return false
		}
		w.dst = jsontext.AppendKey(w.dst, name)
		return w.value(s.items)
	})
	w.dst = append(w.dst, '}')
	return ok
}

// blocks rewrites the items of an array or a map.
func (w *writer) blocks(item func() bool) bool {
	for {
		n, ok := w.long()
		if ok && n < 0 { // followed by the size of the block
			n = -n
			_, ok = w.long()
		}
		switch {
		case !ok:
			return false
		case n < 0:
			return w.bad("a block has an invalid number of items")
		case n == 0:
			return true
		}
		for range n {
			if !item() {
				return false
			}
		}
	}
}

func (w *writer) enum(s *node) bool {
	i, ok := w.long()
	if !ok {
		return false
	}
	if i < 0 || i >= int64(len(s.symbols)) {
		return w.bad("invalid enum index " + strconv.FormatInt(i, 10))
	}
	w.dst = jsontext.AppendString(w.dst, s.symbols[i])
	return true
}

func (w *writer) primitive(s *node) bool {
	switch s.kind {
	case atype.Int, atype.Long:
		i, ok := w.long()
		if ok && s.kind == atype.Int && int64(int32(i)) != i {
			return w.bad("an int exceeds 32 bits")
		}
		return ok && w.integer(i, s)
	case atype.Double:
		b, ok := w.take(8)
		if ok {
			w.dst = jsontext.AppendNumber(w.dst, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
		}
		return ok
	case atype.Float:
		b, ok := w.take(4)
		if ok {
			w.dst = jsontext.AppendNumber(w.dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
		}
		return ok
	case atype.Boolean:
		return w.boolean()
	}
	b, ok := w.bytes()
	if !ok {
		return false
	}
	if s.kind == atype.String {
		w.dst = jsontext.AppendString(w.dst, b)
		return true
	}
	return w.binary(b, s)
}

func (w *writer) boolean() bool {
	b, ok := w.take(1)
	switch {
	case !ok:
		return false
	case b[0] > 1:
		w.at--
		return w.bad("a boolean must be 0 or 1")
	}
	w.dst = strconv.AppendBool(w.dst, b[0] == 1)
	return true
}

// binary writes a bytes or fixed value, or the decimal that it represents.
func (w *writer) binary(b []byte, s *node) bool {
	if s.logical == atype.Decimal {
		return w.decimal(b, s.scale)
	}
	w.dst = append(w.dst, '"')
	w.dst = base64.StdEncoding.AppendEncode(w.dst, b)
	w.dst = append(w.dst, '"')
	return true
}

// maxDecimal is the maximum size of a decimal in bytes. The time to convert one to base 10 grows faster than its size.
const maxDecimal = 256

// decimal writes an unscaled number in two's complement, most significant byte first.
func (w *writer) decimal(b []byte, scale int) bool {
	if len(b) > maxDecimal || scale > 3*maxDecimal {
		return w.fail(ingest.ReasonOutOfRange, "a decimal exceeds "+strconv.Itoa(maxDecimal)+" bytes")
	}
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	digits := new(big.Int).Abs(n).String()
	for len(digits) <= scale {
		digits = "0" + digits
	}
	if n.Sign() < 0 {
		w.dst = append(w.dst, '-')
	}
	point := len(digits) - scale
	w.dst = append(w.dst, digits[:point]...)
	if scale > 0 {
		w.dst = append(append(w.dst, '.'), digits[point:]...)
	}
	return true
}

// integer writes an integer, or the date or time that it represents.
func (w *writer) integer(i int64, s *node) bool {
	var at time.Time
	layout := time.RFC3339Nano
	switch s.logical {
	case atype.TimestampMillis, atype.LocalTimestampMillis:
		at = time.UnixMilli(i)
	case atype.TimestampMicros, atype.LocalTimestampMicros:
		at = time.UnixMicro(i)
	case atype.TimestampNanos, atype.LocalTimestampNanos:
		at = time.Unix(0, i)
	case atype.Date:
		at, layout = time.Unix(i*86400, 0), time.DateOnly
	case atype.TimeMillis:
		at, layout = timeOfDay(i, time.Millisecond), "15:04:05.999"
	case atype.TimeMicros:
		at, layout = timeOfDay(i, time.Microsecond), "15:04:05.999999"
	}
	if at = at.UTC(); at.IsZero() || at.Year() < 0 || at.Year() > 9999 {
		w.dst = strconv.AppendInt(w.dst, i, 10)
		return true
	}
	w.dst = append(at.AppendFormat(append(w.dst, '"'), layout), '"')
	return true
}

// timeOfDay returns a time with the given time of day, or the zero time if it is out of range.
func timeOfDay(i int64, unit time.Duration) time.Time {
	if i < 0 || i >= int64(24*time.Hour/unit) {
		return time.Time{}
	}
	return time.Unix(0, i*int64(unit))
}

// long reads a variable-length integer. The encoding is the same as that of Protobuf's sint64.
func (w *writer) long() (i int64, ok bool) {
	v, n := protowire.ConsumeVarint(w.src[w.at:])
	if n < 0 {
		return 0, w.bad("the record ends inside a value, or a number exceeds 64 bits")
	}
	w.at += n
	return protowire.DecodeZigZag(v), true
}

func (w *writer) bytes() (b []byte, ok bool) {
	n, ok := w.long()
	if !ok {
		return nil, false
	}
	return w.take(n)
}

// take reads n bytes.
func (w *writer) take(n int64) (b []byte, ok bool) {
	if n < 0 || n > int64(len(w.src)-w.at) {
		return nil, w.bad("the record ends inside a value")
	}
	w.at += int(n)
	return w.src[w.at-int(n) : w.at], true
}
