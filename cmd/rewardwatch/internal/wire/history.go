package wire

import (
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/history"
)

// History is the course of a signal of a group over the past week, in spans that are longer the older they are.
type History struct {
	Policy   string            `json:"policy"`
	Group    map[string]string `json:"group"`
	Signal   string            `json:"signal"`
	Unit     string            `json:"unit"` // what is counted: episode, block or decision
	Baseline *Level            `json:"baseline"`
	Spans    []HistorySpan     `json:"spans"` // with values, oldest first
	// Changes are the changes of the versions in the units, oldest first.
	Changes []VersionChange `json:"version_changes"`
}

// VersionChange is a change of the versions in the units of a group.
type VersionChange struct {
	Unit   int64    `json:"unit"` // ordinal of the first unit with the new versions
	TS     *Instant `json:"ts"`   // null without a clock
	Before Versions `json:"before"`
	After  Versions `json:"after"`
}

// Level is the mean and the standard deviation of a signal in its baseline.
type Level struct {
	Mean Number `json:"mean"`
	SD   Number `json:"sd"`
}

// HistorySpan summarizes the values of a signal in consecutive units.
type HistorySpan struct {
	FirstUnit int64    `json:"first_unit"` // ordinal
	Units     int64    `json:"units"`
	From      *Instant `json:"from"` // of the first unit; null without a clock
	To        *Instant `json:"to"`   // of the last unit
	Values    uint32   `json:"values"`
	Mean      Number   `json:"mean"`
	SD        Number   `json:"sd"`
}

// HistoryOf returns the history of a signal of a group.
func HistoryOf(g *finding.GroupSummary, signal string, past *history.Record) History {
	h := History{Policy: g.Group.Policy, Group: g.Group.Map(), Signal: signal, Unit: g.UnitName().One(), Spans: []HistorySpan{}, Changes: []VersionChange{}}
	for i := range g.Streams {
		if b := &g.Streams[i].Baseline; g.Streams[i].Signal == signal && b.Units > 0 {
			h.Baseline = &Level{Number(b.Mean), Number(b.SD)}
		}
	}
	for i, b := range past.Of(signal) {
		if s := past.Spans[i]; b.N > 0 {
			h.Spans = append(h.Spans, HistorySpan{
				FirstUnit: s.First, Units: s.Units, From: At(s.From), To: At(s.To), Values: b.N, Mean: Number(b.Mean), SD: Number(b.SD),
			})
		}
	}
	for _, c := range past.Changes {
		h.Changes = append(h.Changes, VersionChange{Unit: c.Unit, TS: At(c.TS), Before: Versions(c.From), After: Versions(c.To)})
	}
	return h
}
