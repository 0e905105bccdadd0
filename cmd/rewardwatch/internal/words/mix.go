package words

import (
	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
)

// Cause names the cause of an incident and, if the mix of strata explains the change, the field that divides the
// strata.
func Cause(i *alerts.Incident) string {
	if by := i.MixedBy(); by != "" {
		return Plain(i.Cause) + " (mix of " + by + ")"
	}
	return Plain(i.Cause)
}

// Mix describes how the change of a signal is divided into the mix of strata and the change within them.
type Mix struct {
	By, Quantity, Change string
	Mix, Share, Within   string
	Conclusion           string
}

// MixOf returns the split in the evidence of an incident, or nil if the mix contributes to no alarm.
func MixOf(i *alerts.Incident) *Mix {
	a := i.Mixed()
	if a == nil {
		return nil
	}
	s := a.Mix
	m := &Mix{
		By: s.By, Quantity: finding.QuantityOf(a.Signal, s.Quantity), Change: alerts.InSD(s.Change, 0, s.SD), Mix: alerts.InSD(s.Mix, s.MixError, s.SD),
		Share: alerts.ShareWords(s), Within: alerts.InSD(s.Within, s.WithinError, s.SD),
	}
	switch {
	case s.Explained():
		m.Conclusion = "The change in the mix explains the drift: within individual values of " + s.By + ", there is no clear change."
	case s.Beyond():
		m.Conclusion = "The change in the mix does not fully explain the drift: there is also a change within individual values of " + s.By + "."
	default:
		m.Conclusion = "The change in the mix contributes to the drift, but does not clearly explain it."
	}
	return m
}
