// Package saved encodes the parts of checkpoints. It decodes parts of the current and the previous format.
//
// A part is a byte with the version of its format, followed by a wire form: a struct separate from the saved type,
// whose fields have numbers instead of names. A new field must have a number that was never used. In older parts it is
// zero, and older builds skip it. Increase the version only if that would be wrong. Parts of the previous version must
// then be migrated: increase Version of the part's Format, add a Migration to Before, and replace the parts under
// testdata/snapshots.
package saved

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Format is the format of a part of a checkpoint, with its wire form.
type Format[Wire any] struct {
	Version byte                     // version that is written
	Before  map[byte]Migration[Wire] // by earlier versions that can also be read
}

// Migration decodes the body of an older part, without its version byte, into the current wire form.
type Migration[Wire any] func(body []byte) (*Wire, error)

// Same is the Migration for a version with the current wire form. Since that version, only the data after the part, or
// the meaning of fields, has changed.
func Same[Wire any](body []byte) (*Wire, error) {
	if wire, whole := Planned[Wire](body); whole {
		return wire, nil
	}
	return General[Wire](body)
}

// General decodes like Same, but only uses the general decoder, which is several times slower.
func General[Wire any](body []byte) (*Wire, error) {
	wire := new(Wire)
	return wire, decodeMode.Unmarshal(body, wire)
}

// ErrNewer means that a part was written by a newer build.
var ErrNewer = errors.New("it was written by a newer build")

// Encode encodes a wire form as a part.
func (f Format[Wire]) Encode(wire *Wire) ([]byte, error) {
	room := encodeRoom.Get().(*bytes.Buffer)
	defer encodeRoom.Put(room)
	room.Reset()
	room.WriteByte(f.Version)
	err := encodeMode.MarshalToBuffer(wire, room)
	return bytes.Clone(room.Bytes()), err
}

// encodeRoom provides reused buffers for encoding.
var encodeRoom = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Decode decodes a part. It returns an error if the part is truncated or has an unsupported version. The error wraps
// ErrNewer if the version is that of a newer build.
func (f Format[Wire]) Decode(part []byte) (*Wire, error) {
	if len(part) == 0 {
		return nil, errors.New("it is missing")
	}
	version, body := part[0], part[1:]
	if version == f.Version {
		return Same[Wire](body)
	}
	if migrate, reads := f.Before[version]; reads {
		return migrate(body)
	}
	if version > f.Version {
		return nil, fmt.Errorf("%w: its format is %d, but this build reads up to %d; run the build that wrote it, or move the checkpoint aside",
			ErrNewer, version, f.Version)
	}
	return nil, fmt.Errorf("its format is %d, but this build reads formats from %d; run an intermediate build first, or move the checkpoint aside",
		version, slices.Min(append(slices.Collect(maps.Keys(f.Before)), f.Version)))
}

// Parts are encoded as CBOR without loss: floats keep all bits, including those of NaN and infinities, times their
// nanoseconds, and strings the bytes that are not valid UTF-8. The layout of a type is determined once per process, not
// for every part.
var (
	encodeMode = must(cbor.EncOptions{
		NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone, Time: cbor.TimeRFC3339Nano,
	}.UserBufferEncMode())
	decodeMode = must(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, UTF8: cbor.UTF8DecodeInvalid,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
	}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err) // only if the options above contradict each other
	}
	return mode
}
