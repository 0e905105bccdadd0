package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

const (
	suffix      = ".checkpoint"
	unitsSuffix = ".units" // of directories
	// longest keeps file names below the 255 bytes that file systems allow. A longer name is cut and followed by a
	// hash, which starts with a character that escaping never leaves in a name.
	longest  = 200
	hashMark = "~"
)

// fileName returns the file name of a generation. A file of version 1, which had no generations, is generation 0.
func fileName(name string, generation uint64) string { return fileOf(stem(name), generation) }

// fileOf returns the file name for a stem.
func fileOf(stem string, generation uint64) string {
	if generation == 0 {
		return stem + suffix
	}
	return fmt.Sprintf("%s.%010d%s", stem, generation, suffix)
}

// split is the inverse of fileName, except that it returns the stem. ok is false for names that fileName does not
// return.
func split(file string) (stem string, generation uint64, ok bool) {
	stem, ok = strings.CutSuffix(file, suffix)
	if !ok {
		return "", 0, false
	}
	stem, digits, numbered := strings.Cut(stem, ".")
	if !numbered {
		return stem, 0, stem != ""
	}
	generation, err := strconv.ParseUint(digits, 10, 64)
	return stem, generation, err == nil && generation > 0 && stem != "" && fmt.Sprintf("%010d", generation) == digits
}

// stem returns the prefix of a name's file names. It is unique to the name. Bytes other than lower-case letters,
// digits, "-" and "_" become %xx. Names therefore stay distinct on case-insensitive file systems, and no file is hidden
// or outside the directory.
func stem(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	escaped := b.String()
	if len(escaped) > longest {
		sum := sha256.Sum256([]byte(name))
		hash := hashMark + hex.EncodeToString(sum[:])
		escaped = escaped[:longest-len(hash)] + hash
	}
	return escaped
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// nameOf is the inverse of stem. whole is false for a truncated name, which only the files themselves contain. ok is
// false for strings that stem does not return.
func nameOf(escaped string) (name string, whole, ok bool) {
	if strings.Contains(escaped, hashMark) {
		return "", false, true
	}
	var b strings.Builder
	for rest := escaped; rest != ""; {
		if plain(rest[0]) {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		if rest[0] != '%' || len(rest) < 3 {
			return "", false, false
		}
		c, err := strconv.ParseUint(rest[1:3], 16, 8)
		if err != nil {
			return "", false, false
		}
		b.WriteByte(byte(c))
		rest = rest[3:]
	}
	return b.String(), true, stem(b.String()) == escaped
}
