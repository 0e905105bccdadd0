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
)

// A segment is what one save writes: the parts that it was given, and where all live parts of the checkpoint are.
// Integers are little endian:
//
//	magic (8) | format version (4) | generation (8) | length of the name (4) | name |
//	number of live parts (4) | for each, sorted by name:
//	    length of its name (4) | name | generation of its segment (8) | offset in that (8) | length (8) | CRC-32C (4)
//	parts | CRC-32C of everything before it (4)
//
// Magic, version and the last checksum stay where they are in every version, so that a damaged segment is told from one
// of another version.
const (
	magic         = "rwcheck\n"
	formatVersion = 2
	checksumSize  = 4
	headSize      = len(magic) + 4
	entrySize     = 4 + 8 + 8 + 8 + 4 // without the name
)

// place says where a part is: in the segment of a generation.
type place struct {
	generation     uint64
	offset, length uint64
	sum            uint32
}

// index is the live parts of a generation, by name.
type index map[string]place

// held is what of a segment is live.
type held struct {
	parts []string
	bytes uint64
}

// segments gives what is live by the generation of the segment.
func (x index) segments() map[uint64]held {
	out := map[uint64]held{}
	for part, at := range x {
		h := out[at.generation]
		out[at.generation] = held{append(h.parts, part), h.bytes + at.length}
	}
	return out
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// encode makes the segment of a generation: of the parts given, and of those that older segments hold. live becomes the
// index of all of them.
func encode(name string, generation uint64, parts ingest.Parts, live index) []byte {
	for part, data := range parts {
		live[part] = place{generation: generation, length: uint64(len(data)), sum: checksum(data)}
	}
	names := slices.Sorted(maps.Keys(live))
	at := uint64(headSize + 8 + 4 + len(name) + 4)
	for _, part := range names {
		at += uint64(entrySize + len(part))
	}
	size := at
	for _, data := range parts {
		size += uint64(len(data))
	}
	b := make([]byte, 0, size+checksumSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint64(b, generation)
	b = appendString(b, name)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(names)))
	for _, part := range names {
		p := live[part]
		if p.generation == generation {
			p.offset = at
			at += p.length
			live[part] = p
		}
		b = p.append(appendString(b, part))
	}
	for _, part := range names {
		b = append(b, parts[part]...) // none of a part that an older segment holds
	}
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

func (p place) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.generation)
	b = binary.LittleEndian.AppendUint64(b, p.offset)
	b = binary.LittleEndian.AppendUint64(b, p.length)
	return binary.LittleEndian.AppendUint32(b, p.sum)
}

// errOtherVersion says that a segment is whole and of a format that this build does not read.
var errOtherVersion = errors.New("it has another format version")

// decode reads a segment. Its error says why it is none, or is errOtherVersion. It takes no more memory than a multiple
// of the segment's.
func decode(segment []byte) (name string, generation uint64, live index, err error) {
	if !bytes.HasPrefix(segment, []byte(magic)) {
		return "", 0, nil, errors.New("it is not a checkpoint")
	}
	if len(segment) < headSize+checksumSize {
		return "", 0, nil, fmt.Errorf("it has %d bytes", len(segment))
	}
	version := binary.LittleEndian.Uint32(segment[len(magic):])
	body := len(segment) - checksumSize
	if checksum(segment[:body]) != binary.LittleEndian.Uint32(segment[body:]) && !isFormat1(segment) {
		return "", 0, nil, errors.New("its checksum does not match")
	}
	if version != formatVersion {
		return "", 0, nil, fmt.Errorf("%w: %d, and this build reads %d", errOtherVersion, version, formatVersion)
	}
	r := reader{left: segment[headSize:body]}
	generation = r.uint64()
	name = r.string()
	live = index{}
	last := ""
	for n := r.uint32(); n > 0 && !r.short; n-- {
		part := r.string()
		p := place{generation: r.uint64(), offset: r.uint64(), length: r.uint64(), sum: r.uint32()}
		if len(live) > 0 && cmp.Compare(part, last) <= 0 {
			return "", 0, nil, errors.New("its index is not in order")
		}
		live[part], last = p, part
	}
	if r.short {
		return "", 0, nil, errors.New("its index is cut short")
	}
	return name, generation, live, nil
}

// isFormat1 recognises a checkpoint as version 1 wrote it: one snapshot in a file, its checksum in the header.
func isFormat1(file []byte) bool {
	const checksumAt = headSize + 4 + 8
	if len(file) < checksumAt+checksumSize || binary.LittleEndian.Uint32(file[len(magic):]) != 1 {
		return false
	}
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(file[:checksumAt], castagnoli), castagnoli, file[checksumAt+checksumSize:])
	return sum == binary.LittleEndian.Uint32(file[checksumAt:])
}

// cut gives a part of a segment, false where it does not hold it.
func (p place) cut(segment []byte) ([]byte, bool) {
	size := uint64(len(segment))
	if p.offset > size || p.length > size-p.offset {
		return nil, false
	}
	part := segment[p.offset : p.offset+p.length : p.offset+p.length]
	return part, checksum(part) == p.sum
}

// reader takes fields off the front of what is left; once it is short of bytes it gives zeros.
type reader struct {
	left  []byte
	short bool
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.short, r.left = true, nil
		return nil
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) uint32() uint32 {
	b := r.take(4)
	if r.short {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) uint64() uint64 {
	b := r.take(8)
	if r.short {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *reader) string() string { return string(r.take(uint64(r.uint32()))) }
