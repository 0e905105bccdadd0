// Package deadletter stores refused records for inspection, in files of limited size or in a topic.
package deadletter

import (
	"context"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Letter is a refused record: its position, the reason, and its original bytes.
type Letter struct {
	Topic     string // "" if the record came from a file
	Pos       ingest.Position
	Reason    ingest.Reason
	Msg       string
	Raw       []byte // at most MaxDeadLetterRaw bytes
	Size      int64  // of the whole record, in bytes
	Truncated bool   // Raw is only the beginning of the record
	Time      time.Time
}

// New returns a dead letter for a refused record, as reported by a Decoder or a file reader. The letter shares the
// memory of raw.
func New(topic string, e *ingest.RecordError, raw []byte, now time.Time) Letter {
	raw = raw[:min(len(raw), ingest.MaxDeadLetterRaw)]
	return Letter{
		Topic: topic, Pos: e.Pos, Reason: e.Reason, Msg: e.Msg,
		Raw: raw, Size: e.Size, Truncated: int64(len(raw)) < e.Size, Time: now,
	}
}

// Keeper stores refused records for inspection. Keep and Close are safe for concurrent use. Keep does not retain Raw
// after it returns. An error means that the letter is lost. The caller counts it and continues, because a dead letter
// must never stop the telemetry after it.
type Keeper interface {
	Keep(ctx context.Context, l Letter) error
	Close() error
}

// Config configures where rejected records are stored: in files or in a Kafka topic.
type Config struct {
	Directory string          `yaml:"directory"` // directory of the files
	MaxSize   ingest.ByteSize `yaml:"max_size"`  // maximum total size of the files. The oldest are removed first
	Topic     string          `yaml:"topic"`     // Kafka topic to use instead of files
}

// DefaultConfig returns a configuration that keeps up to 1 GiB of files under data in the working directory.
func DefaultConfig() Config {
	return Config{Directory: "data/dead-letters", MaxSize: ingest.GiB}
}

// minDeadLetterSize is large enough for several letters of the maximum size. Otherwise, rotation would remove the
// letter that was just written.
const minDeadLetterSize = ingest.MiB

// Check reports every invalid value.
func (c Config) Check(report func(path, msg string)) {
	if c.Topic != "" {
		if !ingest.ValidTopic(c.Topic) {
			report("topic", "must be 1 to 249 letters, digits, dots, underscores and hyphens")
		}
		return
	}
	if c.Directory == "" {
		report("directory", "must be set if no topic is set")
	}
	if c.MaxSize < minDeadLetterSize {
		report("max_size", "must be at least "+minDeadLetterSize.String())
	}
}
