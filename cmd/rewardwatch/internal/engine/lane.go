package engine

import (
	"bytes"
	"context"
	"io"
	"slices"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// lane makes the units of one partition of one topic. Which units it emits, when, and at which records depends only on
// the records of this partition and their order. So the units are the same whenever the partition is read again, even
// if the records of other topics arrive in a different order in between, and a bank recognizes the units that it has
// applied. Records of other topics may only add feedback to the lane's open decisions.
type lane struct {
	*Intake
	topic   int   // index
	reading int64 // when reading began without a checkpoint; earlier knowledge of the banks about the partition is void
}

func (p *Pipeline) newLane(topic int) *lane {
	return &lane{topic: topic, Intake: NewIntake(p.Cfg, p.intake), reading: time.Now().UnixNano()}
}

// laneState is the snapshot of a lane. Field numbers are never reused; package saved has the rules.
type laneState struct {
	Topic     int              `cbor:"1,keyasint"`
	Last      int64            `cbor:"2,keyasint"` // of EventClock, as are the next two
	Records   int64            `cbor:"3,keyasint"`
	Before    order.WireMoment `cbor:"4,keyasint"`
	Reading   int64            `cbor:"5,keyasint"`
	Episodes  []byte           `cbor:"6,keyasint"`
	Decisions []byte           `cbor:"7,keyasint,omitempty"` // open decisions, as earlier builds wrote them
	// Joins means that the open decisions follow the state of the partition.
	Joins bool `cbor:"8,keyasint,omitzero"`

	joined []byte // the data that follows, for a lane whose topic cannot be read
}

func (l *lane) state() (laneState, error) {
	var episodes bytes.Buffer
	if err := l.Episodes.Snapshot(&episodes); err != nil {
		return laneState{}, err
	}
	c := l.Clock
	return laneState{
		Topic: l.topic, Last: c.TS, Records: c.Records, Before: order.WireMoment(c.Before), Reading: l.reading, Episodes: episodes.Bytes(),
		Joins: l.Decisions != nil,
	}, nil
}

// restore restores the lane. r is at its open decisions, if they follow.
func (l *lane) restore(s *laneState, r io.Reader) error {
	l.Clock, l.reading = order.EventClock{TS: s.Last, Records: s.Records, Before: order.Moment(s.Before)}, s.Reading
	if err := l.Episodes.Restore(bytes.NewReader(s.Episodes)); err != nil {
		return err
	}
	switch {
	case l.Decisions == nil:
		return s.keep(r)
	case s.Joins:
		return l.Decisions.Restore(r, s.Last)
	}
	return l.Decisions.RestoreWhole(s.Decisions, s.Last)
}

// keep reads the open decisions that follow the state, without restoring them.
func (s *laneState) keep(r io.Reader) (err error) {
	if s.Joins {
		s.joined, err = feedback.Saved(r)
	}
	return err
}

// From implements ingest.Several.
func (f *PartitionFeed) From(topics []int) {
	f.topic = topics[0]
	for _, topic := range topics[1:] {
		f.others = append(f.others, f.pipeline.newLane(topic))
	}
	f.followLanes()
}

// lanes returns the lanes in the order of their topics.
func (f *PartitionFeed) lanes() []*lane { return append([]*lane{f.lane}, f.others...) }

// of returns the lane of a topic.
func (f *PartitionFeed) of(topic int) *lane {
	for _, l := range f.others {
		if l.topic == topic {
			return l
		}
	}
	return f.lane
}

// fold processes the next event of a lane, and passes the units that end with it to emit, or to decided. If the
// decision of a feedback event is in another lane, or is expected there because the policy's last decision came from
// it, the feedback goes to that lane.
func (f *PartitionFeed) fold(l *lane, e *ingest.Event, believed int64, emit func(*ingest.Unit), decided func(*ingest.Decision)) (timed bool) {
	if len(f.others) == 0 || l.Decisions == nil || !l.Decisions.Takes(e.Policy) {
		return l.FoldApart(e, believed, emit, decided)
	}
	to := f.decides(e.Policy)
	switch {
	case feedback.IsDecision(e):
		f.turn++
		l.Decisions.Decides(e.Policy, f.turn)
		to = l
	case l.Decisions.Holds(e) || to == nil:
		to = l
	default:
		for _, o := range f.lanes() {
			if o.Decisions.Holds(e) {
				to = o
			}
		}
	}
	if to == l {
		return l.FoldApart(e, believed, emit, decided)
	}
	timed = l.Advance(e, believed, emit)
	to.Decisions.FoldFrom(e, to.Clock.TS)
	return timed
}

// decides returns the lane of the last decision of a policy, or nil if it is unknown.
func (f *PartitionFeed) decides(policy string) (at *lane) {
	first, last := f.lane, uint64(0)
	if turn := first.Decisions.Decided(policy); turn > 0 {
		at, last = first, turn
	}
	for _, l := range f.others {
		if turn := l.Decisions.Decided(policy); turn > last {
			at, last = l, turn
		}
	}
	return at
}

// followLanes begins to follow how far each of several lanes has been read.
func (f *PartitionFeed) followLanes() {
	if len(f.others) == 0 {
		return
	}
	f.read = order.NewWatermarks()
	for _, l := range f.lanes() {
		f.read.Assign(int32(l.topic), l.Clock.Now())
	}
}

// now returns the moment before which no unit of any lane is missing, as far as is known.
func (f *PartitionFeed) now() order.Moment {
	if f.read == nil {
		return f.Clock.Now()
	}
	return f.read.Low()
}

// mark reports how far a lane has been read. If end is not zero, the lane had nothing more at that time. With several
// lanes, the one that has been read least far counts, unless it has been silent for long while others were not.
func (f *PartitionFeed) mark(ctx context.Context, l *lane, end, now time.Time) error {
	if f.read == nil {
		return f.Out.Mark(ctx, l.Clock.Now(), end, now)
	}
	f.read.Advance(int32(l.topic), l.Clock.Now(), end, now)
	return f.Out.Mark(ctx, f.read.Low(), time.Time{}, now)
}

// Reached implements ingest.Several.
func (f *PartitionFeed) Reached(ctx context.Context, topic int, at time.Time) error {
	return f.mark(ctx, f.of(topic), at, time.Now())
}

// restoreLanes restores the lanes that are fed. It keeps the state of lanes whose topics cannot be read at the moment.
func (f *PartitionFeed) restoreLanes(states []laneState, r io.Reader) error {
	f.away = nil
	for i := range states {
		s := &states[i]
		at := slices.IndexFunc(f.lanes(), func(l *lane) bool { return l.topic == s.Topic })
		if at >= 0 {
			if err := f.lanes()[at].restore(s, r); err != nil {
				return err
			}
			continue
		}
		if err := s.keep(r); err != nil {
			return err
		}
		f.away = append(f.away, *s)
	}
	f.followLanes()
	return nil
}

// writeDecisions writes the open decisions of all lanes, in the order of their states in a snapshot.
func (f *PartitionFeed) writeDecisions(w io.Writer) error {
	if err := f.lane.writeDecisions(w); err != nil {
		return err
	}
	for i := range f.away {
		if _, err := w.Write(f.away[i].joined); err != nil {
			return err
		}
	}
	for _, l := range f.others {
		if err := l.writeDecisions(w); err != nil {
			return err
		}
	}
	return nil
}

func (l *lane) writeDecisions(w io.Writer) error {
	if l.Decisions == nil {
		return nil
	}
	return l.Decisions.Snapshot(w)
}

var _ ingest.Several = (*PartitionFeed)(nil)
