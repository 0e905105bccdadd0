package config

import (
	"fmt"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// KafkaConfig configures where the telemetry is and how to connect to it. Records of aborted transactions are skipped,
// and those of open ones wait. The topics must not be compacted. A single topic of telemetry v1 is given as topic; several
// topics, or other formats, as topics. Their order must not change, but more may follow later.
type KafkaConfig struct {
	ingest.KafkaConfig `yaml:",inline"`
	Topics             []format.Topic `yaml:"topics"` // topics of the telemetry, instead of topic
}

// Telemetry returns the topics to read: those of Topics, or else Topic.
func (c KafkaConfig) Telemetry() []format.Topic {
	if len(c.Topics) > 0 {
		return c.Topics
	}
	return []format.Topic{{Topic: c.Topic}}
}

// Reads reports whether a topic is one of the telemetry.
func (c KafkaConfig) Reads(topic string) bool {
	for _, t := range c.Telemetry() {
		if t.Topic == topic {
			return true
		}
	}
	return false
}

// Only returns the configuration for reading a single topic. A topic that Topics lists keeps its format.
func (c KafkaConfig) Only(topic string) KafkaConfig {
	listed := c.Topics
	c.Topic, c.Topics = topic, nil
	for _, t := range listed {
		if t.Topic == topic {
			c.Topics = []format.Topic{t}
		}
	}
	return c
}

// Open opens the formats of the topics, in the order of Telemetry. It also returns the connection, with the first topic.
func (c KafkaConfig) Open() (ingest.KafkaConfig, []ingest.Topic, error) {
	kafka := c.KafkaConfig
	var topics []ingest.Topic
	for _, t := range c.Telemetry() {
		opened, err := t.Open()
		if err != nil {
			return kafka, nil, fmt.Errorf("open the format of %w", err)
		}
		topics = append(topics, ingest.Topic{Name: t.Topic, Format: opened})
	}
	kafka.Topic = topics[0].Name
	return kafka, topics, nil
}

// Lines returns the format of the lines of files: that of the topic whose records they hold. Without a name, there must
// be only one topic.
func (c KafkaConfig) Lines(topic string) (ingest.Format, error) {
	if len(c.Topics) == 0 && topic == "" {
		return telemetry.V1{}, nil
	}
	var names []string
	for _, t := range c.Telemetry() {
		if t.Topic == topic || topic == "" && len(c.Topics) == 1 {
			return t.OpenLines()
		}
		names = append(names, t.Topic)
	}
	if topic == "" {
		return nil, fmt.Errorf("the configuration has several topics: say with --topic which of them the files hold records of: %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("--topic: the configuration has no topic %q, but %s", topic, strings.Join(names, ", "))
}

// check reports every value that is out of range.
func (c KafkaConfig) check(report func(path, msg string)) {
	c.Check(report)
	if len(c.Topics) > ingest.MaxTopics {
		report("topics", fmt.Sprintf("must not be more than %d", ingest.MaxTopics))
	}
	for i, t := range c.Topics {
		path := fmt.Sprintf("topics[%d]", i)
		t.Check(func(key, msg string) { report(yamlfile.Join(path, key), msg) })
		for _, before := range c.Topics[:i] {
			if before.Topic == t.Topic {
				report(path+".topic", "is listed twice")
			}
		}
	}
}

// checkFormats reports the formats that cannot be opened, such as those whose files cannot be read.
func (c KafkaConfig) checkFormats(report func(path, msg string)) {
	for i, t := range c.Topics {
		bad := false
		t.Check(func(string, string) { bad = true })
		if bad {
			continue
		}
		if _, err := t.Open(); err != nil {
			report(fmt.Sprintf("topics[%d]", i), err.Error())
		}
	}
}
