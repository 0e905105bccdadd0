package ingest

import (
	"testing"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"0": 0, "1048576": MiB, "1GiB": GiB, "64KiB": 64 * KiB, "64 KiB": 64 * KiB, "10MB": 10e6, "10mb": 10e6, "5kB": 5e3,
		"1.5GiB": GiB + 512*MiB, "2TiB": 2 * TiB, "3TB": 3e12, "7B": 7, " 1MiB ": MiB, "4GB": 4e9, "8388607TiB": 8388607 * TiB,
	} {
		var s ByteSize
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d (%v), want %d", text, s, err, want)
		}
		var again ByteSize
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%q: written as %q, which reads as %d (%v)", text, s, again, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1PiB", "1 2", "1e3", "0x10", "1.2.3", "8388608TiB", "99999999999999999999", "1G"} {
		s := ByteSize(-5)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != -5 {
			t.Errorf("%q: read as %d, want an error and nothing set", text, s)
		}
	}
}
