// Package history stores the history of a group's signals in few bytes: recent units in detail, older units coarsely,
// and none from more than a week before the newest.
package history

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/progress"
	"github.com/rewardwatch/rewardwatch/ingest"
)

const (
	// maxSpans is the number of spans that the past is divided into. A signal takes 12 bytes for each.
	maxSpans = 53 // 636 bytes, which the allocator makes 640
	// fewest is the number of spans that are allocated first.
	fewest = 8
	// shortest is the length of a span before it is merged with others, with and without a clock.
	shortest      = int64(5 * time.Second)
	shortestUnits = 4
	// kept is how far back the past goes, by the clock of the units. Without a clock, nothing is dropped.
	kept = int64(7 * 24 * time.Hour)
	// fineness is the inverse of the share of the past within which all spans may have the same length. Older spans
	// grow with their age.
	fineness = 50
)

// Span is a stretch of consecutive units.
type Span struct {
	First    int64 // ordinal of the first unit
	Units    int64
	From, To int64 // of the first and the last unit, in Unix nanoseconds; 0 without a clock
}

// Bucket summarizes the values of a signal in a span. N is 0 if there are none.
type Bucket struct {
	N        uint32
	Mean, SD float32 // of these values, not estimates for a larger population
}

// Signal is the past of one signal.
type Signal struct {
	Name    string
	Buckets []Bucket // one for each span
}

// History is the past of a group. The zero value is empty. It has one owner.
type History struct {
	spans   []Span
	signals []Signal // sorted by name
	places  []uint8  // indices of the previous unit's signals, in their order, which most units repeat
	next    int      // number of signals of the current unit so far
	onset   int64    // ordinal of the unit whose span stays separate, 0 for none

	changes   []Change
	version   ingest.Versions // the newest
	versioned bool            // whether there is one
}

// Unless returns the past, or nil if it is shared with another one that saves it.
func (h *History) Unless(shared bool) *History {
	if shared {
		return nil
	}
	return h
}

// Begin starts a unit. Ordinals and times do not decrease; ts is 0 without a clock.
func (h *History) Begin(ordinal, ts int64) {
	h.next = 0
	n := len(h.spans)
	if n > 0 && !h.full(&h.spans[n-1], ts) {
		s := &h.spans[n-1]
		s.Units, s.To = s.Units+1, max(s.To, ts)
		return
	}
	h.forget(ts)
	if len(h.spans) == maxSpans {
		h.merge(h.smallest())
	}
	h.spans = appended(h.spans, Span{First: ordinal, Units: 1, From: ts, To: ts})
	for i := range h.signals {
		h.signals[i].Buckets = appended(h.signals[i].Buckets, Bucket{})
	}
}

// full reports whether a unit begins a new span.
func (h *History) full(s *Span, ts int64) bool {
	if ts == 0 {
		return s.Units >= shortestUnits
	}
	return s.From == 0 || ts-s.From >= shortest
}

// Keep keeps the span of a unit separate from the others, so that what was before and after the onset of a drift is
// never averaged. It replaces the unit of the previous call.
func (h *History) Keep(ordinal int64) { h.onset = ordinal }

// Kept returns the ordinal of the last call of Keep, or 0 for none.
func (h *History) Kept() int64 {
	if h == nil {
		return 0
	}
	return h.onset
}

// apart reports whether a span must stay separate.
func (h *History) apart(i int) bool {
	s := &h.spans[i]
	return h.onset > 0 && s.First <= h.onset && h.onset < s.First+s.Units
}

// forget drops the spans that ended too long ago.
func (h *History) forget(ts int64) {
	old := 0
	for old < len(h.spans) && ts != 0 && h.spans[old].To != 0 && ts-h.spans[old].To > kept {
		old++
	}
	if old == 0 {
		return
	}
	h.spans = slices.Delete(h.spans, 0, old)
	h.changes = slices.DeleteFunc(h.changes, func(c Change) bool { return c.TS != 0 && ts-c.TS > kept })
	for i := range h.signals {
		h.signals[i].Buckets = slices.Delete(h.signals[i].Buckets, 0, old)
	}
	h.signals = slices.DeleteFunc(h.signals, func(s Signal) bool {
		return !slices.ContainsFunc(s.Buckets, func(b Bucket) bool { return b.N > 0 })
	})
}

// appended appends a value. It never allocates room for more than maxSpans.
func appended[T any](values []T, x T) []T {
	if len(values) == cap(values) {
		grown := make([]T, len(values), min(maxSpans, max(fewest, 2*len(values))))
		copy(grown, values)
		values = grown
	}
	return append(values, x)
}

// smallest returns the span to merge with the next one: the two that are shortest for their age.
func (h *History) smallest() int {
	last := len(h.spans) - 1
	now, _ := h.at(last)
	_, first := h.at(0)
	slack := float64(now-first)/fineness + 1
	best, least, from := 0, math.Inf(1), first
	for i := range last - 1 { // the newest may still grow
		to, next := h.at(i + 1)
		if size := float64(to-from) / (float64(now-to) + slack); size < least && !h.apart(i) && !h.apart(i+1) {
			best, least = i, size
		}
		from = next
	}
	return best
}

// at returns where a span ends and begins: in nanoseconds or, without a clock, in units.
func (h *History) at(i int) (to, from int64) {
	s := &h.spans[i]
	if h.spans[0].From == 0 {
		return s.First + s.Units, s.First
	}
	return s.To, s.From
}

// merge merges a span with the next one.
func (h *History) merge(i int) {
	a, b := &h.spans[i], h.spans[i+1]
	a.Units, a.To = a.Units+b.Units, max(a.To, b.To)
	if a.From == 0 {
		a.From = b.From
	}
	h.spans = slices.Delete(h.spans, i+1, i+2)
	for k := range h.signals {
		s := &h.signals[k]
		s.Buckets[i] = s.Buckets[i].With(s.Buckets[i+1])
		s.Buckets = slices.Delete(s.Buckets, i+1, i+2)
	}
}

// Add adds the value of a signal in the unit that was begun last. It ignores a value that is not finite.
func (h *History) Add(signal string, x float64) {
	if len(h.spans) == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	s := h.signal(signal)
	b := &s.Buckets[len(s.Buckets)-1]
	*b = b.With(Bucket{N: 1, Mean: float32(x)})
}

// signal returns the past of a signal, which it creates if there is none.
func (h *History) signal(name string) *Signal {
	k := h.next
	h.next++
	if k < len(h.places) {
		if i := int(h.places[k]); i < len(h.signals) && h.signals[i].Name == name {
			return &h.signals[i]
		}
	}
	i, found := slices.BinarySearchFunc(h.signals, name, func(s Signal, name string) int { return strings.Compare(s.Name, name) })
	if !found {
		size := max(fewest, cap(h.spans))
		s := Signal{Name: strings.Clone(name), Buckets: make([]Bucket, len(h.spans), size)}
		h.signals = slices.Insert(h.signals, i, s)
	}
	if i <= math.MaxUint8 && k < len(h.places) {
		h.places[k] = uint8(i)
	} else if i <= math.MaxUint8 && k == len(h.places) {
		h.places = append(h.places, uint8(i))
	}
	return &h.signals[i]
}

// With returns the bucket of the values of both buckets.
func (b Bucket) With(c Bucket) Bucket {
	switch {
	case b.N == 0:
		return c
	case c.N == 0:
		return b
	}
	n, m := float64(b.N), float64(c.N)
	apart := float64(c.Mean) - float64(b.Mean)
	mean := float64(b.Mean) + apart*(m/(n+m))
	variance := (n*square(b.SD)+m*square(c.SD))/(n+m) + apart*apart*(n/(n+m))*(m/(n+m))
	return Bucket{
		N: uint32(min(uint64(b.N)+uint64(c.N), math.MaxUint32)), Mean: float32(mean), SD: float32(math.Sqrt(variance)),
	}
}

func square(x float32) float64 { return float64(x) * float64(x) }

// Past returns the values of a signal in each span that begins at the given unit or later, oldest first.
func (h *History) Past(signal string, from int64) []progress.Point {
	var buckets []Bucket
	for i := range h.signals {
		if h.signals[i].Name == signal {
			buckets = h.signals[i].Buckets
		}
	}
	var past []progress.Point
	for i, s := range h.spans {
		if s.First < from {
			continue
		}
		p := progress.Point{First: s.First}
		if buckets != nil {
			p.Units, p.Mean, p.SD = float64(buckets[i].N), float64(buckets[i].Mean), float64(buckets[i].SD)
		}
		past = append(past, p)
	}
	return past
}

// Record is the past of a group at one time, for readers.
type Record struct {
	Spans   []Span
	Signals []Signal // sorted by name
	Changes []Change // of versions, the oldest first
}

// Record returns a copy of the past.
func (h *History) Record() Record {
	out := Record{Spans: slices.Clone(h.spans), Signals: slices.Clone(h.signals), Changes: slices.Clone(h.changes)}
	for i := range out.Signals {
		out.Signals[i].Buckets = slices.Clone(out.Signals[i].Buckets)
	}
	return out
}

// Of returns the buckets of a signal, one for each span; nil if it has none.
func (r *Record) Of(signal string) []Bucket {
	for i := range r.Signals {
		if r.Signals[i].Name == signal {
			return r.Signals[i].Buckets
		}
	}
	return nil
}

// Rolling returns for each bucket the sum of it and of as many before it as are needed for at least units values,
// or of all if there are fewer.
func Rolling(buckets []Bucket, units uint32) []Bucket {
	out := make([]Bucket, len(buckets))
	for i, b := range buckets {
		sum := b
		for k := i - 1; k >= 0 && sum.N < units; k-- {
			sum = sum.With(buckets[k])
		}
		out[i] = sum
	}
	return out
}
