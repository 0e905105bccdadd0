package ingest

import (
	"context"
	"time"
)

// MaxDeadLetterRaw is how many bytes of a refused record are kept.
const MaxDeadLetterRaw = 64 << 10

// DeadLetter is a refused record: where it stood, why it was refused, and its bytes as they came.
type DeadLetter struct {
	Topic     string // "" where the record came from a file
	Pos       Position
	Reason    Reason
	Msg       string
	Raw       []byte // at most MaxDeadLetterRaw bytes
	Size      int64  // bytes of the whole record
	Truncated bool   // Raw is only the beginning of it
	Time      time.Time
}

// NewDeadLetter makes the dead letter of a refused record as a Decoder or a file reports it. It shares the memory of
// raw.
func NewDeadLetter(topic string, e *RecordError, raw []byte, now time.Time) DeadLetter {
	raw = raw[:min(len(raw), MaxDeadLetterRaw)]
	return DeadLetter{
		Topic: topic, Pos: e.Pos, Reason: e.Reason, Msg: e.Msg,
		Raw: raw, Size: e.Size, Truncated: int64(len(raw)) < e.Size, Time: now,
	}
}

// DeadLetters keeps refused records for a person to look at. Keep and Close may be called from several goroutines. Keep
// does not hold on to Raw after it has returned, and its error says that the letter is lost: the caller counts it and
// goes on, because a dead letter never stops the telemetry behind it.
type DeadLetters interface {
	Keep(ctx context.Context, l DeadLetter) error
	Close() error
}

// DeadLetterConfig says where dead letters go: to a Kafka topic where one is named, else to files.
type DeadLetterConfig struct {
	Directory string   `yaml:"directory"` // of the files
	MaxSize   ByteSize `yaml:"max_size"`  // of all files together; the oldest goes first
	Topic     string   `yaml:"topic"`     // "" for files
}

// DefaultDeadLetterConfig keeps up to 1 GiB in files under /var/lib/rewardwatch.
func DefaultDeadLetterConfig() DeadLetterConfig {
	return DeadLetterConfig{Directory: "/var/lib/rewardwatch/dead-letters", MaxSize: GiB}
}

// minDeadLetterSize holds several letters of the largest kind, or rotation would throw away the one just written.
const minDeadLetterSize = MiB

// Check reports every value that is out of range.
func (c DeadLetterConfig) Check(report func(path, msg string)) {
	if c.Topic != "" {
		if !kafkaName.MatchString(c.Topic) {
			report("topic", "must be 1 to 249 letters, digits, dots, underscores and dashes")
		}
		return
	}
	if c.Directory == "" {
		report("directory", "must not be empty where no topic is given")
	}
	if c.MaxSize < minDeadLetterSize {
		report("max_size", "must be at least "+minDeadLetterSize.String())
	}
}
