// Package packed stores units that wait for a long time, using little memory.
package packed

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// blockBytes is how many bytes of encoded units are compressed together.
const blockBytes = 4 << 10

// Queue holds units, the oldest first, with numbers that increase, and with the times at which they arrived. Units are
// encoded as they come, and compressed in blocks. The zero value is empty and ready to use. One goroutine owns it.
type Queue struct {
	open   row      // the oldest units, some of which have left
	blocks [][]byte // rows, compressed
	firsts []int64  // numbers of the first units of blocks
	last   row      // the newest units
	units  int
	bytes  int64 // of blocks
}

// row is some units in a row: for each, by how much its number and its time in Unix nanoseconds exceed those of the unit
// before, and the unit. The first one exceeds 0.
type row struct {
	bytes      []byte
	number, at int64 // of the last unit that was written or read
}

// Unit is a unit of a queue.
type Unit struct {
	*ingest.Unit
	Number int64
	Now    time.Time
}

// Len returns the number of units.
func (q *Queue) Len() int { return q.units }

// Bytes returns the memory that the units take.
func (q *Queue) Bytes() int64 { return q.bytes + int64(cap(q.open.bytes)+cap(q.last.bytes)) }

// Add adds a unit, whose number is larger than that of the last one. Add keeps none of its memory.
func (q *Queue) Add(u *ingest.Unit, number int64, now time.Time) {
	q.units++
	q.last.add(u, number, nanoseconds(now))
	if len(q.last.bytes) < blockBytes {
		return
	}
	first, _ := binary.Uvarint(q.last.bytes)
	packed := slices.Clone(s2.Encode(nil, q.last.bytes)) // in as much memory as it takes
	q.blocks, q.firsts = append(q.blocks, packed), append(q.firsts, int64(first))
	q.bytes += int64(cap(packed))
	q.last = row{}
}

// First returns the number of the oldest unit; false if there is none.
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

// Next removes the oldest unit and returns it. The queue must hold one.
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

// unpack opens the oldest row.
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

// must returns a value that was made of what Add has written: only damaged memory can be an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// nanoseconds returns a time as a number, 0 for the zero time.
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
