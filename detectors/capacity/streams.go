// Package capacity limits what the banks of all policies hold in total: the streams that they follow, and the groups in
// memory.
package capacity

import "sync/atomic"

// StreamLimit bounds the streams of all banks together. It also bounds those of each bank by what is left: a policy
// that has as many streams as are free gets no more. One policy alone therefore takes at most half of the limit, and
// always leaves as many streams as it has. A StreamLimit is safe for concurrent use.
type StreamLimit struct {
	whole    *StreamLimit // the limit that this is a part of; nil for the whole limit
	succeeds bool         // for streams that replace those of the same policy; whole is the part of that policy
	most     int64
	streams  atomic.Int64
	full     atomic.Int64 // refusals because none were free
	crowded  atomic.Int64 // refusals because the policy alone had too many
}

// NewStreamLimit returns a limit of the given number of streams.
func NewStreamLimit(most int) *StreamLimit { return &StreamLimit{most: int64(most)} }

// Part returns the part of the limit for one policy.
func (l *StreamLimit) Part() *StreamLimit { return &StreamLimit{whole: l} }

// Successor returns the limit for streams that will replace those of the same policy, which needs both for a while.
// Only the whole limit applies to it, because otherwise a new version would lack signals of the previous one.
func (l *StreamLimit) Successor() *StreamLimit {
	if l.whole == nil || l.succeeds {
		return l
	}
	return &StreamLimit{whole: l, succeeds: true}
}

// Refused returns how many times the limit kept a stream from being followed, or a unit of a new group or policy from
// being judged.
func (l *StreamLimit) Refused() int64 { return l.Exhausted() + l.Crowded() }

// Exhausted returns how many of these refusals happened because the whole limit was reached.
func (l *StreamLimit) Exhausted() int64 { return l.full.Load() }

// Crowded returns how many of these refusals a policy with fewer streams would have avoided. Neither Crowded nor
// Exhausted ever decreases.
func (l *StreamLimit) Crowded() int64 { return l.crowded.Load() }

// Take reserves one stream, and reports whether there was room.
func (l *StreamLimit) Take() bool {
	if l.Full() {
		return false
	}
	l.Add(1)
	return true
}

// Taken returns how many streams are counted.
func (l *StreamLimit) Taken() int64 { return l.streams.Load() }

// Add counts streams, even beyond the limit: restored streams have been followed before.
func (l *StreamLimit) Add(n int) {
	if l.streams.Add(int64(n)); l.whole != nil {
		l.whole.Add(n)
	}
}

// Full reports whether there is no room for another stream, and counts a refusal if so.
func (l *StreamLimit) Full() bool {
	if l.succeeds {
		return l.whole.whole.Full()
	}
	if l.whole != nil {
		return l.whole.Full() || l.whole.crowds(l.streams.Load())
	}
	if l.free() > 0 {
		return false
	}
	l.full.Add(1)
	return true
}

// crowds reports whether a policy with the given number of streams has as many as are free, and counts a refusal if
// so.
func (l *StreamLimit) crowds(streams int64) bool {
	if streams < l.free() {
		return false
	}
	l.crowded.Add(1)
	return true
}

func (l *StreamLimit) free() int64 { return l.most - l.streams.Load() }
