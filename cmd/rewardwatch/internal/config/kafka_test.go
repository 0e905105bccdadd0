package config

import (
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

func TestLinesOfFilesAreThoseOfATopic(t *testing.T) {
	mapped := mapping.Config{Fields: map[string]mapping.Field{"policy": {Value: []byte(`"p"`)}, "reward": {Source: mapping.Source{Path: "r"}}}}
	one, two := format.Topic{Topic: "one"}, format.Topic{Topic: "two", Mapping: mapped}
	for name, test := range map[string]struct {
		topics []format.Topic
		topic  string
		mapped bool
		err    string
	}{
		"no topics":     {},
		"topic":         {topic: "agent-telemetry"},
		"another":       {topic: "one", err: `no topic "one", but agent-telemetry`},
		"one":           {topics: []format.Topic{two}, mapped: true},
		"several":       {topics: []format.Topic{one, two}, err: "say with --topic which of them the files hold records of: one, two"},
		"one of them":   {topics: []format.Topic{one, two}, topic: "two", mapped: true},
		"none of them":  {topics: []format.Topic{one, two}, topic: "three", err: `no topic "three", but one, two`},
		"the other one": {topics: []format.Topic{one, two}, topic: "one"},
	} {
		c := Default().Ingest.Kafka
		c.Topics = test.topics
		got, err := c.Lines(test.topic)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %s", name, err, test.err)
			}
			continue
		}
		if _, is := got.(telemetry.Mapped); err != nil || is != test.mapped {
			t.Errorf("%s: %T, %v", name, got, err)
		}
	}
}
