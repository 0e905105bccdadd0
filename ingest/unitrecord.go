package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// A record of the units topic:
//
//	magic (2) | version (1) | kind (1) | CBOR with integer keys | CRC-32C of all before (4, little endian)
//
// Magic, version and checksum are at the same place in every version.
const (
	unitMagic        = "ru"
	unitVersion      = 1
	unitKind         = 'u'
	markKind         = 'm'
	forgetKind       = 'f'
	unitHeaderSize   = len(unitMagic) + 2
	unitChecksumSize = 4
	// maxMarkPartitions exceeds the partition count of any topic. It is checked because memory is allocated for the count
	// in a mark.
	maxMarkPartitions = 1 << 20
)

// ErrUnitVersion means that a record of the units topic is intact, but has a version that this build cannot read.
var ErrUnitVersion = errors.New("the record has an unsupported version of the units format")

// ErrUnitDamaged means that bytes are not an intact unit or record of the units topic.
var ErrUnitDamaged = errors.New("the record is damaged")

// UnitMark reports how far a partition of the telemetry topic has been read. It follows all units that the partition
// had produced by then.
type UnitMark struct {
	Partition  int32 `cbor:"1,keyasint"`
	Partitions int32 `cbor:"2,keyasint"` // number of partitions of the telemetry topic
	TS         int64 `cbor:"3,keyasint"` // latest credible event time, in Unix nanoseconds
	Run        int64 `cbor:"4,keyasint"` // Run for units that end at TS, see Unit
	End        int64 `cbor:"5,keyasint"` // when the partition was read to its end, in Unix nanoseconds; 0 if there was more to read
	At         int64 `cbor:"6,keyasint"` // when the mark was written, in Unix nanoseconds
}

// ForgetOrder makes all instances of a cluster forget a policy. Units that follow the order start the policy from
// scratch.
type ForgetOrder struct {
	Policy string `cbor:"1,keyasint"`
	By     string `cbor:"2,keyasint"`
	Why    string `cbor:"3,keyasint"`
	At     int64  `cbor:"4,keyasint"` // when the order was given, in Unix nanoseconds
}

// UnitRecords encodes and decodes the records of the units topic. It is safe for concurrent use.
type UnitRecords struct {
	encode cbor.EncMode
	decode cbor.DecMode
}

// NewUnitRecords returns a codec for the records of the units topic.
func NewUnitRecords() (*UnitRecords, error) {
	// Floats take the shortest form that preserves every bit, including those of NaN and infinities.
	encode, err := cbor.EncOptions{ShortestFloat: cbor.ShortestFloat16, NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone}.EncMode()
	if err != nil {
		return nil, fmt.Errorf("prepare the format of the units topic: %w", err)
	}
	decode, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, TagsMd: cbor.TagsForbidden}.DecMode()
	if err != nil {
		return nil, fmt.Errorf("prepare the format of the units topic: %w", err)
	}
	return &UnitRecords{encode, decode}, nil
}

// Unit encodes a unit. All positions of the unit must be in one partition, which holds for every unit.
func (r *UnitRecords) Unit(u *Unit) ([]byte, error) { return r.write(unitKind, WireUnitOf(u)) }

// Mark encodes a mark.
func (r *UnitRecords) Mark(m UnitMark) ([]byte, error) { return r.write(markKind, m) }

// Forget encodes an order.
func (r *UnitRecords) Forget(o ForgetOrder) ([]byte, error) { return r.write(forgetKind, o) }

// ReadForget decodes an order. It returns nil for other records, and for damaged ones, which Read reports.
func (r *UnitRecords) ReadForget(b []byte) *ForgetOrder {
	end := len(b) - unitChecksumSize
	if end < unitHeaderSize || string(b[:unitHeaderSize]) != unitMagic+string([]byte{unitVersion, forgetKind}) ||
		Checksum(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil
	}
	var o ForgetOrder
	if err := r.decode.Unmarshal(b[unitHeaderSize:end], &o); err != nil {
		return nil
	}
	return &o
}

func (r *UnitRecords) write(kind byte, body any) ([]byte, error) {
	b := bytes.NewBuffer(append(make([]byte, 0, 512), unitMagic...))
	b.WriteByte(unitVersion)
	b.WriteByte(kind)
	if err := r.encode.NewEncoder(b).Encode(body); err != nil {
		return nil, fmt.Errorf("write a record of the units topic: %w", err)
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), Checksum(b.Bytes())), nil
}

// Read decodes a record: a unit, which shares no memory with b, or a mark. The error wraps ErrUnitVersion or
// ErrUnitDamaged.
func (r *UnitRecords) Read(b []byte) (*Unit, *UnitMark, error) {
	end := len(b) - unitChecksumSize
	if end < unitHeaderSize || !bytes.HasPrefix(b, []byte(unitMagic)) {
		return nil, nil, fmt.Errorf("%w: its header is invalid", ErrUnitDamaged)
	}
	if Checksum(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, nil, fmt.Errorf("%w: its checksum does not match", ErrUnitDamaged)
	}
	if version := b[len(unitMagic)]; version != unitVersion {
		return nil, nil, fmt.Errorf("%w: its version is %d, but this build reads version %d; run the same build in all instances of the group, "+
			"and read the topic to its end with the old build before you start the new one", ErrUnitVersion, version, unitVersion)
	}
	body := b[unitHeaderSize:end]
	switch b[unitHeaderSize-1] {
	case unitKind:
		var w WireUnit
		if err := r.decode.Unmarshal(body, &w); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnitDamaged, err)
		}
		u, err := w.Unit()
		return u, nil, err
	case markKind:
		var m UnitMark
		if err := r.decode.Unmarshal(body, &m); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrUnitDamaged, err)
		}
		return nil, &m, m.check()
	}
	return nil, nil, fmt.Errorf("%w: its kind %q is unknown", ErrUnitDamaged, b[unitHeaderSize-1])
}

func (m *UnitMark) check() error {
	if m.Partition < 0 || m.Partition >= m.Partitions || m.Partitions > maxMarkPartitions {
		return fmt.Errorf("%w: partition %d does not exist: there are only %d", ErrUnitDamaged, m.Partition, m.Partitions)
	}
	return nil
}
