package console

import (
	"html/template"
	"regexp"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// instant matches a time in UTC: as RFC 3339, which texts have that the command line prints too, and as words.Stamp.
var instant = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z| UTC)\b`)

// eachTime returns a text in which its times and the rest are replaced. A time that is part of a name stays as it is.
func eachTime(text string, ofTime func(time.Time) string, ofRest func(string) string) string {
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

// stamped returns a text with its times in the one format of pages.
func stamped(text string) string {
	return eachTime(text, words.Stamp, func(rest string) string { return rest })
}

// times returns a text as HTML with its times in the one format of pages, so that the script finds them and shows them
// in local time.
func times(text string) template.HTML {
	return template.HTML(eachTime(text, timeElement, template.HTMLEscapeString))
}

func timeElement(at time.Time) string {
	text := words.Stamp(at)
	return `<time datetime="` + words.Time(at) + `" title="` + text + `">` + text + `</time>`
}
