package repartition

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Follower reads the headers of one partition of the topic. The zero value is ready to use. It is not safe for
// concurrent use.
//
// After an interruption, a Writer writes everything again that it had not saved: the events of each source, in the same
// order. Therefore, an event that is not after the newest one of its source has been read before.
type Follower struct {
	newest map[string]place // newest event of each source
	mark   int64            // latest mark, in Unix nanoseconds
}

// Seen reports whether the event in a message has been read before.
func (f *Follower) Seen(m *ingest.Message) bool {
	if value, is := header(m, MarkHeader); is {
		if at, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			f.mark = max(f.mark, at)
		}
		return false
	}
	value, _ := header(m, SourceHeader)
	source, at, ok := parseSource(value)
	if !ok {
		return false // from another writer
	}
	newest, known := f.newest[string(source)]
	if known && !at.after(newest) {
		return true
	}
	if f.newest == nil {
		f.newest = map[string]place{}
	}
	f.newest[string(source)] = at
	return false
}

// ReadTo returns the time up to which the telemetry topics have been forwarded, according to the messages seen so far.
// It is the zero time before the first mark.
func (f *Follower) ReadTo() time.Time {
	if f.mark == 0 {
		return time.Time{}
	}
	return time.Unix(0, f.mark)
}

// Newest is the wire form of the newest event of a source. Field numbers are never reused; see package saved for the
// rules.
type Newest struct {
	Source  string `cbor:"1,keyasint"`
	Reading int64  `cbor:"2,keyasint"`
	Offset  int64  `cbor:"3,keyasint"`
	Number  int32  `cbor:"4,keyasint,omitzero"`
}

// Saved returns the state for Restore. It does not include the mark, because others will follow.
func (f *Follower) Saved() []Newest {
	var all []Newest
	for source, p := range f.newest {
		all = append(all, Newest{source, p.reading, p.offset, p.number})
	}
	slices.SortFunc(all, func(a, b Newest) int { return cmp.Compare(a.Source, b.Source) })
	return all
}

// Restore replaces the state.
func (f *Follower) Restore(saved []Newest) {
	*f = Follower{newest: make(map[string]place, len(saved))}
	for _, n := range saved {
		f.newest[n.Source] = place{n.Reading, n.Offset, n.Number}
	}
}
