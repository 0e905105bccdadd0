package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// A record of the topic belongs to a scope, the state of one telemetry partition, and to an epoch of it, the time of
// one owner. Its key is
//
//	scope 0 epoch 0 number 0 kind 0 name 0 generation 0 CRC-32C of everything before it
//
// with the numbers in hexadecimal digits. No key is ever written twice with a value. So compaction removes only records
// with a tombstone, and no owner can harm what another has written.
//
// The value of a chunk is a piece of a segment. All other values begin with a checksum of what follows: a JSON object
// in a manifest, the noted value in a note, and in a claim its time, for people to read.
type record struct {
	epoch, number uint64
	kind          string
	name          string // of the checkpoint for a manifest; the key for a note
	generation    uint64 // of a manifest
}

// The kinds of records.
const (
	kindClaim    = "claim"    // begins an epoch if it is the first one; its number is random and identifies the owner
	kindChunk    = "chunk"    // of a segment
	kindManifest = "manifest" // completes a segment
	kindNote     = "note"     // of the journal
	kindWidth    = "width"    // in partition 0 without a scope; its number is the topic's number of partitions
)

// compare orders records by epoch and, within an epoch, by number.
func (r record) compare(other record) int {
	return cmp.Or(cmp.Compare(r.epoch, other.epoch), cmp.Compare(r.number, other.number))
}

func (r record) key(scope string) []byte {
	key := fmt.Appendf(nil, "%s\x00%016x\x00%016x\x00%s\x00%s\x00%016x\x00", scope, r.epoch, r.number, r.kind, r.name, r.generation)
	return fmt.Appendf(key, "%08x", checksum(key))
}

// parseKey is the inverse of key.
func parseKey(key []byte) (scope string, r record, err error) {
	at := bytes.LastIndexByte(key, 0) + 1
	if string(key[at:]) != fmt.Sprintf("%08x", checksum(key[:at])) {
		return "", record{}, errors.New("its checksum does not match")
	}
	parts := bytes.Split(key, []byte{0})
	n := len(parts)
	if n < 7 {
		return "", record{}, errors.New("expected seven fields")
	}
	r = record{kind: string(parts[3]), name: string(bytes.Join(parts[4:n-2], []byte{0}))}
	for _, number := range []struct {
		of   *uint64
		text []byte
	}{{&r.epoch, parts[1]}, {&r.number, parts[2]}, {&r.generation, parts[n-2]}} {
		if *number.of, err = strconv.ParseUint(string(number.text), 16, 64); err != nil {
			return "", record{}, err
		}
	}
	if r.epoch == math.MaxUint64 {
		return "", record{}, errors.New("its epoch has reached its maximum")
	}
	return string(parts[0]), r, nil
}

// wasOurs reports whether a key that parseKey rejects has the form of a valid key, so it is damaged.
func wasOurs(key []byte) bool { return bytes.Count(key, []byte{0}) >= 6 }

// seal puts a checksum before text. The result is never empty, unlike a tombstone.
func seal(text []byte) []byte { return fmt.Appendf(nil, "%08x %s", checksum(text), text) }

// unseal is the inverse of seal. whole is false if the checksum does not match.
func unseal(value []byte) (text []byte, whole bool) {
	sum, text, _ := bytes.Cut(value, []byte(" "))
	return text, string(sum) == fmt.Sprintf("%08x", checksum(text))
}

// manifest describes a segment.
type manifest struct {
	Format int      `json:"format"`
	Chunks []uint64 `json:"chunks"` // numbers of the chunks in order, in the epoch of the manifest
	Size   int      `json:"size"`   // bytes
	Sum    uint32   `json:"crc32c"` // of the whole segment
}

// topicFormat is the format of manifests. The key and the checksum before the manifest are the same in every format,
// which distinguishes a damaged manifest from one of another format.
const topicFormat = 1

var errDamagedManifest = errors.New("its manifest is damaged")

func (m *manifest) value() []byte {
	text, _ := json.Marshal(m) // cannot fail for numbers
	return seal(text)
}

func parseManifest(value []byte) (m manifest, err error) {
	text, whole := unseal(value)
	if !whole || json.Unmarshal(text, &m) != nil {
		return manifest{}, errDamagedManifest
	}
	if m.Format != topicFormat {
		return manifest{}, fmt.Errorf("%w: %d, but this build reads %d", errOtherVersion, m.Format, topicFormat)
	}
	return m, nil
}
