package bank

import "sync/atomic"

// StreamLimit bounds the streams of all banks together. It may be shared by several goroutines.
type StreamLimit struct {
	most    int64
	streams atomic.Int64
	refused atomic.Int64
}

// NewStreamLimit allows for so many streams.
func NewStreamLimit(most int) *StreamLimit { return &StreamLimit{most: int64(most)} }

// Refused is how many times a stream was not followed, or a unit of a new group or policy not judged, for the limit.
func (l *StreamLimit) Refused() int64 { return l.refused.Load() }

// take reserves one stream.
func (l *StreamLimit) take() bool {
	if l.Full() {
		return false
	}
	l.streams.Add(1)
	return true
}

// add counts streams that were restored, whatever the limit: they have been followed before.
func (l *StreamLimit) add(n int) { l.streams.Add(int64(n)) }

// Full reports whether there is no room for another stream, and counts that something was refused for it.
func (l *StreamLimit) Full() bool {
	if l.streams.Load() < l.most {
		return false
	}
	l.refused.Add(1)
	return true
}
