package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/repartition"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// KafkaConfig configures the topics that contain telemetry. They must not be compacted. For a single topic with
// telemetry version 1, set `topic`. For several topics or other formats, set `topics`. You can append topics later, but
// not reorder them. Records of aborted transactions are skipped.
type KafkaConfig struct {
	ingest.KafkaConfig `yaml:",inline"`
	Topics             []format.Topic `yaml:"topics"` // topics of the telemetry, instead of topic

	// topic to which the service writes all telemetry, partitioned by feedback key, for decisions and feedback that are
	// partitioned differently. Created if missing
	RepartitionTopic string `yaml:"repartition_topic"`

	tenants tenant.List // tenants whose events are renamed as they are decoded
}

// judged returns the configuration of the topics that are judged: the telemetry, or the repartition topic.
func (c KafkaConfig) judged() KafkaConfig {
	if c.RepartitionTopic != "" {
		c.Topic, c.Topics, c.RepartitionTopic = c.RepartitionTopic, nil, ""
		c.Group += "-repartitioned"
		c.MaxMessage = repartition.Largest(c.MaxMessage)
	}
	return c
}

// Telemetry returns the topics to read: Topics, or else Topic.
func (c KafkaConfig) Telemetry() []format.Topic {
	if len(c.Topics) > 0 {
		return c.Topics
	}
	return []format.Topic{{Topic: c.Topic}}
}

// Names returns the names of the telemetry topics.
func (c KafkaConfig) Names() (names []string) {
	for _, t := range c.Telemetry() {
		names = append(names, t.Topic)
	}
	return names
}

// Reads reports whether a topic is a telemetry topic.
func (c KafkaConfig) Reads(topic string) bool {
	for _, t := range c.Telemetry() {
		if t.Topic == topic {
			return true
		}
	}
	return false
}

// Only returns the configuration for reading the named topics. Topics that are listed in Topics keep their formats.
func (c KafkaConfig) Only(topics ...string) KafkaConfig {
	listed := c.Topics
	c.Topic, c.Topics = topics[0], nil
	for _, name := range topics {
		i := slices.IndexFunc(listed, func(t format.Topic) bool { return t.Topic == name })
		switch {
		case i >= 0:
			c.Topics = append(c.Topics, listed[i])
		case len(topics) > 1:
			c.Topics = append(c.Topics, format.Topic{Topic: name})
		}
	}
	return c
}

// Open opens the formats of the topics, in the order of Telemetry. It also returns the connection, for the first topic.
func (c KafkaConfig) Open() (ingest.KafkaConfig, []ingest.Topic, error) {
	kafka := c.KafkaConfig
	var topics []ingest.Topic
	for _, t := range c.Telemetry() {
		opened, err := t.Open()
		if err != nil {
			return kafka, nil, fmt.Errorf("open the format of %w", err)
		}
		topics = append(topics, ingest.Topic{Name: t.Topic, Format: c.tenants.Format(t.Topic, opened)})
	}
	kafka.Topic = topics[0].Name
	return kafka, topics, nil
}

// Files returns how to read files with recorded telemetry: in the format of the named topic. Without a name, there must
// be only one topic, or the name of each file must begin with the name of its topic, before a dot.
func (c KafkaConfig) Files(topic string, files []string) (recording.FilesConfig, error) {
	if len(c.Topics) == 0 && topic == "" {
		return recording.FilesConfig{Format: c.tenants.Format(c.Topic, telemetry.V1{})}, nil
	}
	names := c.Names()
	for _, t := range c.Telemetry() {
		if t.Topic == topic || topic == "" && len(c.Topics) == 1 {
			lines, err := t.OpenLines()
			return recording.FilesConfig{Format: c.tenants.Format(t.Topic, lines)}, err
		}
	}
	if topic != "" {
		return recording.FilesConfig{}, fmt.Errorf("--topic: unknown topic %q; the configuration has %s", topic, strings.Join(names, ", "))
	}
	return c.sideBySide(files, names)
}

// sideBySide groups files by the topics that they are named after.
func (c KafkaConfig) sideBySide(files, names []string) (out recording.FilesConfig, err error) {
	for _, file := range files {
		if c.topicOf(file) == "" {
			return out, fmt.Errorf("the configuration has more than one topic, and the file name %s does not match any of them: rename the file to TOPIC.ndjson, or set --topic to the topic of all files, one of: %s", file, strings.Join(names, ", "))
		}
	}
	for i, t := range c.Topics {
		has := func(path string) bool { return c.topicOf(path) == t.Topic }
		if !slices.ContainsFunc(files, has) {
			continue
		}
		lines, err := t.OpenLines()
		if err != nil {
			return out, err
		}
		out.Topics = append(out.Topics, recording.FileTopic{Index: i, Format: c.tenants.Format(t.Topic, lines), Has: has})
	}
	if len(out.Topics) == 1 {
		return recording.FilesConfig{Format: out.Topics[0].Format}, nil
	}
	return out, nil
}

// topicOf returns the topic that a file is named after, the longest one if several match, or "" if none does.
func (c KafkaConfig) topicOf(file string) (topic string) {
	base := filepath.Base(file)
	for _, t := range c.Topics {
		if (base == t.Topic || strings.HasPrefix(base, t.Topic+".")) && len(t.Topic) > len(topic) {
			topic = t.Topic
		}
	}
	return topic
}

// check reports every value that is out of range.
func (c KafkaConfig) check(report func(path, msg string)) {
	c.Check(report)
	if len(c.Topics) > ingest.MaxTopics {
		report("topics", fmt.Sprintf("must be at most %d", ingest.MaxTopics))
	}
	switch {
	case c.RepartitionTopic == "":
	case !ingest.ValidTopic(c.RepartitionTopic):
		report("repartition_topic", "must be 1 to 249 letters, digits, dots, underscores and hyphens")
	case c.Reads(c.RepartitionTopic):
		report("repartition_topic", "must not be a telemetry topic, because the telemetry is written to it")
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
