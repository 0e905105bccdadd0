package fault

import (
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// clockAhead is how far the end of a unit may lie ahead of the ends of all units before it.
const clockAhead = int64(time.Hour)

// progress tracks how far the units of one partition have advanced by their own times. A unit that ends more than
// clockAhead later is ahead. If all later units are ahead too, there was a pause. If a later unit is back at the
// time of the others, the clock of the units ahead was wrong. Late units are no evidence, because agents may send
// at any time.
type progress struct {
	Front  int64 // latest plausible time
	Ahead  int   // units in a row ahead of it
	Behind int   // units in a row behind it by more than clockAhead
}

// see adds the end of a unit and reports whether it is back after units that were ahead.
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

// follow counts the units in a row that lie ahead, and those that lie behind.
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
