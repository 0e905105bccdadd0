// Package unitlog keeps on disk the units of a partition that may have to be judged again after a restart.
package unitlog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/locallog"
	"github.com/rewardwatch/rewardwatch/ingest/order"
	"github.com/rewardwatch/rewardwatch/ingest/saved"
)

// Usual arguments of New, in bytes.
const (
	Segment = 16 << 20
	Limit   = 512 << 20
)

// How units are written to the log. A batch has unitsInBatch units, or a multiple if they take fewer than fewBytes,
// because the first decision of each kind in a batch takes the most space. A smaller batch ends at bytesInBatch, or it
// could become too large to be read. writtenTogether is the number of encoded bytes that are written at once.
// mostUnwritten is the maximum number of bytes that wait for a disk that accepts none.
const (
	unitsInBatch    = 512
	fewBytes        = 64 << 10
	bytesInBatch    = 4 << 20
	writtenTogether = 1 << 20
	mostUnwritten   = 32 << 20
)

// Log keeps on disk the units of a partition that a worker may need again. They are in batches; each unit is encoded
// once, when it arrives. The checkpoint of the partition names the batches by their offsets.
//
// A batch is needed until both of the last two saves of the workers have applied all of its units. It is dropped once
// no batch before it is needed, or none in its file. So a policy that cannot be saved keeps files that contain its own
// units, but no others. A file is removed once neither of the last two checkpoints of the partition names any of its
// batches. Only the goroutine of the partition may use a Log, except for the methods that return its sizes.
type Log struct {
	// At is the moment before which no unit is missing.
	At order.Moment

	limit    int64
	spool    *locallog.Spool
	packer   saved.UnitPacker // contains the units of the next batch
	next     batch            // the batch that is being filled
	batches  []batch          // oldest first
	dropped  map[string]int64 // by policy, the offset before which its units are void
	resuming *batch           // batch whose units are being passed on again
	until    int64            // the offset before which units are passed on again
	tried    int              // number of waiting bytes when writing them was last attempted

	named   []Range // named by the last checkpoint that was taken or restored
	durable []Range // named by the last durable checkpoint
	less    bool    // whether a checkpoint would name fewer batches than are in named

	memory atomic.Int64 // bytes of the next batch
	needed atomic.Int64 // bytes of batches
	ends   atomic.Int64 // bytes in memory of the ends of batches
	size   atomic.Int64 // bytes on disk
}

// batch is a record of the log.
type batch struct {
	offset int64
	bytes  int64
	ends   []End
	memory int64          // bytes of ends
	places map[source]int // indexes into ends; nil once no more units are added
	next   []int          // by index into ends, that of the unit that followed the last one; nil like places
	at     int            // that of the last unit
}

// source is the source of the units of an End.
type source struct {
	policy    string
	partition ingest.Partition
	reading   int64
}

// End is the last unit of a policy in a batch, from one partition of one topic.
type End struct {
	Policy string
	Last   ingest.AppliedUnit
}

// New returns the log in a directory, in files of about segment bytes. It is full if it contains limit bytes of units
// that are not saved twice.
func New(directory string, segment, limit int64) *Log {
	return &Log{spool: locallog.NewSpool(directory, segment), limit: limit, dropped: map[string]int64{}}
}

// Memory returns the memory that the units of the next batch take, in bytes.
func (l *Log) Memory() int64 { return l.memory.Load() }

// Ends returns the memory that the batches on disk take, in bytes.
func (l *Log) Ends() int64 { return l.ends.Load() }

// Needed returns the size of the batches with units that are not saved twice, and of those kept with them.
func (l *Log) Needed() int64 { return l.needed.Load() }

// HalfFull reports whether policies should be saved early, so that the log does not become full.
func (l *Log) HalfFull() bool { return 2*l.Needed() >= l.limit }

// Size returns the size of the files, in bytes.
func (l *Log) Size() int64 { return l.size.Load() }

// Unwritten returns how many bytes of batches wait for the disk. Only the goroutine of the partition may call it.
func (l *Log) Unwritten() int { return l.spool.Held() }

// NeedsLess reports whether the next checkpoint would name fewer batches than the last one. Only the goroutine of the
// partition may call it.
func (l *Log) NeedsLess() bool { return l.less }

// Add adds a unit.
func (l *Log) Add(u *order.WaitingUnit) {
	if l.resuming != nil {
		l.resuming.add(u)
		return
	}
	l.next.add(u)
	if u.Unit != nil {
		l.packer.Add(u.Unit)
	} else {
		l.packer.AddDecision(&u.Decision)
	}
	l.memory.Store(int64(l.packer.Len()))
	if n, size := l.packer.Units, l.packer.Len(); (n%unitsInBatch != 0 || size < fewBytes) && size < bytesInBatch {
		return
	}
	if l.pack() == nil && l.spool.Held() >= l.tried+writtenTogether {
		_ = l.write() // tried again later; the checkpoint fails until it succeeds
	}
}

// add records that a batch contains a unit. Sources often follow each other in the same order, so the map is seldom
// needed.
func (b *batch) add(u *order.WaitingUnit) {
	policy, place := u.Group().Policy, u.Place()
	if b.at < len(b.next) {
		if at := b.next[b.at]; at < len(b.ends) && b.ends[at].isOf(policy, &place) {
			b.ends[at].Last, b.at = place, at
			return
		}
	}
	at := b.placeOf(source{policy, place.Pos.Partition, place.Reading})
	b.ends[at].Last = place
	if b.at < len(b.next) {
		b.next[b.at] = at
	}
	b.at = at
}

// isOf reports whether a unit has the same source.
func (e *End) isOf(policy string, place *ingest.AppliedUnit) bool {
	return e.Last.Pos.Partition == place.Pos.Partition && e.Last.Reading == place.Reading && e.Policy == policy
}

// placeOf returns the index of a source in b.ends. It adds a new source.
func (b *batch) placeOf(from source) int {
	at, known := b.places[from]
	if !known {
		if b.places == nil {
			b.places = map[source]int{}
		}
		at = len(b.ends)
		b.places[from] = at
		b.ends = append(b.ends, End{Policy: from.policy})
		b.next = append(b.next, at)
	}
	return at
}

// pack makes a batch of the units since the last one.
func (l *Log) pack() error {
	if l.packer.Units == 0 {
		return nil
	}
	packed := l.packer.Batch(l.At.TS, l.At.Run)
	offset, err := l.spool.Append(packed)
	if err != nil {
		return err
	}
	l.next.offset, l.next.bytes = offset, int64(len(packed))
	l.keep(l.next)
	clear(l.next.places)
	l.next = batch{places: l.next.places, next: l.next.next[:0]}
	l.packer.Clear()
	l.memory.Store(0)
	return nil
}

func (l *Log) keep(b batch) {
	b.places, b.next = nil, nil
	b.ends = slices.Clone(b.ends) // the spare capacity from append would stay in memory for as long
	b.memory = int64(len(b.ends)) * int64(unsafe.Sizeof(End{}))
	l.ends.Add(b.memory)
	l.batches = append(l.batches, b)
	l.needed.Add(b.bytes)
}

// write makes all batches durable.
func (l *Log) write() error {
	l.tried = l.spool.Held()
	err := l.spool.Flush()
	if err == nil {
		l.tried = 0
	}
	l.size.Store(l.spool.Size())
	return err
}

// IsFull reports whether the log has no room for another unit, because the disk accepts nothing, or because the units
// judged since cannot be saved.
func (l *Log) IsFull(isSafe func(End) bool) bool {
	if l.resuming != nil {
		return false // there was already room for these units
	}
	waits := func() bool { return l.Memory()+int64(l.spool.Held()) >= mostUnwritten }
	if waits() {
		_ = errors.Join(l.pack(), l.write()) // tried again later; the checkpoint fails until it succeeds
	}
	if l.Needed() >= l.limit {
		l.Trim(isSafe)
	}
	return waits() || l.Needed() >= l.limit
}

// Trim drops the batches before the first one that is needed, and the batches in files in which none is needed. Other
// batches after the first stay, because dropping them would free no disk space.
func (l *Log) Trim(isSafe func(End) bool) {
	kept := l.batches[:0]
	for rest := l.batches; len(rest) > 0; {
		file := rest[:l.inFile(rest)]
		rest = rest[len(file):]
		gone := 0
		for gone < len(file) && file[gone].isDone(isSafe) {
			gone++
		}
		if gone < len(file) && len(kept) > 0 {
			gone = 0
		}
		for _, b := range file[:gone] {
			l.needed.Add(-b.bytes)
			l.ends.Add(-b.memory)
			l.less = l.less || b.offset < behind(l.named)
		}
		kept = append(kept, file[gone:]...)
	}
	clear(l.batches[len(kept):])
	l.batches = kept
}

// isDone reports whether all units of a batch are safe. It checks only those that were not safe before.
func (b *batch) isDone(isSafe func(End) bool) bool {
	for n := len(b.ends); n > 0 && isSafe(b.ends[n-1]); n-- {
		b.ends = b.ends[:n-1]
	}
	return len(b.ends) == 0
}

// inFile returns the number of batches in the file of the first one.
func (l *Log) inFile(batches []batch) int {
	end := l.spool.Behind(batches[0].offset)
	n, _ := slices.BinarySearchFunc(batches, end, func(b batch, end int64) int { return cmp.Compare(b.offset, end) })
	return n
}

// Drop drops the units of a policy that is being forgotten.
func (l *Log) Drop(policy string) {
	for i := range l.batches {
		l.batches[i].drop(policy)
	}
	if l.resuming != nil {
		l.resuming.drop(policy)
		l.dropped[policy] = l.until // also those that are not passed on yet
		return
	}
	l.next.drop(policy)
	l.packer.Drop(policy)
	l.memory.Store(int64(l.packer.Len()))
	if n := len(l.batches); n > 0 {
		l.dropped[policy] = l.batches[n-1].offset + 1
	}
}

func (b *batch) drop(policy string) {
	b.ends = slices.DeleteFunc(b.ends, func(e End) bool { return e.Policy == policy })
	if b.places == nil {
		return
	}
	clear(b.places)
	b.next, b.at = b.next[:0], 0
	for i, e := range b.ends {
		b.next = append(b.next, i)
		b.places[source{e.Policy, e.Last.Pos.Partition, e.Last.Reading}] = i
	}
}

// State names the batches of a log that a checkpoint needs. Field numbers are never reused; package saved has the
// rules.
type State struct {
	Ranges  []Range   `cbor:"1,keyasint,omitempty"` // in order
	Dropped []Dropped `cbor:"2,keyasint,omitempty"`
}

// Range is the range of offsets from From, inclusive, to To, exclusive.
type Range struct {
	From int64 `cbor:"1,keyasint"`
	To   int64 `cbor:"2,keyasint"`
}

// behind returns the offset after all ranges.
func behind(ranges []Range) int64 {
	if len(ranges) == 0 {
		return 0
	}
	return ranges[len(ranges)-1].To
}

// isIn reports whether ranges contain an offset in the range from from, inclusive, to to, exclusive.
func isIn(ranges []Range, from, to int64) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.From < to && from < r.To })
}

// Dropped records the offset before which the units of a policy are void.
type Dropped struct {
	Policy string `cbor:"1,keyasint"`
	Before int64  `cbor:"2,keyasint"`
}

// Save makes all units durable, and returns the batches of the log that a checkpoint needs.
func (l *Log) Save() (State, error) {
	if err := errors.Join(l.pack(), l.write()); err != nil {
		return State{}, fmt.Errorf("write to the unit log: %w", err)
	}
	var s State
	for _, b := range l.batches {
		if n := len(s.Ranges); n > 0 && s.Ranges[n-1].To == b.offset {
			s.Ranges[n-1].To++
		} else {
			s.Ranges = append(s.Ranges, Range{b.offset, b.offset + 1})
		}
	}
	for policy, before := range l.dropped {
		if len(l.batches) == 0 || before <= l.batches[0].offset {
			delete(l.dropped, policy)
			continue
		}
		s.Dropped = append(s.Dropped, Dropped{policy, before})
	}
	l.named, l.less = s.Ranges, false
	return s, nil
}

// Saved removes the batches that neither the checkpoint of the last save nor the one before needs.
func (l *Log) Saved() error {
	before := l.durable
	l.durable = l.named
	err := l.spool.Remove(func(from, to int64) bool { return isIn(before, from, to) || isIn(l.named, from, to) })
	l.size.Store(l.spool.Size())
	return err
}

// Resume passes the units of a checkpoint to hand, which adds those that a worker may need again. After each batch, it
// calls reached with the moment before which no unit is missing, so that workers judge units before the whole log is in
// memory.
func (l *Log) Resume(s State, hand func(*ingest.Unit) error, reached func(order.Moment) error) error {
	for _, d := range s.Dropped {
		l.dropped[d.Policy] = d.Before
	}
	l.named, l.durable, l.until = s.Ranges, s.Ranges, behind(s.Ranges)
	defer func() { l.resuming = nil }()
	for _, r := range s.Ranges {
		err := l.spool.Read(r.From, r.To, func(offset int64, value []byte) error {
			return l.resumeBatch(offset, value, hand, reached)
		})
		if err != nil {
			return err
		}
	}
	l.size.Store(l.spool.Size())
	return nil
}

func (l *Log) resumeBatch(offset int64, value []byte, hand func(*ingest.Unit) error, reached func(order.Moment) error) error {
	read, err := saved.DecodeUnitBatch(value)
	if err != nil {
		return fmt.Errorf("offset %d of the unit log: %w", offset, err)
	}
	l.resuming = &batch{offset: offset, bytes: int64(len(value))}
	for _, u := range read.Units {
		if offset < l.dropped[u.Group.Policy] {
			continue
		}
		if err := hand(u); err != nil {
			return err
		}
	}
	if len(l.resuming.ends) > 0 {
		l.keep(*l.resuming)
	} else {
		l.less = true
	}
	l.At = order.Moment{TS: read.TS, Run: read.Run}
	return reached(l.At)
}

// Close releases the files of the log.
func (l *Log) Close() error { return l.spool.Close() }
