package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

func TestFilesAreThoseOfATopic(t *testing.T) {
	mapped := mapping.Config{Fields: map[string]mapping.Field{"policy": {Value: []byte(`"p"`)}, "reward": {Source: mapping.Source{Path: "r"}}}}
	one, two := format.Topic{Topic: "one"}, format.Topic{Topic: "two", Mapping: mapped}
	for name, test := range map[string]struct {
		topics []format.Topic
		topic  string
		files  []string
		mapped bool
		side   []int // topics whose files are read in parallel
		err    string
	}{
		"no topics":     {},
		"topic":         {topic: "agent-telemetry"},
		"another":       {topic: "one", err: `unknown topic "one"; the configuration has agent-telemetry`},
		"one":           {topics: []format.Topic{two}, mapped: true},
		"several":       {topics: []format.Topic{one, two}, files: []string{"x.ndjson"}, err: "the file name x.ndjson does not match any of them: rename the file to TOPIC.ndjson, or set --topic to the topic of all files, one of: one, two"},
		"by name":       {topics: []format.Topic{one, two}, files: []string{"a/two.2026.ndjson.gz", "two"}, mapped: true},
		"both by name":  {topics: []format.Topic{one, two}, files: []string{"a/two.ndjson", "one.2.ndjson", "one.ndjson"}, side: []int{0, 1}},
		"longest name":  {topics: []format.Topic{{Topic: "one.2"}, one, two}, files: []string{"one.2.ndjson", "two.ndjson"}, side: []int{0, 2}},
		"one unnamed":   {topics: []format.Topic{one, two}, files: []string{"one.ndjson", "twofold.ndjson"}, err: "the file name twofold.ndjson does not match any of them"},
		"one of them":   {topics: []format.Topic{one, two}, topic: "two", mapped: true},
		"none of them":  {topics: []format.Topic{one, two}, topic: "three", err: `unknown topic "three"; the configuration has one, two`},
		"the other one": {topics: []format.Topic{one, two}, topic: "one"},
	} {
		c := Default().Ingest.Kafka
		c.Topics = test.topics
		got, err := c.Files(test.topic, test.files)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %s", name, err, test.err)
			}
			continue
		}
		if _, is := got.Format.(telemetry.Mapped); err != nil || is != test.mapped {
			t.Errorf("%s: %T, %v", name, got.Format, err)
		}
		var side []int
		for _, of := range got.Topics {
			if side = append(side, of.Index); !slices.ContainsFunc(test.files, of.Has) {
				t.Errorf("%s: topic %d has no file", name, of.Index)
			}
		}
		if !slices.Equal(side, test.side) {
			t.Errorf("%s: the topics %v side by side, want %v", name, side, test.side)
		}
	}
}
