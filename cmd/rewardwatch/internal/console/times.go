package console

import (
	"html/template"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

// times returns a text as HTML with its times in the format of pages, so that the script finds them and shows them in
// local time.
func times(text string) template.HTML {
	return template.HTML(words.EachTime(text, timeElement, template.HTMLEscapeString))
}

func timeElement(at time.Time) string {
	text := words.Stamp(at)
	return `<time datetime="` + at.UTC().Format(time.RFC3339) + `" title="` + text + `">` + text + `</time>`
}
