package repartition

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// Follower reads the headers of one partition of the topic. Its zero value has read nothing. It is not safe for
// concurrent use.
//
// A Writer that was interrupted writes again what it had not saved: the events of a source again in their order. So an
// event that is not after the newest one of its source has been read before.
type Follower struct {
	newest map[string]place // of each source
	mark   int64            // the latest, in Unix nanoseconds
}

// Seen reports whether an event of the message has been read before.
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
		return false // it has another writer
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

// ReadTo returns the time up to which the topics of the telemetry have been sent on, as far as the messages seen tell,
// and the zero time before the first mark.
func (f *Follower) ReadTo() time.Time {
	if f.mark == 0 {
		return time.Time{}
	}
	return time.Unix(0, f.mark)
}

// Newest is the saved form of the newest event of a source. Field numbers are never reused; package saved has the rules.
type Newest struct {
	Source  string `cbor:"1,keyasint"`
	Reading int64  `cbor:"2,keyasint"`
	Offset  int64  `cbor:"3,keyasint"`
	Number  int32  `cbor:"4,keyasint,omitzero"`
}

// Saved returns what Restore needs. The mark is left out: others follow.
func (f *Follower) Saved() []Newest {
	var all []Newest
	for source, p := range f.newest {
		all = append(all, Newest{source, p.reading, p.offset, p.number})
	}
	slices.SortFunc(all, func(a, b Newest) int { return cmp.Compare(a.Source, b.Source) })
	return all
}

// Restore replaces what has been read.
func (f *Follower) Restore(saved []Newest) {
	*f = Follower{newest: make(map[string]place, len(saved))}
	for _, n := range saved {
		f.newest[n.Source] = place{n.Reading, n.Offset, n.Number}
	}
}
