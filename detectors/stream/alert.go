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
	From, To      finding.UnitRef // the onset's confidence interval
	Interval      []ingest.Range
	Effect        finding.Effect
	Improvement   bool
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
