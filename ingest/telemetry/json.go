package telemetry

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// The functions in this file read JSON. Each begins at the byte d.at, which must not be white space, and leaves d.at
// after the value. On failure, it calls d.fail and returns false.

// fail records why the record is refused. It returns false, so that callers can return its result.
func (d *decoder) fail(reason ingest.Reason, at int, msg string) bool {
	d.fault = fault{reason, at, msg}
	return false
}

// expected refuses the record because of the next byte.
func (d *decoder) expected(what string) bool {
	if d.at >= len(d.rec) {
		return d.fail(ingest.ReasonInvalidJSON, d.at, "the record ends too early: expected "+what)
	}
	return d.fail(ingest.ReasonInvalidJSON, d.at, "expected "+what+", found "+d.found())
}

// found returns the next byte in quotes, for an error message.
func (d *decoder) found() string {
	if d.at >= len(d.rec) {
		return "the end of the line"
	}
	return strconv.QuoteToASCII(string(d.rec[d.at : d.at+1]))
}

// wrongType refuses a value that may be valid but has the wrong type.
func (d *decoder) wrongType(want string) bool {
	start := d.at
	return d.skip() && d.fail(ingest.ReasonWrongType, start, "expected "+want)
}

// peek returns the next byte, or 0 at the end of the record.
func (d *decoder) peek() byte {
	if d.at < len(d.rec) {
		return d.rec[d.at]
	}
	return 0
}

func (d *decoder) space() {
	for d.at < len(d.rec) {
		if c := d.rec[d.at]; c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return
		}
		d.at++
	}
}

// end checks that only white space is left in the record.
func (d *decoder) end() bool {
	d.space()
	return d.at == len(d.rec) || d.expected("the end of the record")
}

// enter begins an object or an array.
func (d *decoder) enter() bool {
	if d.depth == ingest.MaxDepth {
		return d.fail(ingest.ReasonTooDeep, d.at, "exceeds the maximum nesting depth of "+strconv.Itoa(ingest.MaxDepth))
	}
	d.depth++
	d.at++
	return true
}

// next advances to the next element of an object or an array, or past its closing bracket. If more is false, ok reports
// whether the bracket was found.
func (d *decoder) next(first bool, closing byte) (more, ok bool) {
	d.space()
	switch c := d.peek(); {
	case c == closing:
		d.at++
		d.depth--
		return false, true
	case first:
		return true, true
	case c == ',':
		d.at++
		d.space()
		return true, true
	}
	return false, d.expected("a comma or " + string(closing))
}

// key reads a member's name, the colon and surrounding white space. The name is valid until the next string is read.
func (d *decoder) key() (name []byte, ok bool) {
	if d.peek() != '"' {
		return nil, d.expected("a quoted key")
	}
	if name, ok = d.str(); !ok {
		return nil, false
	}
	if d.peek() != ':' {
		d.space()
	}
	if d.peek() != ':' {
		return nil, d.expected("a colon")
	}
	d.at++
	d.space()
	return name, true
}

// null reads null if it comes next.
func (d *decoder) null() bool { return d.peek() == 'n' && d.literal("null") }

// literal reads the word if it comes next.
func (d *decoder) literal(word string) bool {
	if len(d.rec)-d.at < len(word) || string(d.rec[d.at:d.at+len(word)]) != word {
		return false
	}
	d.at += len(word)
	return true
}

// skip reads a value of any type.
func (d *decoder) skip() bool {
	start := d.at
	switch d.peek() {
	case '{':
		return d.skipObject()
	case '[':
		return d.skipArray()
	case '"':
		_, ok := d.str()
		return ok && d.note(passedText, 0, start)
	case 't':
		return d.literal("true") && d.note(passedTruth, 0, start) || d.expected("a value")
	case 'f':
		return d.literal("false") && d.note(passedTruth, 0, start) || d.expected("a value")
	}
	if d.null() {
		return true
	}
	if _, ok := d.word(); ok {
		return true
	}
	_, ok := d.numeral()
	return ok && d.note(passedNumber, 0, start)
}

func (d *decoder) skipObject() bool {
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, '}')
		if !more {
			return ok
		}
		if _, ok := d.key(); !ok || !d.skip() {
			return false
		}
	}
}

func (d *decoder) skipArray() bool {
	if !d.enter() {
		return false
	}
	for first := true; ; first = false {
		more, ok := d.next(first, ']')
		if !more {
			return ok
		}
		if !d.skip() {
			return false
		}
	}
}

// str reads a string. Its text is valid until the next string is read.
func (d *decoder) str() (text []byte, ok bool) {
	d.nul = false
	start := d.at + 1
	i := plainEnd(d.rec, start)
	if i < len(d.rec) && d.rec[i] == '"' {
		d.at = i + 1
		return d.rec[start:i], true
	}
	return d.longStr(start, i)
}

// plainEnd returns the index of the first byte from i on that is a quote, a backslash, a control character or not
// ASCII. It examines eight bytes at a time: the sum has the high bit of each such byte set. A borrow can only set a bit
// incorrectly above a correctly set one, so the lowest set bit is correct.
func plainEnd(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if special := (w | (w - ones*' ') | (quote - ones) | (slash - ones)) & highs; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// longStr reads the rest of a string that is not plain ASCII, starting at i.
func (d *decoder) longStr(start, i int) (text []byte, ok bool) {
	b := d.rec
	d.scratch = d.scratch[:0]
	copied := start // start of the part that is not in scratch yet
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			d.at = i + 1
			if copied == start {
				return b[start:i], true
			}
			d.scratch = append(d.scratch, b[copied:i]...)
			return d.scratch, true
		case c == '\\':
			d.scratch = append(d.scratch, b[copied:i]...)
			if i, ok = d.escape(i); !ok {
				return nil, false
			}
			copied = i
		case c < ' ':
			return nil, d.fail(ingest.ReasonInvalidJSON, i, "control characters in strings must be escaped")
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				return nil, d.fail(ingest.ReasonInvalidUTF8, i, "a string is not valid UTF-8")
			}
			i += size
		default:
			i = plainEnd(b, i)
		}
	}
	return nil, d.fail(ingest.ReasonInvalidJSON, len(b), "the record ends inside a string")
}

// escape appends the character of the escape sequence at i to scratch, and returns the index after it.
func (d *decoder) escape(i int) (end int, ok bool) {
	if i+1 >= len(d.rec) {
		return 0, d.fail(ingest.ReasonInvalidJSON, len(d.rec), "the record ends inside a string")
	}
	c := d.rec[i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return d.unicodeEscape(i)
	default:
		return 0, d.fail(ingest.ReasonInvalidJSON, i, "invalid escape sequence")
	}
	d.scratch = append(d.scratch, c)
	return i + 2, true
}

func (d *decoder) unicodeEscape(i int) (end int, ok bool) {
	r, ok := hex4(d.rec, i+2)
	if !ok {
		return 0, d.fail(ingest.ReasonInvalidJSON, i, `\u must be followed by four hexadecimal digits`)
	}
	end = i + 6
	if utf16.IsSurrogate(r) {
		if r, ok = d.lowSurrogate(r, end); !ok {
			return 0, d.fail(ingest.ReasonInvalidUTF8, i, "incomplete surrogate pair")
		}
		end += 6
	}
	if r == 0 {
		d.nul = true
	}
	d.scratch = utf8.AppendRune(d.scratch, r)
	return end, true
}

// lowSurrogate reads the second half of a surrogate pair, which must be at i.
func (d *decoder) lowSurrogate(high rune, i int) (r rune, ok bool) {
	if i+1 >= len(d.rec) || d.rec[i] != '\\' || d.rec[i+1] != 'u' {
		return 0, false
	}
	low, ok := hex4(d.rec, i+2)
	r = utf16.DecodeRune(high, low)
	return r, ok && r != utf8.RuneError
}

func hex4(b []byte, i int) (r rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
