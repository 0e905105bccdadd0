package ingest

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ChecksumOn returns the checksum of what sum is the checksum of, followed by b.
func ChecksumOn(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }
