package config

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/format"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/mapping"
	"github.com/rewardwatch/rewardwatch/ingest/receive"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
	"github.com/rewardwatch/rewardwatch/ingest/repartition"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// LogConfig configures a log on this machine, for telemetry received over HTTP, instead of Kafka. Telemetry that two
// checkpoints do not cover yet is never removed.
type LogConfig struct {
	Directory string          `yaml:"directory"` // directory of the log, which is created if missing. If not set, telemetry is read from Kafka
	MaxSize   ingest.ByteSize `yaml:"max_size"`  // size above which the oldest telemetry is removed. If that telemetry has not been judged yet, new telemetry is rejected with status 429
	MaxAge    model.Duration  `yaml:"max_age"`   // age above which telemetry is removed, up to a day later (0 for no limit)
	Mapping   mapping.Config  `yaml:"mapping"`   // what the fields of telemetry v1 are in the records, where they have another shape
}

// The bounds of the log. The smallest log has room for several of the largest batches.
const (
	minLogSize = 128 * ingest.MiB
	minLogAge  = model.Duration(time.Hour)
	// segments is the number of segments in the largest log, unless they would be larger than maxSegment.
	segments   = 8
	maxSegment = 64 * ingest.MiB
)

func defaultLogConfig() LogConfig {
	return LogConfig{MaxSize: 10 * ingest.GiB, MaxAge: model.Duration(30 * 24 * time.Hour)}
}

// Options returns the options for opening the log.
func (c LogConfig) Options() locallog.Options {
	return locallog.Options{
		Name: "telemetry", Directory: c.Directory, MaxSize: int64(c.MaxSize), SegmentSize: int64(min(maxSegment, c.MaxSize/segments)),
		MaxAge: time.Duration(c.MaxAge),
	}
}

func (c LogConfig) check(report func(path, msg string)) {
	d := defaultLogConfig()
	if c.Directory == "" && (c.MaxSize != d.MaxSize || c.MaxAge != d.MaxAge || !c.Mapping.IsZero()) {
		report("directory", "must be set, or the other keys of log have no effect")
	}
	if c.MaxSize < minLogSize {
		report("max_size", "must be at least "+minLogSize.String())
	}
	if c.MaxAge != 0 && c.MaxAge < minLogAge {
		report("max_age", fmt.Sprintf("must be 0 for no limit, or at least %s", minLogAge))
	}
	c.Mapping.Check(func(path, msg string) { report("mapping."+path, msg) })
}

// IsLocal reports whether the telemetry is in a local log instead of Kafka.
func (c IngestConfig) IsLocal() bool { return c.Log.Directory != "" }

// topics returns the telemetry topics: those in Kafka, or the one that represents the local log.
func (c IngestConfig) topics() KafkaConfig {
	kafka := c.Kafka
	if c.IsLocal() {
		kafka.Topics = []format.Topic{{Topic: receive.LocalTopic, Mapping: c.Log.Mapping}}
	}
	return kafka
}

// Telemetry returns the topics to read.
func (c IngestConfig) Telemetry() []format.Topic { return c.topics().Telemetry() }

// Reads reports whether a topic is a telemetry topic.
func (c IngestConfig) Reads(topic string) bool { return c.topics().Reads(topic) }

// Files returns how to read files with recorded telemetry, like KafkaConfig.Files.
func (c IngestConfig) Files(topic string, files []string) (recording.FilesConfig, error) {
	return c.topics().Files(topic, files)
}

// Open opens the formats of the topics, in the order of Telemetry. It also returns their place, with the first topic.
func (c IngestConfig) Open() (recording.Place, []ingest.Topic, error) {
	kafka, topics, err := c.topics().Open()
	return recording.Place{Kafka: kafka, Log: c.Log.Directory}, topics, err
}

// OpenJudged is Open for the telemetry that is judged: the telemetry itself, or the repartition topic.
func (c IngestConfig) OpenJudged() (recording.Place, []ingest.Topic, error) {
	if c.Kafka.RepartitionTopic == "" {
		return c.Open()
	}
	kafka := c.Kafka.judged().KafkaConfig
	return recording.Place{Kafka: kafka}, []ingest.Topic{{Name: kafka.Topic, Format: repartition.Format{}}}, nil
}

// checkLocal reports settings that require Kafka in a service without it.
func (c *Config) checkLocal(report func(path, msg string)) {
	if !c.Ingest.IsLocal() {
		return
	}
	if filepath.Clean(c.Ingest.Log.Directory) == filepath.Clean(c.Checkpoint.Directory) {
		report("ingest.log.directory", "must not be the same as checkpoint.directory, because each directory has its own lock")
	}
	if c.Ingest.DeadLetters.Topic != "" {
		report("ingest.dead_letters.topic", "cannot be combined with ingest.log, which works without Kafka; set directory instead")
	}
	if c.Cluster.Enabled() {
		report("cluster", "cannot be combined with ingest.log, which supports only one instance; a cluster requires Kafka")
	}
	for i, t := range c.Retrain.Targets {
		if t.Kafka.Topic != "" && len(t.Kafka.Brokers) == 0 {
			report(yamlfile.Join(fmt.Sprintf("retrain.targets[%d].kafka", i), "brokers"), "must be set if ingest.log is used, because there are no Kafka brokers to inherit")
		}
	}
}
