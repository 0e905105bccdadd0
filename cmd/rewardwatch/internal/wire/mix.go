package wire

import "github.com/rewardwatch/rewardwatch/detectors/mix"

// The findings of a Mix.
const (
	MixExplains  = "mix"       // the mix alone explains the change
	MixPart      = "both"      // the mix certainly contributes, but does not explain the change alone
	MixUndecided = "undecided" // the mix does not certainly contribute
)

// Mix divides the change of a quantity's mean into the part due to the mix of strata and the part within the strata.
// Parts are in the unit of the quantity and sum to the change.
type Mix struct {
	Shown       string  `json:"shown"`
	Quantity    string  `json:"quantity"`
	SplitBy     string  `json:"split_by"` // labels.<name>, env or observation.<name>
	Value       *string `json:"value"`    // stratum whose share contributes most; null for values that do not occur in the baseline
	ShareBefore Number  `json:"share_before"`
	ShareAfter  Number  `json:"share_after"`
	Units       int64   `json:"units"` // number of units since the onset
	BaselineSD  Number  `json:"baseline_sd"`
	Change      Number  `json:"change"`
	Mix         Number  `json:"mix"`
	MixError    Number  `json:"mix_standard_error"`
	Within      Number  `json:"within"`
	WithinError Number  `json:"within_standard_error"`
	// P is the probability that strata that have not changed differ from their baselines at least as much as these do.
	P Number `json:"within_p"`
}

// MixOf returns a split in the form of the API, or nil for nil.
func MixOf(s *mix.Split) *Mix {
	if s == nil {
		return nil
	}
	out := &Mix{
		Shown: MixUndecided, Quantity: s.Quantity, SplitBy: s.By, Value: OrNull(s.Stratum), ShareBefore: Number(s.Before), ShareAfter: Number(s.After),
		Units: s.Units, BaselineSD: Number(s.SD), Change: Number(s.Change), Mix: Number(s.Mix), MixError: Number(s.MixError),
		Within: Number(s.Within), WithinError: Number(s.WithinError), P: Number(s.P),
	}
	switch {
	case s.Explained():
		out.Shown = MixExplains
	case s.Contributes():
		out.Shown = MixPart
	}
	return out
}

// split converts the split back, or returns nil for nil.
func (m *Mix) split() *mix.Split {
	if m == nil {
		return nil
	}
	out := &mix.Split{
		Quantity: m.Quantity, By: m.SplitBy, Before: float64(m.ShareBefore), After: float64(m.ShareAfter), Units: m.Units, SD: float64(m.BaselineSD),
		Change: float64(m.Change), Mix: float64(m.Mix), MixError: float64(m.MixError), Within: float64(m.Within),
		WithinError: float64(m.WithinError), P: float64(m.P),
	}
	if m.Value != nil {
		out.Stratum = *m.Value
	}
	return out
}
