package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// A segment is what one save writes: the parts that it was given, followed by the places of all live parts of the
// checkpoint. Integers are little endian:
//
//	magic (8) | format version (4) | parts | head | length of the head (8) | CRC-32C of everything before it (4)
//
// Magic, version and the last checksum have the same place in every version, which distinguishes a damaged segment from
// one of another version. The head has its own version, and may get new fields without a new version.
const (
	magic         = "rwcheck\n"
	formatVersion = 3
	checksumSize  = 4
	prefixSize    = len(magic) + 4
	tailSize      = 8 + checksumSize
)

// headFormat is the format of the head of a segment.
var headFormat = saved.Format[headWire]{Version: 1}

// headWire is the head of a segment. Field numbers are never reused; see package saved for the rules.
type headWire struct {
	Name       string      `cbor:"1,keyasint"`
	Generation uint64      `cbor:"2,keyasint"`
	Live       []placeWire `cbor:"3,keyasint"` // sorted by name
}

// placeWire is the location of a live part.
type placeWire struct {
	Part       string `cbor:"1,keyasint"`
	Generation uint64 `cbor:"2,keyasint"` // of the segment that contains it
	Offset     uint64 `cbor:"3,keyasint"` // in that segment
	Length     uint64 `cbor:"4,keyasint"`
	Sum        uint32 `cbor:"5,keyasint"` // CRC-32C
}

// place is the location of a part: a range in the segment of a generation.
type place struct {
	generation     uint64
	offset, length uint64
	sum            uint32
}

// index contains the locations of the live parts of a generation, by name.
type index map[string]place

// held lists the live parts in a segment, with their total size.
type held struct {
	parts []string
	bytes uint64
}

// segments groups the live parts by the generation of their segment.
func (x index) segments() map[uint64]held {
	out := map[uint64]held{}
	for part, at := range x {
		h := out[at.generation]
		out[at.generation] = held{append(h.parts, part), h.bytes + at.length}
	}
	return out
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// encodePieces encodes the segment of a generation from the given parts and the places of those in older segments. It
// adds the given parts to live, which is then the index of all parts. It returns the segment in pieces, so that parts
// are not copied.
func encodePieces(name string, generation uint64, parts ingest.Parts, live index) (pieces [][]byte, size int, err error) {
	pieces = append(pieces, binary.LittleEndian.AppendUint32([]byte(magic), formatVersion))
	at := uint64(prefixSize)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		data := parts[part]
		live[part] = place{generation: generation, offset: at, length: uint64(len(data)), sum: checksum(data)}
		if at += uint64(len(data)); len(data) > 0 {
			pieces = append(pieces, data)
		}
	}
	head, err := headFormat.Encode(&headWire{name, generation, live.wire()})
	if err != nil {
		return nil, 0, err
	}
	pieces = append(pieces, head, binary.LittleEndian.AppendUint64(nil, uint64(len(head))))
	sum := uint32(0)
	for _, piece := range pieces {
		sum = crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), piece)
		size += len(piece)
	}
	return append(pieces, binary.LittleEndian.AppendUint32(nil, sum)), size + checksumSize, nil
}

func (x index) wire() []placeWire {
	out := make([]placeWire, 0, len(x))
	for _, part := range slices.Sorted(maps.Keys(x)) {
		p := x[part]
		out = append(out, placeWire{part, p.generation, p.offset, p.length, p.sum})
	}
	return out
}

// errOtherVersion means that a segment is intact but has a format that this build cannot read.
var errOtherVersion = errors.New("it has a different format version")

// decode decodes a segment. The error is errOtherVersion, or says why the segment is invalid. Memory use is at most a
// multiple of the segment's size.
func decode(segment []byte) (name string, generation uint64, live index, err error) {
	if !bytes.HasPrefix(segment, []byte(magic)) {
		return "", 0, nil, errors.New("it is not a checkpoint")
	}
	if len(segment) < prefixSize+checksumSize {
		return "", 0, nil, fmt.Errorf("it has %d bytes", len(segment))
	}
	version := binary.LittleEndian.Uint32(segment[len(magic):])
	body := len(segment) - checksumSize
	if checksum(segment[:body]) != binary.LittleEndian.Uint32(segment[body:]) && !isFormat1(segment) {
		return "", 0, nil, errors.New("its checksum does not match")
	}
	var head *headWire
	switch version {
	case formatVersion:
		head, err = decodeHead(segment[prefixSize:body])
	case 2:
		head, err = decodeHead2(segment[prefixSize:body])
	default:
		err = fmt.Errorf("%w: %d, but this build reads 2 and %d", errOtherVersion, version, formatVersion)
	}
	if err != nil {
		return "", 0, nil, err
	}
	live, err = head.live()
	return head.Name, head.Generation, live, err
}

// decodeHead decodes the head, which follows the parts.
func decodeHead(body []byte) (*headWire, error) {
	at := len(body) - 8
	if at < 0 {
		return nil, errCutShort
	}
	length := binary.LittleEndian.Uint64(body[at:])
	if length > uint64(at) {
		return nil, errCutShort
	}
	head, err := headFormat.Decode(body[at-int(length) : at])
	if errors.Is(err, saved.ErrNewer) {
		return nil, fmt.Errorf("%w: %w", errOtherVersion, err)
	}
	return head, err
}

var errCutShort = errors.New("its index is truncated")

// live returns the index of a head.
func (h *headWire) live() (index, error) {
	live, last := index{}, ""
	for _, p := range h.Live {
		if len(live) > 0 && cmp.Compare(p.Part, last) <= 0 {
			return nil, errors.New("its index is not in order")
		}
		live[p.Part] = place{generation: p.Generation, offset: p.Offset, length: p.Length, sum: p.Sum}
		last = p.Part
	}
	return live, nil
}

// cut returns the part at this location in a segment. It returns false if the segment is too short or the checksum does
// not match.
func (p place) cut(segment []byte) ([]byte, bool) {
	size := uint64(len(segment))
	if p.offset > size || p.length > size-p.offset {
		return nil, false
	}
	part := segment[p.offset : p.offset+p.length : p.offset+p.length]
	return part, checksum(part) == p.sum
}
