package engine

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// IntakeMetrics are the metrics of the first stage, shared by all partitions.
type IntakeMetrics struct {
	episodes  *assemble.Metrics
	decisions *feedback.Metrics
	apartTold atomic.Int64 // records of feedback in another partition than their decision, when it was last logged
}

// leastApart is how many records of feedback must lack their decision before it is said why.
const leastApart = 50

// Apart returns the share of the feedback without a decision whose decision is in another partition. tell is true if most
// of it is, and twice as much as when tell was last true.
func (m *IntakeMetrics) Apart() (share float64, tell bool) {
	elsewhere, of := m.decisions.Apart()
	last := m.apartTold.Load()
	if of < leastApart || 2*elsewhere < of || elsewhere < 2*last {
		return float64(elsewhere) / float64(max(1, of)), false
	}
	return float64(elsewhere) / float64(of), m.apartTold.CompareAndSwap(last, elsewhere)
}

// NewIntakeMetrics registers the metrics of the first stage.
func NewIntakeMetrics(reg prometheus.Registerer) *IntakeMetrics {
	return &IntakeMetrics{episodes: assemble.NewMetrics(reg), decisions: feedback.NewMetrics(reg)}
}

// Intake is the first stage of a partition, or of a file: it makes units of events. Decisions of policies with feedback
// that comes later wait for it; the events of other policies are folded into episodes and blocks.
type Intake struct {
	Episodes  *assemble.Assembler
	Decisions *feedback.Joiner // nil if no policy has such feedback
	clock     order.EventClock
}

// NewIntake returns the first stage of a partition, or of a file.
func NewIntake(cfg *Settings, m *IntakeMetrics) *Intake {
	groupBy := func(policy string) []string {
		c, _ := cfg.Policy(policy)
		return c.GroupBy
	}
	splitBy := func(policy string) []string {
		c, _ := cfg.Policy(policy)
		return c.KeptLabels()
	}
	ratedBy := func(policy string) map[string]string {
		c, _ := cfg.Policy(policy)
		return c.Raters
	}
	in := &Intake{Episodes: assemble.New(assemble.Config{
		MaxOpen: cfg.Limits.OpenEpisodes,
		GroupBy: groupBy,
		SplitBy: splitBy,
		Stepwise: func(policy string) bool {
			c, _ := cfg.Policy(policy)
			return len(c.Guards.Limits) > 0
		},
		Watched: func(policy string) bool {
			_, watched := cfg.Policy(policy)
			return watched
		},
	}, m.episodes)}
	if cfg.Joins() {
		in.Decisions = feedback.New(feedback.Options{Of: cfg.Feedback, GroupBy: groupBy, SplitBy: splitBy, RatedBy: ratedBy, MaxOpen: cfg.Limits.OpenDecisions}, m.decisions, m.episodes)
	}
	return in
}

// Fold takes the next event, and passes the units that end with it to emit. It reports whether the event has a credible
// time, which it is up to believed, in Unix nanoseconds.
func (in *Intake) Fold(e *ingest.Event, believed int64, emit func(*ingest.Unit)) (timed bool) {
	return in.foldApart(e, believed, emit, nil)
}

// foldApart is Fold, except that it passes most decisions to decided, unless that is nil. They are valid until decided
// returns.
func (in *Intake) foldApart(e *ingest.Event, believed int64, emit func(*ingest.Unit), decided func(*ingest.Decision)) (timed bool) {
	timed = in.advance(e, believed, emit)
	if in.Decisions != nil && in.Decisions.Takes(e.Policy) {
		in.Decisions.Fold(e, in.clock.TS)
		return timed
	}
	if in.Decisions != nil && in.Decisions.Ended() > 0 {
		in.Episodes.Fold(e, in.after(emit))
	} else {
		in.Episodes.FoldApart(e, emit, decided)
	}
	return timed
}

// advance takes the time of an event, and passes the units of the decisions that are due by it to emit. It reports what
// Fold does.
func (in *Intake) advance(e *ingest.Event, believed int64, emit func(*ingest.Unit)) (timed bool) {
	timed = in.clock.Read(e.TS, believed)
	if in.Decisions != nil {
		in.Decisions.Advance(in.clock.TS, e.Pos, emit)
	}
	return timed
}

// after returns an emit that numbers units behind those that the decisions have ended at the same record. Readers of
// units recognize what they have by its number, whatever its policy.
func (in *Intake) after(emit func(*ingest.Unit)) func(*ingest.Unit) {
	return func(u *ingest.Unit) {
		u.Ord += in.Decisions.Ended()
		emit(u)
	}
}

// drop gives up the open episodes and decisions of a policy.
func (in *Intake) drop(policy string) {
	in.Episodes.Forget(policy)
	if in.Decisions != nil {
		in.Decisions.Forget(policy)
	}
}

// close removes what is open from the metrics.
func (in *Intake) close() {
	in.Episodes.Close()
	if in.Decisions != nil {
		in.Decisions.Close()
	}
}

// Watches reports whether the first stage has seen events of any watched policy.
func (in *Intake) Watches() bool {
	return in.Episodes.Watches() || in.Decisions != nil && in.Decisions.Watches()
}
