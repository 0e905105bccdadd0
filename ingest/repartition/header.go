package repartition

import (
	"bytes"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// The headers of the records that a Writer writes.
const (
	// SourceHeader identifies the origin of an event: topic/partition/reading/offset/number. The reading is the time when
	// the writer began to read the partition without a checkpoint, in Unix nanoseconds. The number is the index of the
	// event in its message.
	SourceHeader = "rewardwatch-source"
	// MarkHeader identifies records without an event, called marks. Its value is a time in Unix nanoseconds. Everything
	// that the telemetry topics contained at that time is in the partition before the mark.
	MarkHeader = "rewardwatch-mark"
)

// place is the position of an event in the partition that it comes from.
type place struct {
	reading, offset int64
	number          int32
}

// after reports whether p comes after q.
func (p place) after(q place) bool {
	switch {
	case p.reading != q.reading:
		return p.reading > q.reading
	case p.offset != q.offset:
		return p.offset > q.offset
	}
	return p.number > q.number
}

// sourceOf returns the name of a partition of a topic as in a SourceHeader.
func sourceOf(topic string, partition int32) string {
	return topic + "/" + strconv.Itoa(int(partition))
}

func sourceHeader(source string, p place) ingest.Header {
	b := make([]byte, 0, len(source)+48)
	b = append(append(b, source...), '/')
	b = append(strconv.AppendInt(b, p.reading, 10), '/')
	b = append(strconv.AppendInt(b, p.offset, 10), '/')
	return ingest.Header{Key: SourceHeader, Value: strconv.AppendInt(b, int64(p.number), 10)}
}

// parseSource is the inverse of sourceHeader. The source shares the memory of value.
func parseSource(value []byte) (source []byte, p place, ok bool) {
	var numbers [3]int64
	for i := len(numbers) - 1; i >= 0; i-- {
		at := bytes.LastIndexByte(value, '/')
		if at < 0 {
			return nil, p, false
		}
		n, err := strconv.ParseInt(string(value[at+1:]), 10, 64)
		if err != nil || n < 0 {
			return nil, p, false
		}
		numbers[i], value = n, value[:at]
	}
	return value, place{numbers[0], numbers[1], int32(numbers[2])}, numbers[2] < 1<<31
}

func markHeader(at time.Time) ingest.Header {
	return ingest.Header{Key: MarkHeader, Value: strconv.AppendInt(nil, at.UnixNano(), 10)}
}

// header returns the value of a message header.
func header(m *ingest.Message, key string) (value []byte, has bool) {
	for i := range m.Headers {
		if m.Headers[i].Key == key {
			return m.Headers[i].Value, true
		}
	}
	return nil, false
}

// Format is the format of the topic. It is telemetry version 1, with marks, which are not records.
type Format struct{ telemetry.V1 }

// NewDecoder implements ingest.Format.
func (f Format) NewDecoder(o ingest.DecoderOptions) ingest.Decoder {
	return decoder{f.V1.NewDecoder(o)}
}

type decoder struct{ ingest.Decoder }

// Decode implements ingest.Decoder.
func (d decoder) Decode(dst []ingest.Event, m *ingest.Message, refuse func(*ingest.RecordError, []byte)) []ingest.Event {
	if _, is := header(m, MarkHeader); is {
		return dst
	}
	return d.Decoder.Decode(dst, m, refuse)
}
