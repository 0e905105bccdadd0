package telemetry

import (
	"bytes"
	"math"
	"strconv"
	"unsafe"
)

// numeral is a parsed JSON number. Its value is mantissa times 10^exp, with the sign.
type numeral struct {
	text     []byte
	negative bool
	integer  bool // without a fraction or an exponent
	exact    bool // whether mantissa has all digits, not only the first 19 or 20
	mantissa uint64
	exp      int
}

// maxMantissa is the largest mantissa to which a digit can be appended.
const maxMantissa = (math.MaxUint64 - 9) / 10

// maxExp replaces every larger exponent. Regardless of the digits in a record, such an exponent makes every number
// except 0 infinite, or 0 if the exponent is negative.
const maxExp = 1 << 30

// atNumeral reports whether a number comes next, possibly a malformed one.
func (d *decoder) atNumeral() bool {
	c := d.peek()
	return '0' <= c && c <= '9' || c == '-' && d.at+1 < len(d.rec) && d.rec[d.at+1] <= '9'
}

// numeral reads a number according to the grammar of RFC 8259.
func (d *decoder) numeral() (n numeral, ok bool) {
	b, start := d.rec, d.at
	n.integer, n.exact = true, true
	if d.peek() == '-' {
		n.negative = true
		d.at++
	}
	switch c := d.peek(); {
	case c == '0':
		d.at++
	case '1' <= c && c <= '9':
		d.at = n.digits(b, d.at, 0)
	default:
		return n, d.expected("a value")
	}
	if d.peek() == '.' && !d.fraction(&n) {
		return n, false
	}
	if c := d.peek(); (c == 'e' || c == 'E') && !d.exponent(&n) {
		return n, false
	}
	n.text = b[start:d.at]
	return n, true
}

// digits appends the digits that start at i to the mantissa, and adds weight to the exponent for each. It returns the
// index after them.
func (n *numeral) digits(b []byte, i, weight int) int {
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		if n.mantissa > maxMantissa {
			n.exact = false
			n.exp += 1 + weight
			continue
		}
		n.mantissa = n.mantissa*10 + uint64(b[i]-'0')
		n.exp += weight
	}
	return i
}

func (d *decoder) fraction(n *numeral) bool {
	n.integer = false
	d.at++
	end := n.digits(d.rec, d.at, -1)
	if end == d.at {
		return d.expected("a digit")
	}
	d.at = end
	return true
}

func (d *decoder) exponent(n *numeral) bool {
	n.integer = false
	d.at++
	sign := 1
	if c := d.peek(); c == '-' || c == '+' {
		sign = 44 - int(c) // in ASCII, '+' is 43 and '-' is 45
		d.at++
	}
	start, exp := d.at, 0
	for ; '0' <= d.peek() && d.peek() <= '9'; d.at++ {
		exp = min(exp*10+int(d.rec[d.at]-'0'), maxExp)
	}
	if d.at == start {
		return d.expected("a digit")
	}
	n.exp += sign * exp
	return true
}

// powersOfTen are the powers of ten that a float64 represents exactly.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// float returns the nearest float64, or an infinity if the number is out of range. If mantissa and power are exact,
// their product or quotient is rounded once and correctly (Clinger 1990). strconv handles all other numbers.
func (n *numeral) float() float64 {
	if !n.exact || n.mantissa > 1<<53 || n.exp < -22 || n.exp > 22 {
		x, _ := strconv.ParseFloat(unsafe.String(unsafe.SliceData(n.text), len(n.text)), 64)
		return x // infinite if out of range
	}
	x := float64(n.mantissa)
	if n.exp < 0 {
		x /= powersOfTen[-n.exp]
	} else {
		x *= powersOfTen[n.exp]
	}
	if n.negative {
		return -x
	}
	return x
}

// int returns an integer that fits in an int64, in any notation.
func (n *numeral) int() (i int64, ok bool) {
	if n.integer && n.exact && n.mantissa <= math.MaxInt64 {
		if n.negative {
			return -int64(n.mantissa), true
		}
		return int64(n.mantissa), true
	}
	x := n.float()
	if x != math.Trunc(x) || x < -(1<<63) || x >= 1<<63 {
		return 0, false
	}
	return int64(x), true
}

// word reads an unquoted NaN or infinity if it comes next.
func (d *decoder) word() (x float64, ok bool) {
	i := d.at
	if i < len(d.rec) && (d.rec[i] == '-' || d.rec[i] == '+') {
		i++
	}
	for i < len(d.rec) && i-d.at <= len("-infinity") && 'a' <= d.rec[i]|0x20 && d.rec[i]|0x20 <= 'z' {
		i++
	}
	if x, ok = nonFinite(d.rec[d.at:i]); ok {
		d.at = i
	}
	return x, ok
}

// nonFinite parses NaN, Inf or Infinity in any case, with or without a sign.
func nonFinite(text []byte) (x float64, ok bool) {
	sign := 1
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		sign = 44 - int(text[0])
		text = text[1:]
	}
	switch len(text) {
	case len("nan"):
		if bytes.EqualFold(text, []byte("nan")) {
			return math.NaN(), true
		}
		return math.Inf(sign), bytes.EqualFold(text, []byte("inf"))
	case len("infinity"):
		return math.Inf(sign), bytes.EqualFold(text, []byte("infinity"))
	}
	return 0, false
}
