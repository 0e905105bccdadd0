package words

import (
	"regexp"
	"strings"
	"time"
)

// instant matches a time in UTC: in RFC 3339, as in texts that the command line also prints, or in the format of Stamp.
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
