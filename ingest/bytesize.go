package ingest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes, written in configuration as a plain number or with a unit: kB, MB, GB and TB are
// powers of 1000, KiB, MiB, GiB and TiB powers of 1024.
type ByteSize int64

// The units of ByteSize that are powers of 1024.
const (
	KiB ByteSize = 1 << 10
	MiB ByteSize = 1 << 20
	GiB ByteSize = 1 << 30
	TiB ByteSize = 1 << 40
)

// UnmarshalText reads "1GiB", "64 KiB", "10MB", "1.5GiB" or a plain number of bytes. Units are not case-sensitive.
func (s *ByteSize) UnmarshalText(text []byte) error {
	whole := strings.TrimSpace(string(text))
	digits := strings.TrimRight(whole, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	scale, ok := byteUnit(whole[len(digits):])
	digits = strings.TrimSpace(digits)
	if !ok || digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return fmt.Errorf("%q is not a size: expected a number of bytes, optionally with a unit, such as 64KiB, 10MB or 1GiB", whole)
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n <= math.MaxInt64/scale {
		*s = ByteSize(n * scale)
		return nil
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n*float64(scale) >= math.MaxInt64 {
		return fmt.Errorf("size %q exceeds 64 bits", whole)
	}
	*s = ByteSize(math.Round(n * float64(scale)))
	return nil
}

func byteUnit(unit string) (scale int64, ok bool) {
	switch strings.ToLower(unit) {
	case "", "b":
		return 1, true
	case "kb":
		return 1e3, true
	case "mb":
		return 1e6, true
	case "gb":
		return 1e9, true
	case "tb":
		return 1e12, true
	case "kib":
		return int64(KiB), true
	case "mib":
		return int64(MiB), true
	case "gib":
		return int64(GiB), true
	case "tib":
		return int64(TiB), true
	}
	return 0, false
}

// String returns the size in the largest unit (a power of 1024) that divides it evenly, so that UnmarshalText returns
// the same size.
func (s ByteSize) String() string {
	for _, u := range []struct {
		size ByteSize
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
