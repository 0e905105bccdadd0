// Package packed stores units that wait for a long time, using little memory.
package packed

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// blockBytes is the number of bytes of encoded units that are compressed together.
const blockBytes = 4 << 10

// Queue is a first-in-first-out queue of units with increasing numbers and their arrival times. Units are encoded when
// they are added, and compressed in blocks. The zero value is empty and ready to use. It is not safe for concurrent
// use.
type Queue struct {
	open   row      // oldest units, some of which may have been removed
	blocks [][]byte // compressed rows
	firsts []int64  // number of the first unit in each block
	last   row      // newest units
	units  int
	bytes  int64 // of blocks
}

// row is a sequence of encoded units. Each is preceded by the differences of its number and its time in Unix
// nanoseconds to those of the previous unit, or to 0 for the first unit.
type row struct {
	bytes      []byte
	number, at int64 // of the last unit that was written or read
}

// Unit is a unit in a queue.
type Unit struct {
	*ingest.Unit
	Number int64
	Now    time.Time
}

// Len returns the number of units.
func (q *Queue) Len() int { return q.units }

// Bytes returns the memory of the units.
func (q *Queue) Bytes() int64 { return q.bytes + int64(cap(q.open.bytes)+cap(q.last.bytes)) }

// Add adds a unit. Its number must be greater than that of the last unit. Add does not retain its memory.
func (q *Queue) Add(u *ingest.Unit, number int64, now time.Time) {
	q.units++
	q.last.add(u, number, nanoseconds(now))
	if len(q.last.bytes) < blockBytes {
		return
	}
	first, _ := binary.Uvarint(q.last.bytes)
	packed := slices.Clone(s2.Encode(nil, q.last.bytes)) // trimmed to its size
	q.blocks, q.firsts = append(q.blocks, packed), append(q.firsts, int64(first))
	q.bytes += int64(cap(packed))
	q.last = row{}
}

// First returns the number of the oldest unit. It returns false if the queue is empty.
func (q *Queue) First() (number int64, any bool) {
	switch {
	case len(q.open.bytes) > 0:
		return q.open.next(), true
	case len(q.blocks) > 0:
		return q.firsts[0], true
	case len(q.last.bytes) > 0:
		first, _ := binary.Uvarint(q.last.bytes)
		return int64(first), true
	}
	return 0, false
}

// Next removes the oldest unit and returns it. The queue must not be empty.
func (q *Queue) Next() Unit {
	if len(q.open.bytes) == 0 {
		q.unpack()
	}
	q.units--
	u := q.open.cut()
	if len(q.open.bytes) == 0 {
		q.open = row{}
	}
	return u
}

// unpack decompresses the oldest row.
func (q *Queue) unpack() {
	if len(q.blocks) == 0 {
		q.open, q.last = row{bytes: q.last.bytes}, row{}
		return
	}
	oldest := q.blocks[0]
	q.open = row{bytes: must(s2.Decode(nil, oldest))}
	q.bytes -= int64(cap(oldest))
	q.blocks[0] = nil
	if q.blocks, q.firsts = q.blocks[1:], q.firsts[1:]; len(q.blocks) == 0 {
		q.blocks, q.firsts = nil, nil
	}
}

func (r *row) add(u *ingest.Unit, number, at int64) {
	r.bytes = binary.AppendUvarint(r.bytes, uint64(number-r.number))
	r.bytes = binary.AppendVarint(r.bytes, at-r.at)
	r.bytes = ingest.AppendUnit(r.bytes, u)
	r.number, r.at = number, at
}

// next returns the number of the next unit to read.
func (r *row) next() int64 {
	more, _ := binary.Uvarint(r.bytes)
	return r.number + int64(more)
}

// cut reads the next unit.
func (r *row) cut() Unit {
	more, n := binary.Uvarint(r.bytes)
	later, m := binary.Varint(r.bytes[n:])
	u, rest, err := ingest.CutUnit(r.bytes[n+m:])
	r.bytes, r.number, r.at = rest, r.number+int64(more), r.at+later
	return Unit{must(u, err), r.number, fromNanoseconds(r.at)}
}

// must returns a value decoded from what Add has encoded, which can only fail if memory is corrupted.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// nanoseconds returns a time in Unix nanoseconds, or 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanoseconds(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}
