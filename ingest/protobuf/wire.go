package protobuf

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest"
	"google.golang.org/protobuf/encoding/protowire"
)

// The functions in this file read values of the wire format. Each begins at the byte d.at, and leaves d.at after the
// value. On failure, it calls d.fail and returns false.

// field is the tag of the next value.
type field struct {
	num   protowire.Number
	typ   protowire.Type
	start int // of the tag
	end   int // of the message that contains the field
}

// fail records why the record is refused. It returns false, so that callers can return its result.
func (d *decoder) fail(reason ingest.Reason, at int, msg string) bool {
	d.fault = fault{reason, at, msg}
	return false
}

func (d *decoder) badEncoding(at, code int) bool {
	return d.fail(ingest.ReasonBadEncoding, at, "not Protobuf: "+protowire.ParseError(code).Error())
}

// wrongType refuses a value that may be valid but has the wrong type.
func (d *decoder) wrongType(f field, want string) bool {
	return d.skip(f) && d.fail(ingest.ReasonWrongType, f.start, "field "+strconv.Itoa(int(f.num))+": expected "+want)
}

// tag reads a tag in a message that ends at end.
func (d *decoder) tag(end int) (f field, ok bool) {
	f.start, f.end = d.at, end
	if c := d.rec[d.at]; c < 0x80 && c>>3 > 0 { // most tags are one byte
		d.at++
		f.num, f.typ = protowire.Number(c>>3), protowire.Type(c&7)
		return f, true
	}
	num, typ, n := protowire.ConsumeTag(d.rec[d.at:end])
	if n < 0 {
		return f, d.badEncoding(d.at, n)
	}
	d.at += n
	f.num, f.typ = num, typ
	return f, true
}

// skip reads a value of any type.
func (d *decoder) skip(f field) bool {
	n := protowire.ConsumeFieldValue(f.num, f.typ, d.rec[d.at:f.end])
	if n < 0 {
		return d.badEncoding(d.at, n)
	}
	d.at += n
	return true
}

// open reads the length of an embedded message, a string or packed numbers, and returns the end of the value.
func (d *decoder) open(f field) (end int, ok bool) {
	if f.typ != protowire.BytesType {
		return 0, d.wrongType(f, "a string, a message or packed numbers")
	}
	length, ok := d.varint(f.end)
	if !ok {
		return 0, false
	}
	if length > uint64(f.end-d.at) {
		return 0, d.fail(ingest.ReasonBadEncoding, d.at, "not Protobuf: a value extends beyond the end of the message")
	}
	return d.at + int(length), true
}

func (d *decoder) varint(end int) (v uint64, ok bool) {
	if d.at < end && d.rec[d.at] < 0x80 {
		d.at++
		return uint64(d.rec[d.at-1]), true
	}
	v, n := protowire.ConsumeVarint(d.rec[d.at:end])
	if n < 0 {
		return 0, d.badEncoding(d.at, n)
	}
	d.at += n
	return v, true
}

func (d *decoder) integer(f field) (i int64, ok bool) {
	if f.typ != protowire.VarintType {
		return 0, d.wrongType(f, "a whole number")
	}
	v, ok := d.varint(f.end)
	return int64(v), ok
}

// count reads a non-negative integer.
func (d *decoder) count(f field, dst *int64) bool {
	i, ok := d.integer(f)
	if ok && i < 0 {
		return d.fail(ingest.ReasonOutOfRange, f.start, "expected a whole number from 0 to 2^63-1")
	}
	*dst = i
	return ok
}

func (d *decoder) boolean(f field, dst *bool) bool {
	if f.typ != protowire.VarintType {
		return d.wrongType(f, "true or false")
	}
	v, ok := d.varint(f.end)
	*dst = v != 0
	return ok
}

func (d *decoder) fixed64(f field) (v uint64, ok bool) {
	if f.end-d.at < 8 {
		return 0, d.fail(ingest.ReasonBadEncoding, d.at, "not Protobuf: the message ends inside a value")
	}
	v = binary.LittleEndian.Uint64(d.rec[d.at:])
	d.at += 8
	return v, true
}

func (d *decoder) double(f field, dst *float64) bool {
	if f.typ != protowire.Fixed64Type {
		return d.wrongType(f, "a double")
	}
	v, ok := d.fixed64(f)
	*dst = math.Float64frombits(v)
	return ok
}

// doubles reads a repeated double, packed or a single one, and returns the bytes of the numbers. They count towards
// MaxValues.
func (d *decoder) doubles(f field) (xs []byte, ok bool) {
	start, end := d.at, d.at+8
	switch f.typ {
	case protowire.BytesType:
		if end, ok = d.open(f); !ok {
			return nil, false
		}
		start = d.at
	case protowire.Fixed64Type:
		if _, ok = d.fixed64(f); !ok {
			return nil, false
		}
	default:
		return nil, d.wrongType(f, "a double")
	}
	n := (end - start) / 8
	if room := ingest.MaxValues - d.values; n > room && !d.unlimited {
		return nil, d.tooMany(start + 8*(room+1))
	}
	if d.at = end; (end-start)%8 != 0 {
		return nil, d.fail(ingest.ReasonBadEncoding, start+8*n, "not Protobuf: the message ends inside a value")
	}
	if !d.unlimited {
		d.values += n
	}
	return d.rec[start:end], true
}

// double returns the first number in the bytes that doubles returned.
func double(xs []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(xs)) }

func (d *decoder) timestamp(f field, dst *int64) bool {
	if f.typ != protowire.Fixed64Type {
		return d.wrongType(f, "an sfixed64")
	}
	v, ok := d.fixed64(f)
	if ok && int64(v) < 0 {
		return d.fail(ingest.ReasonBadTimestamp, f.start, "not a Unix time between the years 1970 and 2262")
	}
	*dst = int64(v)
	return ok
}

// text reads a string.
func (d *decoder) text(f field) (text []byte, ok bool) {
	end, ok := d.open(f)
	if !ok {
		return nil, false
	}
	text = d.rec[d.at:end]
	d.at = end
	return text, true
}

// keepable reports whether a string may be part of an event.
func (d *decoder) keepable(f field, text []byte) bool {
	switch {
	case !utf8.Valid(text):
		return d.fail(ingest.ReasonInvalidUTF8, f.start, "a string is not valid UTF-8")
	case len(text) > ingest.MaxString:
		return d.fail(ingest.ReasonStringTooLong, f.start, "a string is longer than "+strconv.Itoa(ingest.MaxString)+" bytes")
	case bytes.IndexByte(text, 0) >= 0:
		return d.fail(ingest.ReasonNUL, f.start, "a string contains the character U+0000")
	}
	return true
}

func (d *decoder) id(f field, dst *string) bool {
	text, ok := d.text(f)
	if !ok || !d.keepable(f, text) {
		return false
	}
	*dst = d.arena.Hold(text)
	return true
}

// name reads a string and interns it.
func (d *decoder) name(f field, dst *string) bool {
	text, ok := d.text(f)
	if !ok {
		return false
	}
	last := &d.last[f.num]
	if *last != string(text) {
		if !d.keepable(f, text) {
			return false
		}
		*last = d.names.Get(text)
	}
	*dst = *last
	return true
}

// counted counts a number towards MaxValues.
func (d *decoder) counted() bool {
	if d.unlimited {
		return true
	}
	if d.values == ingest.MaxValues {
		return d.tooMany(d.at)
	}
	d.values++
	return true
}

func (d *decoder) tooMany(at int) bool {
	return d.fail(ingest.ReasonTooManyValues, at, "more than "+strconv.Itoa(ingest.MaxValues)+" numbers")
}
