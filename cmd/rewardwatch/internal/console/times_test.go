package console

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
)

func TestTimesHaveOneFormat(t *testing.T) {
	const element = `<time datetime="2026-11-20T08:00:05Z" title="2026-11-20 08:00:05 UTC">2026-11-20 08:00:05 UTC</time>`
	for text, want := range map[string][2]string{
		"":                                {"", ""},
		"none":                            {"none", "none"},
		"since 2026-11-20T08:00:05Z. <b>": {"since 2026-11-20 08:00:05 UTC. <b>", "since " + element + ". &lt;b&gt;"},
		"(2026-11-20T08:00:05.123456789Z, 2026-11-20 08:00:05 UTC)": {"(2026-11-20 08:00:05 UTC, 2026-11-20 08:00:05 UTC)", "(" + element + ", " + element + ")"},
		// These are names, or not times in UTC.
		"run-2026-11-20T08:00:05Z 2026-11-20T08:00:05Z-2": {"run-2026-11-20T08:00:05Z 2026-11-20T08:00:05Z-2", "run-2026-11-20T08:00:05Z 2026-11-20T08:00:05Z-2"},
		"2026-11-20T08:00:05+02:00 2026-13-20T08:00:05Z":  {"2026-11-20T08:00:05+02:00 2026-13-20T08:00:05Z", "2026-11-20T08:00:05+02:00 2026-13-20T08:00:05Z"},
	} {
		if got := words.Stamped(text); got != want[0] {
			t.Errorf("%q is stamped %q, want %q", text, got, want[0])
		}
		if got := string(times(text)); got != want[1] {
			t.Errorf("%q is %q, want %q", text, got, want[1])
		}
	}
}

// No text of a page has another format of times, and each time is an element that the script can show in local time.
func TestPagesHaveOneFormatOfTimes(t *testing.T) {
	element := regexp.MustCompile(`<time datetime="[^"]*" title="[^"]*">[^<]*</time>`)
	tag := regexp.MustCompile(`<[^>]*>`)
	r := newRig(t)
	for path, least := range map[string]int{
		"/": 2, "/incidents": 2, "/incidents/5f0c2e9a11d04b7c": 10, "/retrain": 2, "/retrain/rr_waits": 2, "/retrain/rr_missed": 3,
	} {
		w := r.send(http.MethodGet, path, nil)
		if w.Code != http.StatusOK {
			t.Fatalf("%s answers with %d", path, w.Code)
		}
		body := w.Body.String()
		if n := len(element.FindAllString(body, -1)); n < least {
			t.Errorf("%s has %d times, want at least %d", path, n, least)
		}
		text := tag.ReplaceAllString(element.ReplaceAllString(body, ""), " ")
		if found := regexp.MustCompile(`.{0,60}\d\d:\d\d:\d\d.{0,20}`).FindAllString(text, -1); found != nil {
			t.Errorf("%s has times that are not shown in local time: %q", path, found)
		}
	}
}
