// Package api serves metrics, health checks, the API and the console over HTTP, and decides who can make changes.
package api

import (
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/engine"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/wire"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// diffNote explains how to read the p-values.
const diffNote = "Each p-value is from a two-sample Kolmogorov-Smirnov test, based on the asymptotic distribution and assuming independent values. By chance, about 1 in 20 unchanged quantities has a p-value below 0.05, and more if values are dependent."

func (s *Server) baselines(w http.ResponseWriter, _ *http.Request) {
	out := []wire.Baseline{}
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			out = append(out, s.baselineOf(&p.Groups[i]))
		}
	}
	s.answer(w, http.StatusOK, map[string]any{"baselines": out})
}

func (s *Server) baseline(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			if b, has := s.baselineWithID(&p.Groups[i], id); has {
				s.baselineDetail(w, r, b)
				return
			}
		}
	}
	s.refuseOrder(w, engine.ErrUnknownBaseline)
}

func (s *Server) baselineDetail(w http.ResponseWriter, r *http.Request, b wire.Baseline) {
	sample, err := s.Orders.Sample(r.Context(), *b.ID)
	if err != nil && !isGone(err) {
		s.refuseOrder(w, err)
		return
	}
	detail := wire.BaselineDetail{Baseline: b, Quantities: []wire.Quantity{}}
	for _, q := range finding.DiffSamples(sample, nil) {
		detail.Quantities = append(detail.Quantities, wire.Quantity{Signal: q.Signal, Quantity: q.Quantity, Sample: *wire.SampleOf(q.A)})
	}
	s.answer(w, http.StatusOK, detail)
}

func (s *Server) baselineDiff(w http.ResponseWriter, r *http.Request) {
	out := wire.BaselineDiff{A: r.PathValue("id"), B: r.PathValue("other"), Note: diffNote, Quantities: []wire.QuantityDiff{}}
	a, err := s.Orders.Sample(r.Context(), out.A)
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	b, err := s.Orders.Sample(r.Context(), out.B)
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	for _, q := range finding.DiffSamples(a, b) {
		out.Quantities = append(out.Quantities, wire.QuantityDiff{
			Signal: q.Signal, Quantity: q.Quantity, A: wire.SampleOf(q.A), B: wire.SampleOf(q.B), D: wire.Number(q.D), P: wire.Number(q.P),
		})
	}
	s.answer(w, http.StatusOK, out)
}

// baselineWithID returns the baseline with the given id if the group has it or had it.
func (s *Server) baselineWithID(g *finding.GroupSummary, id string) (wire.Baseline, bool) {
	b := s.baselineOf(g)
	if g.Baseline.ID == id && id != "" {
		return b, true
	}
	for _, past := range g.Lineage.Past {
		if past.ID == id {
			return wire.Baseline{
				Policy: b.Policy, Group: b.Group, ID: &past.ID, Units: past.Units, Provisional: past.Provisional,
				Promoted: wire.OrNull(past.Promoted), Offsets: wire.List(past.Offsets), FrozenAt: wire.TimeOrNull(past.FrozenAt),
				FalseAlarmUnits: wire.OrNaN(0), EndedAt: wire.TimeOrNull(past.EndedAt), Why: wire.OrNull(past.Why), UsedInAYear: b.UsedInAYear, Past: []wire.PastBaseline{},
			}, true
		}
	}
	return wire.Baseline{}, false
}

func (s *Server) baselineOf(g *finding.GroupSummary) wire.Baseline {
	b := wire.Baseline{
		Policy:          g.Group.Policy,
		Group:           g.Group.Map(),
		ID:              wire.OrNull(g.Baseline.ID),
		Units:           g.Baseline.Units,
		Provisional:     g.Baseline.Provisional,
		Promoted:        wire.OrNull(g.Lineage.Promoted),
		Offsets:         wire.List(g.Baseline.Offsets),
		FrozenAt:        wire.TimeOrNull(g.FrozenAt),
		FrozenTS:        wire.At(g.FrozenTS),
		FalseAlarmUnits: wire.OrNaN(g.Promise.N),
		Promise:         g.Promise,
		Trending:        wire.OrNull(g.Trending),
		PolicyVersion:   wire.OrNull(g.Lineage.Version),
		IgnoredUnits:    g.Lineage.Ignored,
		UsedInAYear:     usedInAYear(g, s.Now()),
		Past:            []wire.PastBaseline{},
	}
	if g.Lineage.Wanted > 0 {
		b.Warmup = &wire.Warmup{Units: g.Lineage.Collected, Of: g.Lineage.Wanted}
	}
	if l := &g.Lineage; l.NextVersion != "" {
		b.Next = &wire.NextBaseline{PolicyVersion: l.NextVersion, Warmup: wire.Warmup{Units: l.NextUnits, Of: l.NextWanted}}
	}
	for _, p := range g.Lineage.Past {
		b.Past = append(b.Past, wire.PastBaseline{
			ID: p.ID, Units: p.Units, Provisional: p.Provisional, Promoted: wire.OrNull(p.Promoted), FrozenAt: p.FrozenAt.UTC(),
			EndedAt: p.EndedAt.UTC(), Why: p.Why,
		})
	}
	return b
}

// usedInAYear counts the baselines that a group has used in the last 365 days. With each of them, the risk of an
// unlucky baseline, which raises false alarms too often, recurs.
func usedInAYear(g *finding.GroupSummary, now time.Time) int {
	n := 0
	if g.Baseline.ID != "" {
		n++
	}
	for _, past := range g.Lineage.Past {
		if now.Sub(past.EndedAt) < 365*24*time.Hour {
			n++
		}
	}
	return n
}
