package main

import (
	"math"
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

type baselineAPI struct {
	Policy          string            `json:"policy"`
	Group           map[string]string `json:"group"`
	ID              *string           `json:"id"` // null while the first one is collected
	Units           int               `json:"units"`
	Provisional     bool              `json:"provisional"`
	Promoted        *string           `json:"promoted"` // who accepted it while it was provisional, and why
	Offsets         []ingest.Range    `json:"offsets"`
	FrozenAt        *time.Time        `json:"frozen_at"`
	FrozenTS        *instant          `json:"frozen_ts"`
	FalseAlarmUnits number            `json:"false_alarm_units"`
	Promise         bank.Promise      `json:"promise"`
	Trending        *string           `json:"trending"` // what moved on in the last warm-up that was refused for it
	EndedAt         *time.Time        `json:"ended_at"` // null while it is in use
	Why             *string           `json:"why"`      // it ended
	Warmup          *warmupAPI        `json:"warmup"`
	PolicyVersion   *string           `json:"policy_version"` // that it is of, with on_new_version: rebaseline
	Next            *nextAPI          `json:"next"`           // the version that warms up beside it
	IgnoredUnits    int64             `json:"ignored_units"`  // of versions that another one has followed
	UsedInAYear     int               `json:"used_in_a_year"` // baselines that the group was held to in the last 365 days
	Past            []pastAPI         `json:"past"`
}

type warmupAPI struct {
	Units int `json:"units"`
	Of    int `json:"of"`
}

type nextAPI struct {
	PolicyVersion string `json:"policy_version"`
	warmupAPI
}

type pastAPI struct {
	ID          string    `json:"id"`
	Units       int       `json:"units"`
	Provisional bool      `json:"provisional"`
	Promoted    *string   `json:"promoted"`
	FrozenAt    time.Time `json:"frozen_at"`
	EndedAt     time.Time `json:"ended_at"`
	Why         string    `json:"why"`
}

type baselineDetailAPI struct {
	baselineAPI
	Quantities []quantityAPI `json:"quantities"` // empty where the values are not kept any more
}

type quantityAPI struct {
	Signal   string `json:"signal"`
	Quantity string `json:"quantity"`
	sampleAPI
}

type sampleAPI struct {
	Units  int    `json:"units"`
	Mean   number `json:"mean"`
	SD     number `json:"sd"`
	Median number `json:"median"`
	Q10    number `json:"q10"`
	Q90    number `json:"q90"`
}

type diffAPI struct {
	A          string            `json:"a"`
	B          string            `json:"b"`
	Note       string            `json:"note"`
	Quantities []quantityDiffAPI `json:"quantities"`
}

type quantityDiffAPI struct {
	Signal   string     `json:"signal"`
	Quantity string     `json:"quantity"`
	A        *sampleAPI `json:"a"` // null where the baseline has not got the quantity
	B        *sampleAPI `json:"b"`
	D        number     `json:"ks_distance"`
	P        number     `json:"ks_p_value"`
}

// diffNote says how the p-values are to be read.
const diffNote = "Each p-value is of one two-sample Kolmogorov-Smirnov test of independent units, by its asymptotic " +
	"distribution: of twenty quantities that did not change, one is below 0.05 by chance, more where units depend on one another."

func (s *server) baselines(w http.ResponseWriter, _ *http.Request) {
	out := []baselineAPI{}
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			out = append(out, s.baselineOf(&p.Groups[i]))
		}
	}
	s.answer(w, http.StatusOK, map[string]any{"baselines": out})
}

func (s *server) baseline(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			if b, has := s.baselineWithID(&p.Groups[i], id); has {
				s.baselineDetail(w, r, b)
				return
			}
		}
	}
	s.refuseOrder(w, errUnknownBaseline)
}

func (s *server) baselineDetail(w http.ResponseWriter, r *http.Request, b baselineAPI) {
	sample, err := s.orders.Sample(r.Context(), *b.ID)
	if err != nil && !isGone(err) {
		s.refuseOrder(w, err)
		return
	}
	detail := baselineDetailAPI{baselineAPI: b, Quantities: []quantityAPI{}}
	for _, q := range bank.DiffSamples(sample, nil) {
		detail.Quantities = append(detail.Quantities, quantityAPI{q.Signal, q.Quantity, *sampleOf(q.A)})
	}
	s.answer(w, http.StatusOK, detail)
}

func (s *server) baselineDiff(w http.ResponseWriter, r *http.Request) {
	out := diffAPI{A: r.PathValue("id"), B: r.PathValue("other"), Note: diffNote, Quantities: []quantityDiffAPI{}}
	a, err := s.orders.Sample(r.Context(), out.A)
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	b, err := s.orders.Sample(r.Context(), out.B)
	if err != nil {
		s.refuseOrder(w, err)
		return
	}
	for _, q := range bank.DiffSamples(a, b) {
		out.Quantities = append(out.Quantities, quantityDiffAPI{
			Signal: q.Signal, Quantity: q.Quantity, A: sampleOf(q.A), B: sampleOf(q.B), D: number(q.D), P: number(q.P),
		})
	}
	s.answer(w, http.StatusOK, out)
}

func sampleOf(d bank.Distribution) *sampleAPI {
	if d.Units == 0 {
		return nil
	}
	return &sampleAPI{
		Units: d.Units, Mean: number(d.Mean), SD: number(d.SD), Median: number(d.Q50), Q10: number(d.Q10), Q90: number(d.Q90),
	}
}

// baselineWithID gives the baseline of an id where it is, or was, of the group.
func (s *server) baselineWithID(g *bank.GroupSummary, id string) (baselineAPI, bool) {
	b := s.baselineOf(g)
	if g.Baseline.ID == id && id != "" {
		return b, true
	}
	for _, past := range g.Lineage.Past {
		if past.ID == id {
			return baselineAPI{
				Policy: b.Policy, Group: b.Group, ID: &past.ID, Units: past.Units, Provisional: past.Provisional,
				Promoted: orNull(past.Promoted), Offsets: list(past.Offsets), FrozenAt: timeOrNull(past.FrozenAt),
				FalseAlarmUnits: orNaN(0), EndedAt: timeOrNull(past.EndedAt), Why: orNull(past.Why), UsedInAYear: b.UsedInAYear, Past: []pastAPI{},
			}, true
		}
	}
	return baselineAPI{}, false
}

func (s *server) baselineOf(g *bank.GroupSummary) baselineAPI {
	b := baselineAPI{
		Policy:          g.Group.Policy,
		Group:           g.Group.Map(),
		ID:              orNull(g.Baseline.ID),
		Units:           g.Baseline.Units,
		Provisional:     g.Baseline.Provisional,
		Promoted:        orNull(g.Lineage.Promoted),
		Offsets:         list(g.Baseline.Offsets),
		FrozenAt:        timeOrNull(g.FrozenAt),
		FrozenTS:        at(g.FrozenTS),
		FalseAlarmUnits: orNaN(g.Promise.N),
		Promise:         g.Promise,
		Trending:        orNull(g.Trending),
		PolicyVersion:   orNull(g.Lineage.Version),
		IgnoredUnits:    g.Lineage.Ignored,
		UsedInAYear:     usedInAYear(g, s.now()),
		Past:            []pastAPI{},
	}
	if g.Lineage.Wanted > 0 {
		b.Warmup = &warmupAPI{Units: g.Lineage.Collected, Of: g.Lineage.Wanted}
	}
	if l := &g.Lineage; l.NextVersion != "" {
		b.Next = &nextAPI{l.NextVersion, warmupAPI{Units: l.NextUnits, Of: l.NextWanted}}
	}
	for _, p := range g.Lineage.Past {
		b.Past = append(b.Past, pastAPI{
			ID: p.ID, Units: p.Units, Provisional: p.Provisional, Promoted: orNull(p.Promoted), FrozenAt: p.FrozenAt.UTC(),
			EndedAt: p.EndedAt.UTC(), Why: p.Why,
		})
	}
	return b
}

// orNaN gives NaN, which JSON shows as null, for a number that is not known yet.
func orNaN(x float64) number {
	if x == 0 {
		x = math.NaN()
	}
	return number(x)
}

// usedInAYear counts the baselines that a group was held to in the last 365 days. Each is one more chance of an unlucky
// one, which alarms too often.
func usedInAYear(g *bank.GroupSummary, now time.Time) int {
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
