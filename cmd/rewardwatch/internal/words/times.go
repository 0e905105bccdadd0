package words

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// instant matches a time in UTC: in the format of Stamp, or in RFC 3339, as in parameters and in texts that were saved
// by older versions.
var instant = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z| UTC)\b`)

// EachTime returns a text with its times and the rest replaced. Times that are part of a name do not change.
func EachTime(text string, ofTime func(time.Time) string, ofRest func(string) string) string {
	var b strings.Builder
	rest := 0
	for _, m := range instant.FindAllStringSubmatchIndex(text, -1) {
		at, err := time.Parse(time.DateTime, text[m[2]:m[3]]+" "+text[m[4]:m[5]])
		if err != nil || strings.HasSuffix(text[:m[0]], "-") || strings.HasPrefix(text[m[1]:], "-") {
			continue
		}
		b.WriteString(ofRest(text[rest:m[0]]))
		b.WriteString(ofTime(at))
		rest = m[1]
	}
	b.WriteString(ofRest(text[rest:]))
	return b.String()
}

// Stamped returns a text with its times in the format of Stamp.
func Stamped(text string) string {
	return EachTime(text, Stamp, func(rest string) string { return rest })
}

// TimeForms describes what ParseTime accepts, for errors.
const TimeForms = `a time such as "2026-11-20 18:00:00 UTC" or 2026-11-20T18:00:00Z`

// ParseTime parses a time that a person wrote: in the format of Stamp, which may lack the seconds or UTC, or in RFC
// 3339. Without a zone, it is in UTC.
func ParseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 UTC", time.DateTime, "2006-01-02 15:04 UTC", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, errors.New("must be " + TimeForms)
}
