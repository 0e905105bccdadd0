package protobuf

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/jsontext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// writer writes a message as JSON.
type writer struct {
	dst   []byte
	limit int // maximum length of dst
	depth int
}

var (
	errTooLarge = errors.New("exceeds the size limit as JSON")
	errTooDeep  = fmt.Errorf("exceeds the maximum nesting depth of %d", ingest.MaxDepth)
)

func (w *writer) message(m protoreflect.Message) error {
	switch {
	case len(w.dst) > w.limit:
		return errTooLarge
	case w.depth == ingest.MaxDepth:
		return errTooDeep
	case strings.HasPrefix(string(m.Descriptor().FullName()), "google.protobuf."):
		return w.wellKnown(m)
	}
	w.depth++
	defer func() { w.depth-- }()
	w.dst = append(w.dst, '{')
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) && (f.HasPresence() || f.IsList() || f.IsMap()) {
			continue
		}
		w.dst = jsontext.AppendKey(w.dst, string(f.Name()))
		if err := w.field(f, m.Get(f)); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, '}')
	return nil
}

// wellKnown writes a type that has a special JSON form, such as a timestamp.
func (w *writer) wellKnown(m protoreflect.Message) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.Interface())
	if err != nil {
		return err
	}
	w.dst = append(w.dst, text...)
	return nil
}

func (w *writer) field(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsMap():
		return w.object(f, v.Map())
	case f.IsList():
		w.dst = append(w.dst, '[')
		for i := range v.List().Len() {
			w.dst = jsontext.AppendComma(w.dst)
			if err := w.value(f, v.List().Get(i)); err != nil {
				return err
			}
		}
		w.dst = append(w.dst, ']')
		return nil
	}
	return w.value(f, v)
}

func (w *writer) object(f protoreflect.FieldDescriptor, m protoreflect.Map) (err error) {
	w.dst = append(w.dst, '{')
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		w.dst = jsontext.AppendKey(w.dst, k.String())
		err = w.value(f.MapValue(), v)
		return err == nil
	})
	w.dst = append(w.dst, '}')
	return err
}

func (w *writer) value(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	if len(w.dst) > w.limit {
		return errTooLarge
	}
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return w.message(v.Message())
	case protoreflect.StringKind:
		w.dst = jsontext.AppendString(w.dst, v.String())
	case protoreflect.BytesKind:
		w.dst = base64.StdEncoding.AppendEncode(append(w.dst, '"'), v.Bytes())
		w.dst = append(w.dst, '"')
	case protoreflect.BoolKind:
		w.dst = strconv.AppendBool(w.dst, v.Bool())
	case protoreflect.EnumKind:
		w.enum(f, v.Enum())
	case protoreflect.FloatKind:
		w.dst = jsontext.AppendNumber(w.dst, v.Float(), 32)
	case protoreflect.DoubleKind:
		w.dst = jsontext.AppendNumber(w.dst, v.Float(), 64)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		w.dst = strconv.AppendUint(w.dst, v.Uint(), 10)
	default:
		w.dst = strconv.AppendInt(w.dst, v.Int(), 10)
	}
	return nil
}

// enum writes the name of a value, or its number if the schema has no name for it.
func (w *writer) enum(f protoreflect.FieldDescriptor, n protoreflect.EnumNumber) {
	if named := f.Enum().Values().ByNumber(n); named != nil {
		w.dst = jsontext.AppendString(w.dst, string(named.Name()))
		return
	}
	w.dst = strconv.AppendInt(w.dst, int64(n), 10)
}
