package avro

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
)

// writer rewrites one record. Its methods begin at the byte at of src and leave at after what they have read. On failure
// they call fail and return false.
type writer struct {
	src   []byte
	at    int
	dst   []byte
	limit int // of dst
	depth int
	err   *ingest.RecordError
}

// fail records why the record is refused. It returns false, for its callers to return.
func (w *writer) fail(reason ingest.Reason, msg string) bool {
	w.err = &ingest.RecordError{Reason: reason, Column: w.at + 1, Size: int64(len(w.src)), Msg: msg}
	return false
}

func (w *writer) bad(msg string) bool {
	return w.fail(ingest.ReasonBadEncoding, "does not match the Avro schema: "+msg)
}

// value rewrites a value of a schema.
func (w *writer) value(s avro.Schema) bool {
	if len(w.dst) > w.limit {
		return w.fail(ingest.ReasonTooLarge, "exceeds the limit of "+strconv.Itoa(w.limit)+" bytes as JSON")
	}
	switch s := s.(type) {
	case *avro.RefSchema:
		return w.value(s.Schema())
	case *avro.RecordSchema:
		return w.nested(func() bool { return w.record(s) })
	case *avro.ArraySchema:
		return w.nested(func() bool { return w.array(s) })
	case *avro.MapSchema:
		return w.nested(func() bool { return w.object(s) })
	case *avro.UnionSchema:
		types := s.Types()
		i, ok := w.long()
		if ok && (i < 0 || i >= int64(len(types))) {
			return w.bad("invalid union index " + strconv.FormatInt(i, 10))
		}
		return ok && w.value(types[i])
	case *avro.EnumSchema:
		return w.enum(s)
	case *avro.FixedSchema:
		return w.fixed(s)
	case *avro.PrimitiveSchema:
		return w.primitive(s)
	case *avro.NullSchema:
		w.dst = append(w.dst, "null"...)
		return true
	}
	return w.fail(ingest.ReasonUnknownSchema, "unknown type in the Avro schema: "+string(s.Type()))
}

// nested rewrites what holds other values.
func (w *writer) nested(rewrite func() bool) bool {
	if w.depth == ingest.MaxDepth {
		return w.fail(ingest.ReasonTooDeep, "exceeds the maximum nesting depth of "+strconv.Itoa(ingest.MaxDepth))
	}
	w.depth++
	ok := rewrite()
	w.depth--
	return ok
}

func (w *writer) record(s *avro.RecordSchema) bool {
	w.dst = append(w.dst, '{')
	for _, f := range s.Fields() {
		w.dst = jsontext.AppendKey(w.dst, f.Name())
		if !w.value(f.Type()) {
			return false
		}
	}
	w.dst = append(w.dst, '}')
	return true
}

func (w *writer) array(s *avro.ArraySchema) bool {
	w.dst = append(w.dst, '[')
	ok := w.blocks(func() bool {
		w.dst = jsontext.AppendComma(w.dst)
		return w.value(s.Items())
	})
	w.dst = append(w.dst, ']')
	return ok
}

func (w *writer) object(s *avro.MapSchema) bool {
	w.dst = append(w.dst, '{')
	ok := w.blocks(func() bool {
		name, ok := w.bytes()
		if !ok {
			return false
		}
		w.dst = jsontext.AppendKey(w.dst, name)
		return w.value(s.Values())
	})
	w.dst = append(w.dst, '}')
	return ok
}

// blocks rewrites the items of an array or a map.
func (w *writer) blocks(item func() bool) bool {
	for {
		n, ok := w.long()
		if ok && n < 0 { // the size of the block follows
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

func (w *writer) enum(s *avro.EnumSchema) bool {
	i, ok := w.long()
	if !ok {
		return false
	}
	if i < 0 || i >= int64(len(s.Symbols())) {
		return w.bad("invalid enum index " + strconv.FormatInt(i, 10))
	}
	w.dst = jsontext.AppendString(w.dst, s.Symbols()[i])
	return true
}

func (w *writer) fixed(s *avro.FixedSchema) bool {
	b, ok := w.take(int64(s.Size()))
	if !ok {
		return false
	}
	if d, isDecimal := s.Logical().(*avro.DecimalLogicalSchema); isDecimal {
		return w.decimal(b, d.Scale())
	}
	w.base64(b)
	return true
}

func (w *writer) primitive(s *avro.PrimitiveSchema) bool {
	switch s.Type() {
	case avro.Int, avro.Long:
		i, ok := w.long()
		if ok && s.Type() == avro.Int && int64(int32(i)) != i {
			return w.bad("an int exceeds 32 bits")
		}
		return ok && w.integer(i, s)
	case avro.Double:
		b, ok := w.take(8)
		if ok {
			w.dst = jsontext.AppendNumber(w.dst, math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
		}
		return ok
	case avro.Float:
		b, ok := w.take(4)
		if ok {
			w.dst = jsontext.AppendNumber(w.dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
		}
		return ok
	case avro.Boolean:
		return w.boolean()
	}
	b, ok := w.bytes()
	if !ok {
		return false
	}
	if s.Type() == avro.String {
		w.dst = jsontext.AppendString(w.dst, b)
		return true
	}
	if d, isDecimal := s.Logical().(*avro.DecimalLogicalSchema); isDecimal {
		return w.decimal(b, d.Scale())
	}
	w.base64(b)
	return true
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

func (w *writer) base64(b []byte) {
	w.dst = append(w.dst, '"')
	w.dst = base64.StdEncoding.AppendEncode(w.dst, b)
	w.dst = append(w.dst, '"')
}

// maxDecimal is the longest decimal in bytes. Writing one in base 10 takes time that grows faster than its length.
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

// integer writes a whole number, or the date or time that it stands for.
func (w *writer) integer(i int64, s *avro.PrimitiveSchema) bool {
	var at time.Time
	layout := time.RFC3339Nano
	switch logicalType(s) {
	case avro.TimestampMillis, avro.LocalTimestampMillis:
		at = time.UnixMilli(i)
	case avro.TimestampMicros, avro.LocalTimestampMicros:
		at = time.UnixMicro(i)
	case "timestamp-nanos", "local-timestamp-nanos":
		at = time.Unix(0, i)
	case avro.Date:
		at, layout = time.Unix(i*86400, 0), time.DateOnly
	case avro.TimeMillis:
		at, layout = timeOfDay(i, time.Millisecond), "15:04:05.999"
	case avro.TimeMicros:
		at, layout = timeOfDay(i, time.Microsecond), "15:04:05.999999"
	}
	if at = at.UTC(); at.IsZero() || at.Year() < 0 || at.Year() > 9999 {
		w.dst = strconv.AppendInt(w.dst, i, 10)
		return true
	}
	w.dst = append(at.AppendFormat(append(w.dst, '"'), layout), '"')
	return true
}

// timeOfDay returns a time on some day, or the zero time if there is none.
func timeOfDay(i int64, unit time.Duration) time.Time {
	if i < 0 || i >= int64(24*time.Hour/unit) {
		return time.Time{}
	}
	return time.Unix(0, i*int64(unit))
}

// logicalType returns the logical type of a number, also one that the parser does not know.
func logicalType(s *avro.PrimitiveSchema) avro.LogicalType {
	if l := s.Logical(); l != nil {
		return l.Type()
	}
	name, _ := s.Prop("logicalType").(string)
	return avro.LogicalType(name)
}

// long reads a number of variable length, which is that of Protobuf's sint64.
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
