// Package jsontext writes values as JSON, for the formats that are read as JSON.
package jsontext

import (
	"math"
	"strconv"
)

const hex = "0123456789abcdef"

// AppendString appends a string in quotes, with all characters that JSON or a line does not allow escaped. Bytes that
// are not UTF-8 stay as they are, for the reader to refuse.
func AppendString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	written := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[written:i]...)
		written = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, text[written:]...)
	return append(dst, '"')
}

// AppendNumber appends the shortest decimal that reads as x, of the given size of 32 or 64 bits. NaN and infinities are
// bare words, which telemetry version 1 reads but RFC 8259 does not allow.
func AppendNumber(dst []byte, x float64, bits int) []byte {
	if w := word(x); w != "" {
		return append(dst, w...)
	}
	return strconv.AppendFloat(dst, x, 'g', -1, bits)
}

// AppendStrictNumber appends x by RFC 8259, with the words for NaN and infinities in quotes.
func AppendStrictNumber(dst []byte, x float64) []byte {
	if w := word(x); w != "" {
		return AppendString(dst, w)
	}
	return AppendNumber(dst, x, 64)
}

// word returns the word for what is no number in JSON, or "".
func word(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return ""
}

// AppendKey appends a comma if something precedes the member in its object, the member's name and a colon.
func AppendKey[T string | []byte](dst []byte, name T) []byte {
	return append(AppendString(AppendComma(dst), name), ':')
}

// AppendComma appends a comma, unless an object or array has just been opened.
func AppendComma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}
