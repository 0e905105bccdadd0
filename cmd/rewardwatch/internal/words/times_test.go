package words

import (
	"strings"
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	at := time.Date(2026, 11, 20, 18, 0, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{
		Stamp(at):                   at,
		" 2026-11-20 18:00:05 ":     at,
		"2026-11-20T18:00:05Z":      at,
		"2026-11-20T20:00:05+02:00": at,
		"2026-11-20 18:00 UTC":      at.Truncate(time.Minute),
		"2026-11-20 18:00":          at.Truncate(time.Minute),
	} {
		if got, err := ParseTime(text); err != nil || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "now", "18:00", "2026-11-20", "2026-11-20 18:00 CET", "2026-11-20T18:00:05Z UTC", "2026-13-20 18:00:05 UTC"} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), TimeForms) {
			t.Errorf("%q is %s (%v), want an error that says what is accepted", text, got, err)
		}
	}
}
