package telemetry

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// An event is read back as it was written.
func TestEventsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, record := range []string{
		exampleEvent,
		`{"policy":"p","action":3}`, `{"policy":"p","action":2.5}`, `{"policy":"p","action":"3"}`, `{"policy":"p","action":[1,-2.5e300,"nan"]}`, `{"policy":"p","action":true}`,
		`{"policy":"p","action":"inf"}`, `{"policy":"p","action":-Infinity}`,
		`{"policy":"p\"\\\n\u00e9","episode":{"r":-1e-9,"l":20},"terminated":true,"truncated":true,"ts":1795168800.123456789}`,
		`{"policy":"p","episode":{"r":3},"outcomes":{"a b":"-inf"},"observation":[1,2],"reward":0,"labels":{"x":"y"},"step":0}`,
	} {
		want := decodeOne(t, record)
		written := AppendEvent([]byte("x"), &want)
		if got := decodeOne(t, string(written[1:])); !same(sorted([]ingest.Event{got}), sorted([]ingest.Event{want})) {
			t.Errorf("%s\nwritten %s\nread    %+v\nwant    %+v", record, written[1:], got, want)
		}
	}
}
