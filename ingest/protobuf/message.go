package protobuf

import (
	"errors"
	"fmt"
	"os"

	"github.com/rewardwatch/rewardwatch/ingest"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Message is a message type.
type Message struct {
	of        protoreflect.MessageDescriptor
	unmarshal proto.UnmarshalOptions
}

// NewMessage returns the message type for a descriptor.
func NewMessage(of protoreflect.MessageDescriptor) *Message {
	return &Message{of: of, unmarshal: proto.UnmarshalOptions{AllowPartial: true, DiscardUnknown: true, RecursionLimit: 2 * ingest.MaxDepth}}
}

// Telemetry reports whether the message is an Event or an Events of telemetry.proto, which V1 reads.
func (m *Message) Telemetry() bool {
	name := m.of.FullName()
	return name == "rewardwatch.telemetry.v1.Event" || name == "rewardwatch.telemetry.v1.Events"
}

// ReadMessage returns a message type from a descriptor set file, as written by `protoc --include_imports
// --descriptor_set_out`.
func ReadMessage(file, message string) (*Message, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the descriptor set: %w", err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("read the descriptor set %s: %w", file, err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("read the descriptor set %s (generate it with --include_imports): %w", file, err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(message))
	if err != nil {
		return nil, fmt.Errorf("the descriptor set %s has no message %s", file, message)
	}
	of, is := found.(protoreflect.MessageDescriptor)
	if !is {
		return nil, fmt.Errorf("%s in the descriptor set %s is not a message", message, file)
	}
	return NewMessage(of), nil
}

// AppendJSON appends a message as one JSON object of at most limit bytes. The error has no position.
//
// Fields have the names of the .proto file. Fields without presence that are missing on the wire have their default,
// because they may have been set to it. 64-bit integers are numbers rather than strings, NaN and infinities are
// unquoted, enums are names, and bytes are base64. Timestamps, durations and the other types of google.protobuf are as
// in the JSON format of Protobuf.
func (m *Message) AppendJSON(dst, value []byte, limit int) ([]byte, *ingest.RecordError) {
	refused := func(reason ingest.Reason, err error) ([]byte, *ingest.RecordError) {
		return dst, &ingest.RecordError{Reason: reason, Size: int64(len(value)), Msg: string(m.of.FullName()) + ": " + err.Error()}
	}
	parsed := dynamicpb.NewMessage(m.of)
	if err := m.unmarshal.Unmarshal(value, parsed); err != nil {
		return refused(ingest.ReasonBadEncoding, err)
	}
	w := writer{dst: dst, limit: len(dst) + limit}
	err := w.message(parsed)
	switch {
	case errors.Is(err, errTooLarge):
		return refused(ingest.ReasonTooLarge, err)
	case errors.Is(err, errTooDeep):
		return refused(ingest.ReasonTooDeep, err)
	case err != nil:
		return refused(ingest.ReasonBadEncoding, err)
	}
	return w.dst, nil
}

// errNoMessage means that a schema does not contain the message that a record refers to.
var errNoMessage = errors.New("the schema does not contain this message")

// ConsumeIndexes reads the message indexes of Confluent's wire format. It returns the message of the file that they
// refer to, and the remaining bytes. The indexes are a count followed by that many numbers, each the index of a message
// nested in the previous one. A single 0 stands for the first message. Map entries count as messages, as they do in
// descriptors.
func ConsumeIndexes(file protoreflect.FileDescriptor, value []byte) (of protoreflect.MessageDescriptor, rest []byte, err error) {
	next := func() int64 {
		v, n := protowire.ConsumeVarint(value)
		if n < 0 {
			err = protowire.ParseError(n)
			return -1
		}
		value = value[n:]
		return protowire.DecodeZigZag(v)
	}
	count := next()
	within := file.Messages()
	for i := int64(0); i < max(count, 1) && err == nil; i++ {
		place := int64(0)
		if count > 0 {
			place = next()
		}
		if err != nil || place < 0 || place >= int64(within.Len()) {
			return nil, value, errors.Join(err, errNoMessage)
		}
		of = within.Get(int(place))
		within = of.Messages()
	}
	if count < 0 {
		return nil, value, errors.Join(err, errNoMessage)
	}
	return of, value, err
}
