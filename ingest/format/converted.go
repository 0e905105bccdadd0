package format

import (
	"context"
	"strconv"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Converter rewrites messages in another format as JSON.
type Converter interface {
	// Convert appends the records of a message to dst, each as a JSON object on a separate line, and returns the result.
	// An error refuses the whole message. If there is no line, the message contains no records.
	Convert(dst []byte, m *ingest.Message) ([]byte, *ingest.RecordError)
}

// expansion is the maximum size of a message as JSON, in multiples of its maximum size in the original format.
const expansion = 16

// asJSON is the format of messages that a converter rewrites as JSON records in another format.
type asJSON struct {
	records ingest.Format
	convert func(o ingest.DecoderOptions) Converter // the limit in o is that of a message as JSON
}

// NewDecoder implements ingest.Format.
func (f asJSON) NewDecoder(o ingest.DecoderOptions) ingest.Decoder { return f.newDecoder(o) }

func (f asJSON) newDecoder(o ingest.DecoderOptions) *converted {
	o.MaxRecord *= expansion
	return &converted{converter: f.convert(o), json: f.records.NewDecoder(o)}
}

// converted decodes the JSON that its converter makes from messages.
type converted struct {
	converter Converter
	json      ingest.Decoder
	lines     []byte
}

// Prepare implements ingest.Preparer. It calls Prepare of the converter if that is a Preparer.
func (c *converted) Prepare(ctx context.Context, m *ingest.Message) error {
	if p, ok := c.converter.(ingest.Preparer); ok {
		return p.Prepare(ctx, m)
	}
	return nil
}

// keptLines is the maximum number of bytes of JSON that are kept for reuse.
const keptLines = 1 << 20

// Decode implements ingest.Decoder. A refusal contains the bytes of the whole message, rather than those of its JSON.
func (c *converted) Decode(dst []ingest.Event, m *ingest.Message, refuse func(e *ingest.RecordError, raw []byte)) []ingest.Event {
	lines, err := c.converter.Convert(c.lines[:0], m)
	if c.lines = lines; cap(lines) > keptLines {
		c.lines = nil
	}
	switch {
	case err != nil:
		refuse(err, m.Value)
		return dst
	case len(lines) == 0:
		return dst
	}
	asJSON := *m
	asJSON.Value = lines
	return c.json.Decode(dst, &asJSON, func(e *ingest.RecordError, raw []byte) {
		if raw != nil {
			raw = m.Value
		}
		if e.Size = int64(len(m.Value)); e.Column > 0 {
			e.Msg, e.Column = e.Msg+" (column "+strconv.Itoa(e.Column)+" as JSON)", 0
		}
		refuse(e, raw)
	})
}

// Reset implements ingest.Decoder.
func (c *converted) Reset() { c.json.Reset() }
