package stream

import (
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Alert describes a drift. Exported fields are saved.
type Alert struct {
	Detectors     []string
	Score         float64
	Quantity      string
	Onset         finding.UnitRef
	From, To      finding.UnitRef // its interval
	Interval      []ingest.Range
	Effect        finding.Effect
	Improvement   bool
	Improved      bool // it was an improvement once
	Histogram     *finding.Histogram
	Before, After ingest.Versions
	Changed       []string
	Paces         finding.Paces
	Offsets       []ingest.Range
}

// Tell adds the description of the drift to a finding.
func (a *Alert) Tell(f *finding.Finding, baseline finding.BaselineRef) {
	f.Detectors, f.Score, f.Effect, f.Histogram = slices.Clone(a.Detectors), a.Score, a.Effect, a.Histogram
	f.Improvement = a.Improvement
	f.Onset, f.OnsetFrom, f.OnsetTo, f.OnsetOffsets = a.Onset, a.From, a.To, slices.Clone(a.Interval)
	f.Before, f.After, f.Changed, f.Paces = a.Before, a.After, slices.Clone(a.Changed), a.Paces
	f.Offsets, f.Baseline = slices.Clone(a.Offsets), baseline
}

// succession knows which version came into service after a unit in place of one of its versions, and "" for none.
type succession interface {
	Successor(of ingest.Versions, unit int64, paces finding.Paces) string
}

// Successor returns the version that replaced one of those that the alarm was raised for, or "". The newest units then no
// longer show how far the signal drifted. An alarm that is or was an improvement has none: it is measured as long as it
// lasts, or it would hide that a later version is worse.
func (s *Stream) Successor(v succession) string {
	if s.Alert.Improvement || s.Alert.Improved {
		return ""
	}
	return v.Successor(s.Alert.After, s.AlarmedAt, s.Alert.Paces)
}
