// Package intake is the first stage of a partition: it turns events into units.
package intake

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/tenant"
	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/assemble"
	"github.com/rewardwatch/rewardwatch/ingest/feedback"
	"github.com/rewardwatch/rewardwatch/ingest/order"
)

// Metrics are the metrics of the first stage, shared by all partitions.
type Metrics struct {
	episodes  *assemble.Metrics
	decisions *feedback.Metrics
	Tenants   *tenant.Accounts // nil if nothing is counted by tenant
	apartTold atomic.Int64     // number of feedback records in another partition than their decision when it was last logged
}

// leastApart is the minimum number of unmatched feedback records before the reason is reported.
const leastApart = 50

// Apart returns the share of unmatched feedback whose decision is in another partition. tell is true if that is most of
// it, and if its amount has at least doubled since tell was last true.
func (m *Metrics) Apart() (share float64, tell bool) {
	elsewhere, of := m.decisions.Apart()
	last := m.apartTold.Load()
	if of < leastApart || 2*elsewhere < of || elsewhere < 2*last {
		return float64(elsewhere) / float64(max(1, of)), false
	}
	return float64(elsewhere) / float64(of), m.apartTold.CompareAndSwap(last, elsewhere)
}

// DecisionBytes returns the memory of all open decisions.
func (m *Metrics) DecisionBytes() int64 { return m.decisions.Bytes() }

// NewMetrics registers the metrics of the first stage.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{episodes: assemble.NewMetrics(reg), decisions: feedback.NewMetrics(reg)}
}

// Intake is the first stage of a partition, or of a file: it turns events into units. Decisions of policies with
// delayed feedback wait for it. The events of other policies are folded into episodes and blocks.
type Intake struct {
	Episodes  *assemble.Divided
	Decisions *feedback.Joiner // nil if no policy has such feedback
	Clock     order.EventClock
}

// Config configures how events are turned into units.
type Config struct {
	Policy   func(name string) (watch.Config, bool) // how a policy is watched, and whether it is
	Feedback func(name string) feedback.Config      // how its decisions are joined with feedback
	Joins    bool                                   // whether any policy has delayed feedback
	Limits   tenant.Limits                          // limits of the partition
	Tenants  tenant.List
}

// New returns the first stage of a partition, or of a file.
func New(cfg Config, m *Metrics) *Intake {
	episodes := assemble.Config{
		GroupBy: func(policy string) []string {
			c, _ := cfg.Policy(policy)
			return c.GroupBy
		},
		SplitBy: func(policy string) []string {
			c, _ := cfg.Policy(policy)
			return c.KeptLabels()
		},
		Stepwise: func(policy string) bool {
			c, _ := cfg.Policy(policy)
			return len(c.Guards.Limits) > 0
		},
		Watched: func(policy string) bool {
			_, watched := cfg.Policy(policy)
			return watched
		},
	}
	in := &Intake{Episodes: assemble.NewDivided(cfg.parts(episodes, m.Tenants), cfg.Tenants.Of, m.episodes)}
	if !cfg.Joins {
		return in
	}
	in.Decisions = feedback.New(feedback.Options{
		Of: cfg.Feedback, GroupBy: episodes.GroupBy, SplitBy: episodes.SplitBy, MaxOpen: cfg.Limits.OpenDecisions,
		RatedBy: func(policy string) map[string]string {
			c, _ := cfg.Policy(policy)
			return c.Raters
		},
		Shares: cfg.shares(m.Tenants), ShareOf: cfg.Tenants.Of,
	}, m.decisions, m.episodes)
	return in
}

// parts returns a part of the episodes for each tenant, and one for the policies of none.
func (c Config) parts(all assemble.Config, a *tenant.Accounts) (out []assemble.Part) {
	open, streams := c.Tenants.OpenEpisodes(c.Limits.OpenEpisodes), c.Tenants.Streams(c.Limits.Streams)
	for i := range open {
		p := assemble.Part{Config: all}
		p.MaxOpen = open[i]
		if len(c.Tenants) > 0 { // a group has at least one stream
			p.MaxGroups, p.Over = min(mostGroups, streams[i]), a.Over(i)
		}
		if i < len(c.Tenants) {
			t := c.Tenants[i]
			p.Name, p.MaxPolicies, p.UnitsPerSecond = t.Name, t.Quota.Policies, t.Quota.UnitsPerSecond
		}
		out = append(out, p)
	}
	return out
}

// mostGroups is the maximum number of groups in a partition.
const mostGroups = 20_000

// shares returns a share of the open decisions for each tenant, and one for the policies of none; nil without tenants.
func (c Config) shares(a *tenant.Accounts) (out []feedback.Share) {
	if len(c.Tenants) == 0 {
		return nil
	}
	for i, most := range c.Tenants.OpenDecisions(c.Limits.OpenDecisions) {
		s := feedback.Share{MaxOpen: most, Over: a.Decisions(i)}
		if i < len(c.Tenants) {
			s.Name, s.MaxPolicies = c.Tenants[i].Name, c.Tenants[i].Quota.Policies
		}
		if over := a.Over(i); over != nil {
			s.Beyond = over.Policies
		}
		out = append(out, s)
	}
	return out
}

// Fold processes the next event, and passes the units that end with it to emit. It reports whether the event has a
// credible time: one up to believed, in Unix nanoseconds.
func (in *Intake) Fold(e *ingest.Event, believed int64, emit func(*ingest.Unit)) (timed bool) {
	return in.FoldApart(e, believed, emit, nil)
}

// FoldApart is like Fold, but passes most decisions to decided, unless that is nil. A decision is valid until decided
// returns.
func (in *Intake) FoldApart(e *ingest.Event, believed int64, emit func(*ingest.Unit), decided func(*ingest.Decision)) (timed bool) {
	timed = in.Advance(e, believed, emit)
	if in.Decisions != nil && in.Decisions.Takes(e.Policy) {
		in.Decisions.Fold(e, in.Clock.TS)
		return timed
	}
	if in.Decisions != nil && in.Decisions.Ended() > 0 {
		in.Episodes.Fold(e, in.after(emit))
	} else {
		in.Episodes.FoldApart(e, emit, decided)
	}
	return timed
}

// Advance processes the time of an event, and passes the units of the decisions that are due at that time to emit. It
// reports the same as Fold.
func (in *Intake) Advance(e *ingest.Event, believed int64, emit func(*ingest.Unit)) (timed bool) {
	timed = in.Clock.Read(e.TS, believed)
	if in.Decisions != nil {
		in.Decisions.Advance(in.Clock.TS, e.Pos, emit)
	}
	return timed
}

// after returns an emit that numbers units after the units that the decisions have ended at the same record. Readers
// recognize units that they already have by this number, whatever the policy.
func (in *Intake) after(emit func(*ingest.Unit)) func(*ingest.Unit) {
	return func(u *ingest.Unit) {
		u.Ord += in.Decisions.Ended()
		emit(u)
	}
}

// Drop discards the open episodes and decisions of a policy.
func (in *Intake) Drop(policy string) {
	in.Episodes.Forget(policy)
	if in.Decisions != nil {
		in.Decisions.Forget(policy)
	}
}

// Close removes the open episodes and decisions from the metrics.
func (in *Intake) Close() {
	in.Episodes.Close()
	if in.Decisions != nil {
		in.Decisions.Close()
	}
}

// Watches reports whether the first stage has seen events of any watched policy.
func (in *Intake) Watches() bool {
	return in.Episodes.Watches() || in.Decisions != nil && in.Decisions.Watches()
}
