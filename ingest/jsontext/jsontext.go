// Package jsontext writes values as JSON, for formats that are read as JSON.
package jsontext

import (
	"math"
	"strconv"
)

const hex = "0123456789abcdef"

// AppendString appends a quoted string. It escapes all characters that are not allowed in JSON or on a single line.
// Bytes that are not valid UTF-8 are left unchanged, so the reader refuses them.
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

// AppendNumber appends the shortest decimal that is read as x, with a size of 32 or 64 bits. NaN and infinities are
// unquoted, which telemetry version 1 allows but RFC 8259 does not.
func AppendNumber(dst []byte, x float64, bits int) []byte {
	if w := word(x); w != "" {
		return append(dst, w...)
	}
	return strconv.AppendFloat(dst, x, 'g', -1, bits)
}

// AppendStrictNumber appends x according to RFC 8259, with NaN and infinities in quotes.
func AppendStrictNumber(dst []byte, x float64) []byte {
	if w := word(x); w != "" {
		return AppendString(dst, w)
	}
	return AppendNumber(dst, x, 64)
}

// word returns NaN or an infinity as text, or "" for any other number.
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

// AppendKey appends a member's name and a colon, preceded by a comma unless the member is the first one in its object.
func AppendKey[T string | []byte](dst []byte, name T) []byte {
	return append(AppendString(AppendComma(dst), name), ':')
}

// AppendComma appends a comma, unless it would be the first character of an object or array.
func AppendComma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		dst = append(dst, ',')
	}
	return dst
}
