package assemble

import "github.com/rewardwatch/rewardwatch/ingest"

// Single builds units that consist of one event each. The zero value is not ready for use.
type Single struct {
	metrics *Metrics
	names   *names
	sums    tally
}

// NewSingle returns a Single that counts the values for which a unit has no room.
func NewSingle(m *Metrics) *Single { return &Single{metrics: m, names: newNames()} }

// Unit returns the unit of an event that is a whole episode. Its group and its end are left to the caller, who owns the
// unit.
func (s *Single) Unit(e *ingest.Event) *ingest.Unit {
	s.sums.begin(e)
	if ignored := s.sums.add(e, s.names); ignored > 0 {
		s.metrics.noSignal.Add(float64(ignored))
	}
	u := s.sums.unit(ingest.EndTerminated)
	u.Pos, u.Unfinished = e.Pos, -1
	return u
}
