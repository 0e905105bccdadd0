package telemetry

import (
	"math"
	"math/bits"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// timestamp reads an RFC 3339 string or a Unix time, with or without a fraction. Numbers below 1e11 are seconds, below
// 1e14 milliseconds, below 1e17 microseconds, and others nanoseconds.
func (d *decoder) timestamp(dst *int64) bool {
	start := d.at
	var ok bool
	switch {
	case d.peek() == '"':
		text, valid := d.str()
		if !valid {
			return false
		}
		if *dst, ok = parseTime(text, d.zone); !ok && d.zone == nil {
			if _, local := parseTime(text, time.UTC); local {
				*dst = 0
				return d.fail(ingest.ReasonBadTimestamp, start, "not an RFC 3339 time: it needs an offset such as Z or +01:00, or zone in a mapping")
			}
		}
	case d.atNumeral():
		n, valid := d.numeral()
		if !valid {
			return false
		}
		*dst, ok = unixNano(&n)
	default:
		return d.wrongType("an RFC 3339 string or a Unix time")
	}
	if !ok {
		*dst = 0
		return d.fail(ingest.ReasonBadTimestamp, start, "not an RFC 3339 time or a Unix time between the years 1970 and 2262")
	}
	return true
}

// unixNano returns a Unix time in nanoseconds, exactly. It truncates fractions of a nanosecond.
func unixNano(n *numeral) (ns int64, ok bool) {
	switch x := n.float(); {
	case x < 1e11:
		return n.nanoseconds(9)
	case x < 1e14:
		return n.nanoseconds(6)
	case x < 1e17:
		return n.nanoseconds(3)
	}
	return n.nanoseconds(0)
}

// nanoseconds returns the number times 10^unit, exactly. It truncates fractions.
func (n *numeral) nanoseconds(unit int) (ns int64, ok bool) {
	if n.negative && n.mantissa > 0 || n.mantissa > 0 && n.exp > 19 {
		return 0, false
	}
	exp := n.exp + unit
	if n.mantissa == 0 || exp < -19 {
		return 0, true
	}
	m := n.mantissa
	for ; exp < 0; exp++ {
		m /= 10
	}
	for ; exp > 0; exp-- {
		hi, lo := bits.Mul64(m, 10)
		if m = lo; hi > 0 {
			return 0, false
		}
	}
	return int64(m), m <= math.MaxInt64
}

// parseTime returns the Unix nanoseconds of YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm). As RFC 3339 allows, T and Z may
// be in lower case, and a space may replace T. A leap second is the first second of the next minute. Digits beyond
// nanoseconds are truncated. With a zone, the offset may also be missing, ±hhmm or ±hh, a comma may replace the point,
// as in ISO 8601, and the date may be DD.MM.YYYY. In YYYY-MM-DD and YYYY-MM-DDThh:mm, the missing parts are 0.
func parseTime(b []byte, zone *time.Location) (ns int64, ok bool) {
	var turned [len("20.11.2026 10:00:00.123456789+01:00")]byte
	if n := len(b); zone != nil && n >= len("20.11.2026") && n <= len(turned) && b[2] == '.' && b[5] == '.' {
		copy(turned[copy(turned[:], []byte{b[6], b[7], b[8], b[9], '-', b[3], b[4], '-', b[0], b[1]}):], b[len("20.11.2026"):])
		b = turned[:n]
	}
	if n := len(b); zone != nil && (n == len("2006-01-02") || n == len("2006-01-02T15:04")) {
		whole := [minTimestamp]byte{}
		copy(whole[copy(whole[:], b):], "T00:00:00"[n-len("2006-01-02"):])
		b = whole[:]
	}
	if len(b) < minTimestamp {
		return 0, false
	}
	minute, ok := minuteOf(b)
	if !ok {
		return 0, false
	}
	return withinMinute(minute, b, zone)
}

// minTimestamp is the length of the shortest timestamp.
const minTimestamp = len("2006-01-02T15:04:05")

// minuteOf returns the Unix seconds at the start of a timestamp's minute, as if it were in UTC. It reads the first 17
// bytes.
func minuteOf(b []byte) (s int64, ok bool) {
	if b[4] != '-' || b[7] != '-' || b[13] != ':' || b[16] != ':' ||
		b[10] != 'T' && b[10] != 't' && b[10] != ' ' {
		return 0, false
	}
	year, month, day := twoDigits(b, 0)*100+twoDigits(b, 2), twoDigits(b, 5), twoDigits(b, 8)
	hour, minute := twoDigits(b, 11), twoDigits(b, 14)
	if year < 1969 || year > 2262 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, false
	}
	return daysSince1970(year, month, day)*86400 + int64(hour*3600+minute*60), true
}

// withinMinute returns the Unix nanoseconds of a timestamp from the start of its minute and the bytes after the first
// 17.
func withinMinute(minute int64, b []byte, zone *time.Location) (ns int64, ok bool) {
	second := twoDigits(b, 17)
	if second < 0 || second > 60 {
		return 0, false
	}
	frac, rest, ok := fractionOfSecond(b[19:], zone != nil)
	if !ok {
		return 0, false
	}
	s := minute + int64(second)
	switch offset, ok := zoneOffset(rest, zone != nil); {
	case ok:
		s -= offset
	case zone != nil && len(rest) == 0:
		s = inZone(s, zone)
	default:
		return 0, false
	}
	if s < 0 || s >= math.MaxInt64/int64(time.Second) {
		return 0, false
	}
	return s*int64(time.Second) + frac, true
}

// inZone returns the Unix seconds at which clocks in a zone show the same time as clocks in UTC at s. If clocks are set
// back and show this time twice, it returns the first one. If clocks are set forward and skip this time, it uses the
// offset before the change.
func inZone(s int64, zone *time.Location) int64 {
	const aDay = 24 * 60 * 60 // safely before a change of offset, and longer than any offset from UTC
	before := offsetAt(s-aDay, zone)
	if offsetAt(s-before, zone) == before {
		return s - before
	}
	if after := offsetAt(s+aDay, zone); offsetAt(s-after, zone) == after {
		return s - after
	}
	return s - before
}

// offsetAt returns the offset of a zone at the given time, in seconds east of UTC.
func offsetAt(unix int64, zone *time.Location) int64 {
	_, offset := time.Unix(unix, 0).In(zone).Zone()
	return int64(offset)
}

// twoDigits reads two digits. For anything else, the result is so negative that no sum with other digits is a valid
// date.
func twoDigits(b []byte, i int) int {
	hi, lo := b[i]-'0', b[i+1]-'0'
	if hi > 9 || lo > 9 {
		return -10000
	}
	return int(hi)*10 + int(lo)
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// daysSince1970 counts days in the Gregorian calendar. It uses years that begin in March, so that the leap day comes
// last.
func daysSince1970(year, month, day int) int64 {
	if month < 3 {
		year--
		month += 12
	}
	return int64(365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 1 - 719468)
}

func fractionOfSecond(b []byte, comma bool) (ns int64, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' && (!comma || b[0] != ',') {
		return 0, b, true
	}
	i, unit := 1, int64(time.Second)
	for ; i < len(b) && '0' <= b[i] && b[i] <= '9'; i++ {
		unit /= 10
		ns += int64(b[i]-'0') * unit
	}
	return ns, b[i:], i > 1
}

// zoneOffset parses Z or ±hh:mm, and also ±hhmm and ±hh if short is set. It returns seconds east of UTC.
func zoneOffset(b []byte, short bool) (seconds int64, ok bool) {
	if len(b) == 1 && (b[0] == 'Z' || b[0] == 'z') {
		return 0, true
	}
	if len(b) < len("+00") || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hours, minutes := twoDigits(b, 1), 0
	switch {
	case len(b) == len("+00:00") && b[3] == ':':
		minutes = twoDigits(b, 4)
	case short && len(b) == len("+0000"):
		minutes = twoDigits(b, 3)
	case !short || len(b) != len("+00"):
		return 0, false
	}
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	seconds = int64(hours*3600 + minutes*60)
	if b[0] == '-' {
		return -seconds, true
	}
	return seconds, true
}
