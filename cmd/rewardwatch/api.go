package main

import (
	"net/http"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/words"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// The answers of /api/v1. Their field names are a contract, described in web/openapi.json: a field is always there,
// and null where there is nothing to say.

type streamAPI struct {
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Signal      string            `json:"signal"`
	State       bank.State        `json:"state"`
	Missing     *string           `json:"missing"`
	Notes       []string          `json:"notes"` // which of its quantities are judged later than the others, or not, or within strata of the week, and why
	Fault       *string           `json:"fault"`
	Armed       []string          `json:"armed"`
	Units       int64             `json:"units"` // of the group
	Versions    versionsAPI       `json:"versions"`
	LastUnitTS  *instant          `json:"last_unit_ts"`
	BaselineID  *string           `json:"baseline_id"`
	Provisional bool              `json:"provisional"`
	Score       *number           `json:"score"` // the largest; null before a detector is armed
	EffectSize  number            `json:"effect_size"`
	Factor      number            `json:"dependence_factor"`
	Quantity    string            `json:"quantity"`
	Baseline    *distributionAPI  `json:"baseline"`
	Current     *distributionAPI  `json:"current"`
	Detectors   []detectorAPI     `json:"detectors"`
}

type detectorAPI struct {
	Detector  string    `json:"detector"`
	Branch    string    `json:"branch"`
	Score     *number   `json:"score"` // null for a gauge
	Statistic number    `json:"statistic"`
	Threshold *number   `json:"threshold"` // null for a gauge
	Gauge     *gaugeAPI `json:"gauge"`     // null of a detector that is not there for comparison alone
}

type gaugeAPI struct {
	Drifts   int64  `json:"drifts"`
	ARL0     number `json:"arl0_units"`
	MoreThan bool   `json:"more_than"` // arl0_units is a lower limit
}

type distributionAPI struct {
	Units     int        `json:"units"`
	Mean      number     `json:"mean"`
	SD        number     `json:"sd"`
	Q10       number     `json:"q10"`
	Q50       number     `json:"q50"`
	Q90       number     `json:"q90"`
	Histogram [10]number `json:"histogram_ratio"` // share of units between the baseline's deciles
}

type versionsAPI struct {
	Policy string `json:"policy_version"`
	Env    string `json:"env_version"`
	Reward string `json:"reward_version"`
}

type unitAPI struct {
	Ordinal     int64    `json:"ordinal"`
	Agent       *string  `json:"agent_id"`
	Episode     *string  `json:"episode_id"`
	Partition   int32    `json:"partition"`
	FirstOffset int64    `json:"first_offset"`
	Offset      int64    `json:"offset"`
	TS          *instant `json:"ts"`
}

type alarmAPI struct {
	ID          string            `json:"id"`
	Incident    string            `json:"incident"`
	State       string            `json:"state"` // firing or resolved
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Signal      string            `json:"signal"`
	Provisional bool              `json:"provisional"`
	Detectors   []string          `json:"detectors"`
	Score       number            `json:"score"`
	Cause       alerts.Cause      `json:"cause"`
	Evidence    []string          `json:"evidence"`
	At          unitAPI           `json:"at"`
	Onset       unitAPI           `json:"onset"`
	ResolvedAt  *unitAPI          `json:"resolved_at"`
	Effect      bank.Effect       `json:"effect"`
	Baseline    baselineRefJSON   `json:"baseline"`
	Before      versionsAPI       `json:"before"`
	After       versionsAPI       `json:"after"`
	Offsets     []ingest.Range    `json:"offsets"`
	evidenceJSON
}

type incidentAPI struct {
	ID          string            `json:"id"`
	State       string            `json:"state"` // open or closed
	Policy      string            `json:"policy"`
	Group       map[string]string `json:"group"`
	Severity    alerts.Severity   `json:"severity"`
	Provisional bool              `json:"provisional"`
	Cause       alerts.Cause      `json:"cause"`
	Evidence    []string          `json:"evidence"`
	Opened      unitAPI           `json:"opened"`
	Closed      *unitAPI          `json:"closed"`

	Causes     []alerts.RankedCause `json:"causes"` // the likeliest first
	Alarms     []alarmAPI           `json:"alarms"`
	MutedUntil *time.Time           `json:"muted_until"`
	Decisions  []decisionAPI        `json:"decisions"`
}

type decisionAPI struct {
	Decision alerts.DecisionKind `json:"decision"`
	By       string              `json:"by"`
	Why      string              `json:"why"`
	At       time.Time           `json:"at"`
	Until    *time.Time          `json:"until"` // of a mute
}

type faultAPI struct {
	Policy string            `json:"policy"`
	Group  map[string]string `json:"group"`
	Rules  map[string]string `json:"rules"` // by signal
	Since  unitAPI           `json:"since"`
}

func (s *server) streams(w http.ResponseWriter, _ *http.Request) {
	out := []streamAPI{}
	for _, p := range s.view.Summaries() {
		for i := range p.Groups {
			out = appendStreams(out, &p.Groups[i])
		}
	}
	s.answer(w, http.StatusOK, map[string]any{"streams": out})
}

func appendStreams(out []streamAPI, g *bank.GroupSummary) []streamAPI {
	labels := g.Group.Map()
	for i := range g.Streams {
		stream := &g.Streams[i]
		out = append(out, streamAPI{
			Policy:      g.Group.Policy,
			Group:       labels,
			Signal:      stream.Signal,
			State:       stream.State,
			Missing:     orNull(stream.Missing),
			Notes:       list(stream.Notes),
			Fault:       orNull(stream.Fault),
			Armed:       list(stream.Armed),
			Units:       g.Units,
			Versions:    versionsAPI(g.Versions),
			LastUnitTS:  at(g.LastUnitTS),
			BaselineID:  orNull(g.Baseline.ID),
			Provisional: g.Baseline.Provisional,
			Score:       scoreOf(stream),
			EffectSize:  number(stream.Effect),
			Factor:      number(stream.Factor),
			Quantity:    stream.Quantity,
			Baseline:    distributionOf(stream.Baseline),
			Current:     distributionOf(stream.Current),
			Detectors:   detectorsOf(stream),
		})
	}
	return out
}

// scoreOf gives the largest score of the detectors that have one.
func scoreOf(s *bank.StreamSummary) *number {
	largest, any := words.Score(s)
	if !any {
		return nil
	}
	return new(number(largest))
}

func detectorsOf(s *bank.StreamSummary) []detectorAPI {
	out := make([]detectorAPI, len(s.Detectors))
	for i, d := range s.Detectors {
		out[i] = detectorAPI{Detector: d.Detector, Branch: d.Branch, Statistic: number(d.Statistic)}
		if d.Threshold != 0 {
			out[i].Score, out[i].Threshold = new(number(d.Score)), new(number(d.Threshold))
		}
		if d.Gauge != nil {
			out[i].Gauge = &gaugeAPI{d.Gauge.Drifts, number(d.Gauge.ARL0), d.Gauge.MoreThan}
		}
	}
	return out
}

func distributionOf(d bank.Distribution) *distributionAPI {
	if d.Units == 0 {
		return nil
	}
	out := &distributionAPI{
		Units: d.Units, Mean: number(d.Mean), SD: number(d.SD), Q10: number(d.Q10), Q50: number(d.Q50), Q90: number(d.Q90),
	}
	for i, share := range d.HistogramRatio {
		out.Histogram[i] = number(share)
	}
	return out
}

func (s *server) alarms(w http.ResponseWriter, _ *http.Request) {
	s.answer(w, http.StatusOK, map[string]any{"alarms": alarmsOf(s.view.Alarms())})
}

func alarmsOf(alarms []alerts.Alarm) []alarmAPI {
	out := make([]alarmAPI, len(alarms))
	for i, a := range alarms {
		out[i] = alarmAPI{
			ID:          a.ID,
			Incident:    a.Incident,
			State:       words.AlarmState(a),
			Policy:      a.Group.Policy,
			Group:       a.Group.Map(),
			Signal:      a.Signal,
			Provisional: a.Provisional,
			Detectors:   list(a.Detectors),
			Score:       number(a.Score),
			Cause:       a.Cause,
			Evidence:    list(a.Evidence),
			At:          unitOf(a.At),
			Onset:       unitOf(a.Onset),
			ResolvedAt:  unitIf(a.Resolved, a.ResolvedAt),
			Effect:      a.Effect,
			Baseline:    baselineRefJSON{ID: a.Baseline.ID, Units: a.Baseline.Units, Config: a.Baseline.Config},
			Before:      versionsAPI(a.Before),
			After:       versionsAPI(a.After),
			Offsets:     list(a.Offsets),

			evidenceJSON: evidenceOf(a),
		}
	}
	return out
}

func unitOf(u bank.UnitRef) unitAPI {
	return unitAPI{
		Ordinal:     u.Ordinal,
		Agent:       orNull(u.Agent),
		Episode:     orNull(u.Episode),
		Partition:   u.Pos.Partition,
		FirstOffset: u.First.Offset,
		Offset:      u.Pos.Offset,
		TS:          at(u.TS),
	}
}

func unitIf(valid bool, u bank.UnitRef) *unitAPI {
	if !valid {
		return nil
	}
	return new(unitOf(u))
}

func (s *server) incidents(w http.ResponseWriter, _ *http.Request) {
	incidents := []incidentAPI{}
	for _, i := range s.view.Incidents() {
		incidents = append(incidents, incidentOf(i))
	}
	faults := []faultAPI{}
	for _, f := range s.view.Faults() {
		faults = append(faults, faultAPI{Policy: f.Group.Policy, Group: f.Group.Map(), Rules: f.Streams, Since: unitOf(f.Since)})
	}
	s.answer(w, http.StatusOK, map[string]any{"incidents": incidents, "telemetry_faults": faults})
}

func incidentOf(i alerts.Incident) incidentAPI {
	return incidentAPI{
		ID:          i.ID,
		State:       incidentState(i),
		Policy:      i.Group.Policy,
		Group:       i.Group.Map(),
		Severity:    i.Severity,
		Provisional: i.Provisional,
		Cause:       i.Cause,
		Evidence:    list(i.Evidence),
		Opened:      unitOf(i.Opened),
		Closed:      unitIf(i.Closed, i.ClosedAt),
		Alarms:      alarmsOf(i.Alarms),
		Causes:      list(i.Causes),
		MutedUntil:  timeOrNull(i.MutedUntil),
		Decisions:   decisionsOf(i.Decisions),
	}
}

func decisionsOf(decisions []alerts.Decision) []decisionAPI {
	out := make([]decisionAPI, len(decisions))
	for k, d := range decisions {
		out[k] = decisionAPI{Decision: d.Kind, By: d.By, Why: d.Why, At: d.At.UTC(), Until: timeOrNull(d.Until)}
	}
	return out
}

// timeOrNull gives nil for the zero time.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func (s *server) retrainSchema(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/schema+json")
	s.write(w, retrain.Schema())
}

func (s *server) deliveries(w http.ResponseWriter, r *http.Request) {
	deliveries, err := s.view.Deliveries(r.Context(), r.URL.Query().Get("request"), maxListed)
	if err != nil {
		s.unavailable(w, err)
		return
	}
	s.answer(w, http.StatusOK, map[string]any{"deliveries": list(deliveries)})
}

// unavailable logs why the ledger could not be read: its error may name files that are no business of the client.
func (s *server) unavailable(w http.ResponseWriter, err error) {
	s.log.Error().Err(err).Msg("cannot read the ledger")
	s.refuse(w, http.StatusServiceUnavailable, "the ledger cannot be read")
}
