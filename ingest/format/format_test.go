package format

import (
	"slices"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// problems returns what Check reports.
func problems(t Topic) (found []string) {
	t.Check(func(path, msg string) { found = append(found, path+": "+msg) })
	return found
}

// decode returns the events of a message in the format of a topic, and why others are refused.
func decode(t *testing.T, topic Topic, m *ingest.Message) (events []ingest.Event, refused []ingest.RecordError) {
	t.Helper()
	if found := problems(topic); len(found) > 0 {
		t.Fatal(found)
	}
	format, err := topic.Open()
	if err != nil {
		t.Fatal(err)
	}
	d := format.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	events = d.Decode(nil, m, func(e *ingest.RecordError, _ []byte) { refused = append(refused, *e) })
	return events, refused
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		topic Topic
		want  []string
	}{
		{Topic{Topic: "t"}, nil},
		{Topic{Topic: "t", Format: "protobuf"}, nil},
		{Topic{Topic: "a b", Format: "xml"}, []string{
			"topic: must be 1 to 249 letters, digits, dots, underscores and hyphens", "format: must be one of json, protobuf",
		}},
	} {
		if got := problems(c.topic); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.topic, got, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		topic Topic
		value string
	}{
		{Topic{Topic: "t"}, `{"policy":"p","reward":1}`},
		{Topic{Topic: "t", Format: "protobuf"}, "\x12\x01p\x39\x00\x00\x00\x00\x00\x00\xf0\x3f"},
	} {
		events, refused := decode(t, c.topic, &ingest.Message{Value: []byte(c.value)})
		if len(events) != 1 || events[0].Policy != "p" || events[0].Reward != 1 {
			t.Errorf("%+v: %+v %v", c.topic, events, refused)
		}
	}
}
