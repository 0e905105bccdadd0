package fault

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// clockAhead is the time by which the end of a unit may lie ahead of all before it.
const clockAhead = int64(time.Hour)

// progress tracks how far the units of one partition have advanced by their own times. A unit that ends more than
// clockAhead later than that is ahead. Either all later units are ahead too, as after a pause, or its clock is wrong,
// which shows when a later unit is back at the time of the others. Late units show nothing: agents may send at any
// time.
type progress struct {
	Front  int64 // latest plausible time
	Ahead  int   // units in a row ahead of it
	Behind int   // units in a row behind it by more than clockAhead
}

// see takes the end of a unit and reports whether the times have come back from ahead with it.
func (p *progress) see(ts int64) (cameBack bool) {
	p.follow(ts)
	switch {
	case p.Front == 0 || p.Ahead >= faultUnits || p.Behind >= clockUnits:
		*p = progress{Front: ts}
	case ts <= p.Front+clockAhead:
		cameBack = p.Ahead > 0
		p.Front, p.Ahead = max(p.Front, ts), 0
	}
	return cameBack
}

// follow counts the units in a row that deviate to one side.
func (p *progress) follow(ts int64) {
	if ts > p.Front+clockAhead {
		p.Ahead++
	}
	if ts < p.Front-clockAhead {
		p.Behind++
	} else {
		p.Behind = 0
	}
}

// skewed reports whether the times of a unit cannot be right: either they run backwards by more than a minute within
// the unit, or the units before it were ahead of it.
func (d *Delivery) skewed(u *ingest.Unit) bool {
	if u.EndTS == 0 {
		return false
	}
	p := d.Clocks[u.Pos.Partition]
	if p == nil {
		if d.Clocks == nil {
			d.Clocks = map[ingest.Partition]*progress{}
		}
		p = &progress{}
		d.Clocks[u.Pos.Partition] = p
	}
	cameBack := p.see(u.EndTS)
	return cameBack || u.Backwards > 0
}
