package baseline

import (
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/stream"
)

// Round is the part of a cycle, such as some hours of the day, that has recurred. Without a cycle, it is all of the
// time. In a daily cycle, weekends are only compared with weekends, and working days with working days.
type Round struct {
	Cycle       time.Duration
	Begun, Last int64          // Unix nanoseconds
	Zone        *time.Location // of weekends; nil for UTC
}

// alike reports whether a time is on the same kind of day as the last time of the round.
func (r *Round) alike(ts int64) bool {
	if r.Cycle != week/7 {
		return true
	}
	begin, _ := WeekendBounds(ts, r.Zone)
	last, _ := WeekendBounds(r.Last, r.Zone)
	return (begin == 0) == (last == 0)
}

// roundParts is the number of parts of a cycle; those of a day are hours.
const roundParts = 24

// since returns the time from the beginning of the round to ts, modulo the cycle.
func (r *Round) since(ts int64) int64 {
	if r.Cycle == 0 {
		return 0
	}
	cycle := int64(r.Cycle)
	return ((ts-r.Begun)%cycle + cycle) % cycle
}

// part returns the part of the cycle that a time lies in, counted from the beginning of the round.
func (r *Round) part(ts int64) int64 { return r.since(ts) * roundParts / max(1, int64(r.Cycle)) }

// Sides returns the values of the units before an onset, and of those from the ordinal first on. If r has a cycle, a
// unit only counts if the other side covers its time in the cycle. Earlier incidents may have removed parts of the side
// before the onset.
func (w *Warmup) Sides(values []stream.Observed, onset, first int64, r Round) (of stream.Sides) {
	reach := int64(0)
	var known [roundParts]bool
	for _, o := range values {
		switch u := &w.Each[o.Unit]; {
		case !r.alike(u.EndTS):
		case u.Ordinal >= first && r.since(u.EndTS) <= reach && known[r.part(u.EndTS)]:
			of.After = append(of.After, o.X)
		case u.Ordinal < onset:
			reach, known[r.part(u.EndTS)] = max(reach, u.EndTS-r.Begun+int64(r.Cycle)), true
			if r.since(u.EndTS) > max(0, r.Last-r.Begun) {
				break
			}
			if of.Before = append(of.Before, o.X); r.Cycle > 0 {
				of.Parts = append(of.Parts, int32((u.EndTS-r.Begun)*roundParts/int64(r.Cycle)))
			}
		}
	}
	return of
}
