package registry

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrNotFramed means that a message is not in Confluent's wire format.
var ErrNotFramed = errors.New("a message must start with a zero byte and a 4-byte schema ID")

// prefix is the length of the prefix that Confluent's wire format adds to a message.
const prefix = 5

// Split returns the schema ID of a message in Confluent's wire format, and the bytes after it.
func Split(value []byte) (id int, rest []byte, err error) {
	switch {
	case len(value) < prefix:
		return 0, nil, fmt.Errorf("%w, but this one has only %d bytes", ErrNotFramed, len(value))
	case value[0] != 0:
		return 0, nil, fmt.Errorf("%w, but this one starts with 0x%02x", ErrNotFramed, value[0])
	}
	return int(binary.BigEndian.Uint32(value[1:prefix])), value[prefix:], nil
}
