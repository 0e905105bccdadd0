package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
)

// Segments of format 2 have their head in front of the parts:
//
//	generation (8) | length of the name (4) | name | number of live parts (4) | for each, sorted by name:
//	    length of its name (4) | name | generation of its segment (8) | offset in that (8) | length (8) | CRC-32C (4)
//
// decodeHead2 reads what follows their version.
func decodeHead2(body []byte) (*headWire, error) {
	r := reader{left: body}
	head := &headWire{Generation: r.uint64(), Name: r.string()}
	for n := r.uint32(); n > 0 && !r.short; n-- {
		head.Live = append(head.Live, placeWire{
			Part: r.string(), Generation: r.uint64(), Offset: r.uint64(), Length: r.uint64(), Sum: r.uint32(),
		})
	}
	if r.short {
		return nil, errCutShort
	}
	return head, nil
}

// reader reads fields from the front of left. Once bytes run out, it returns zero values.
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

// isFormat1 recognizes a checkpoint of version 1: one snapshot per file, its checksum in the header.
func isFormat1(file []byte) bool {
	const checksumAt = prefixSize + 4 + 8
	if len(file) < checksumAt+checksumSize || binary.LittleEndian.Uint32(file[len(magic):]) != 1 {
		return false
	}
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(file[:checksumAt], castagnoli), castagnoli, file[checksumAt+checksumSize:])
	return sum == binary.LittleEndian.Uint32(file[checksumAt:])
}
