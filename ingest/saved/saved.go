// Package saved writes the parts of checkpoints, and reads those of this build and of the previous format.
//
// A part is a byte with the version of its format, followed by a wire form: a struct separate from the type that it
// saves, whose fields have numbers instead of names. A new field gets a number that was never used. It reads as zero
// from an older part, and an older build skips it. The version increases only when that would be wrong; parts of the
// previous version are then migrated: raise the version of the part's Format, make Before a Migration, and replace the
// parts under testdata/snapshots.
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
	Version byte                     // of what is written
	Before  map[byte]Migration[Wire] // the earlier versions that are read as well
}

// Migration returns the wire form of this build for the body of an older part, without its version byte.
type Migration[Wire any] func(body []byte) (*Wire, error)

// Same is the migration of a version whose wire form is that of this build: only what follows it has changed, or what it
// means.
func Same[Wire any](body []byte) (*Wire, error) {
	if wire, whole := Planned[Wire](body); whole {
		return wire, nil
	}
	return General[Wire](body)
}

// General is what Same returns, by the general decoder alone. It is several times as slow.
func General[Wire any](body []byte) (*Wire, error) {
	wire := new(Wire)
	return wire, decodeMode.Unmarshal(body, wire)
}

// ErrNewer means that a newer build has written a part.
var ErrNewer = errors.New("it was written by a newer build")

// Encode returns the part for a wire form.
func (f Format[Wire]) Encode(wire *Wire) ([]byte, error) {
	room := encodeRoom.Get().(*bytes.Buffer)
	defer encodeRoom.Put(room)
	room.Reset()
	room.WriteByte(f.Version)
	err := encodeMode.MarshalToBuffer(wire, room)
	return bytes.Clone(room.Bytes()), err
}

// encodeRoom has the memory in which parts are encoded.
var encodeRoom = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Decode reads a part. It refuses one that is truncated or of an unsupported version; the error is ErrNewer if a newer
// build reads that version.
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

// Parts are CBOR: floats keep their bits, including NaN and infinities, times their nanoseconds, and strings that are
// not UTF-8 their bytes. The layout of a type is determined once per process, not for every part.
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
		panic(err) // the options above contradict one another
	}
	return mode
}
