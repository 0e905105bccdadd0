package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/config"
	"github.com/rewardwatch/rewardwatch/ingest"
	shapes "github.com/rewardwatch/rewardwatch/ingest/mapping/propose"
	"github.com/rewardwatch/rewardwatch/ingest/recording"
)

// Limits on the messages of a topic that are kept to recognize their format.
const (
	keptMessages = 5000
	keptBytes    = 16 << 20
)

// keeper is a format that keeps messages, and makes an empty event of each.
type keeper struct{ kept *[]ingest.Message }

// NewDecoder implements ingest.Format.
func (k keeper) NewDecoder(ingest.DecoderOptions) ingest.Decoder { return &keeping{kept: k.kept} }

type keeping struct {
	kept *[]ingest.Message
	size int
}

// Decode implements ingest.Decoder.
func (k *keeping) Decode(dst []ingest.Event, m *ingest.Message, _ func(*ingest.RecordError, []byte)) []ingest.Event {
	if len(*k.kept) < keptMessages && k.size+len(m.Value) <= keptBytes {
		k.size += len(m.Value)
		own := ingest.Message{Topic: m.Topic, Pos: m.Pos, TS: m.TS, Key: bytes.Clone(m.Key), Value: bytes.Clone(m.Value)}
		for _, h := range m.Headers {
			own.Headers = append(own.Headers, ingest.Header{Key: strings.Clone(h.Key), Value: bytes.Clone(h.Value)})
		}
		*k.kept = append(*k.kept, own)
	}
	return append(dst, ingest.Event{Pos: m.Pos})
}

// Reset implements ingest.Decoder.
func (*keeping) Reset() {}

// errEnough ends the reading of files once enough messages are kept.
var errEnough = errors.New("enough is kept")

// enough is a processor that ends the reading once enough messages are kept.
type enough struct {
	ingest.Processor
	kept *[]ingest.Message
}

// Process implements ingest.Processor.
func (e enough) Process(context.Context, []ingest.Event) error {
	if len(*e.kept) >= keptMessages {
		return errEnough
	}
	return nil
}

// keepFiles returns the first messages of files.
func keepFiles(ctx context.Context, files []string) (kept []ingest.Message, err error) {
	_, err = recording.ReadFiles(ctx, recording.FilesConfig{Format: keeper{&kept}}, files, enough{kept: &kept})
	if errors.Is(err, errEnough) || len(kept) > 0 {
		err = nil // a broken file is reported when it is inspected
	}
	return kept, err
}

// keepTopic returns the newest messages of a topic, in the order of their Kafka timestamps.
func keepTopic(ctx context.Context, kafka config.KafkaConfig, topic string) (kept []ingest.Message, err error) {
	connection := kafka.KafkaConfig
	connection.Topic = topic
	_, err = recording.ReadTopic(ctx, recording.TopicConfig{Place: recording.Place{Kafka: connection}, Format: keeper{&kept}, Newest: keptMessages}, enough{kept: new([]ingest.Message)})
	slices.SortStableFunc(kept, func(a, b ingest.Message) int { return int(min(1, max(-1, a.TS-b.TS))) })
	return kept, err
}

// decode decodes messages in a format. It returns how many of them have that format.
func decode(ctx context.Context, f ingest.Format, messages []ingest.Message) (ok int, err error) {
	d := f.NewDecoder(ingest.DecoderOptions{MaxRecord: ingest.DefaultMaxRecord})
	for i := range messages {
		if err := ingest.Prepare(ctx, d, &messages[i]); err != nil {
			return ok, err
		}
		refused := false
		d.Decode(nil, &messages[i], func(*ingest.RecordError, []byte) { refused = true })
		if !refused {
			ok++
		}
		d.Reset()
	}
	return ok, nil
}

// records returns the records for which a mapping is proposed.
func records(messages []ingest.Message) (out []shapes.Record) {
	for i := range messages {
		m := &messages[i]
		headers := map[string]string{}
		for _, h := range m.Headers {
			headers[h.Key] = string(h.Value)
		}
		if json.Valid(m.Value) {
			out = append(out, shapes.Record{JSON: m.Value, Key: m.Key, Headers: headers})
			continue
		}
		for line := range bytes.Lines(m.Value) {
			out = append(out, shapes.Record{JSON: line, Key: m.Key, Headers: headers})
		}
	}
	return out
}
