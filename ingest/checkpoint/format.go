package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A checkpoint file, integers little endian:
//
//	magic (8) | format version (4) | length of the name (4) | length of the snapshot (8) | CRC-32C (4) | name | snapshot
//
// The checksum is taken over everything but itself, so that no byte of the file can change unseen.
const (
	magic         = "rwcheck\n"
	formatVersion = 1
	checksumAt    = len(magic) + 4 + 4 + 8
	headerSize    = checksumAt + 4
)

// DamagedError says that a checkpoint exists and cannot be trusted.
type DamagedError struct {
	Path string // of the file
	Why  string // what is wrong with it
}

// Error gives the damage and the ways out of it.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("checkpoint %s cannot be used: %s; put back a copy of it, or move it away to start what it holds from nothing "+
		"(a partition loses its open episodes and resumes at its committed offset, a bank warms up a new baseline)", e.Path, e.Why)
}

// header is everything of the file before the snapshot.
func header(name string, snapshot []byte) []byte {
	h := make([]byte, 0, headerSize+len(name))
	h = append(h, magic...)
	h = binary.LittleEndian.AppendUint32(h, formatVersion)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(name)))
	h = binary.LittleEndian.AppendUint64(h, uint64(len(snapshot)))
	h = binary.LittleEndian.AppendUint32(h, checksum(h, []byte(name), snapshot))
	return append(h, name...)
}

func checksum(parts ...[]byte) uint32 {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// open takes a file apart into its name and its snapshot. why is "" only if both are what was written.
func open(file []byte) (name string, snapshot []byte, why string) {
	if len(file) < headerSize {
		return "", nil, fmt.Sprintf("it has %d bytes and a header alone has %d", len(file), headerSize)
	}
	if !bytes.HasPrefix(file, []byte(magic)) {
		return "", nil, "it is not a checkpoint"
	}
	fields := file[len(magic):]
	if v := binary.LittleEndian.Uint32(fields); v != formatVersion {
		return "", nil, fmt.Sprintf("it has format version %d and this build reads %d", v, formatVersion)
	}
	names, snapshots := uint64(binary.LittleEndian.Uint32(fields[4:])), binary.LittleEndian.Uint64(fields[8:])
	held := uint64(len(file) - headerSize)
	if names > held || snapshots != held-names {
		return "", nil, "its length is not the one it was written with"
	}
	if checksum(file[:checksumAt], file[headerSize:]) != binary.LittleEndian.Uint32(file[checksumAt:]) {
		return "", nil, "its checksum does not match"
	}
	body := file[headerSize:]
	return string(body[:names]), body[names:], ""
}
