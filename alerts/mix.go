package alerts

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// explainedByMix reports whether the mix of strata alone explains the change of the signal: who comes has changed, and
// neither how the policy treats them nor what it earns from them. If the laws of the steps show another cause, they count.
func explainedByMix(f *finding.Finding, laws *lawsNote) bool {
	return f.Mix != nil && f.Mix.Explained() && (laws.cause == CauseUnknown || laws.cause == CauseEnvironment)
}

// mixBound is the evidence against the other causes, in nats, if the mix explains a change. A version that changed at the
// same time counts less: had it an effect, the strata would have changed.
const mixBound = 6.

// mixSays returns the evidence of the mix for a cause, in nats, in place of what moved.
func mixSays(c Cause) float64 {
	if c == CauseEnvironment {
		return 0
	}
	return -mixBound
}

// onlyMixed returns the alarm that determines the cause of an incident instead of one whose change the mix explains: one
// that has certainly changed within the strata. It returns lead itself if there is none.
func (i *Incident) onlyMixed(lead *Alarm) *Alarm {
	if lead.Cause != CauseEnvironment || lead.Mix == nil || !lead.Mix.Explained() {
		return lead
	}
	for k := range i.Alarms {
		if a := &i.Alarms[k]; a.Mix != nil && !a.Mix.Explained() && a.Mix.Beyond() {
			return a
		}
	}
	return lead
}

// MixedBy returns what divides the strata whose mix explains the foremost alarm, such as labels.segment; "" if none does.
func (i *Incident) MixedBy() string {
	if i.Cause != CauseEnvironment || len(i.Alarms) == 0 {
		return ""
	}
	if a := i.Headline(); a.Mix != nil && a.Mix.Explained() {
		return a.Mix.By
	}
	return ""
}

// causeWords returns the cause, with what divides the strata if their mix explains an alarm.
func (i *Incident) causeWords() string {
	if by := i.MixedBy(); by != "" {
		return fmt.Sprintf("%s, the mix of %s", i.Cause, by)
	}
	return string(i.Cause)
}

// Mixed returns the alarm whose mix of strata appears in the evidence of the incident: the most important of those that
// have certainly changed within the strata, or else of all. It returns nil if the mix contributes to none.
func (i *Incident) Mixed() (of *Alarm) {
	for k := range i.Alarms {
		a := &i.Alarms[k]
		if a.Mix == nil || !a.Mix.Contributes() {
			continue
		}
		if of == nil || a.Mix.Beyond() && !of.Mix.Beyond() ||
			a.Mix.Beyond() == of.Mix.Beyond() && signals.Rank(a.Signal) < signals.Rank(of.Signal) {
			of = a
		}
	}
	return of
}

// withMix returns the evidence of an incident with what the mix says of one of its alarms, unless it says so already.
func (i *Incident) withMix(evidence []string) []string {
	for k := range i.Alarms {
		if words := mixWords(i.Alarms[k].Signal, i.Alarms[k].Mix); len(words) > 0 && slices.Contains(evidence, words[0]) {
			return evidence
		}
	}
	of := i.Mixed()
	if of == nil {
		return evidence
	}
	return keepFirst(append(mixWords(of.Signal, of.Mix), evidence...), maxEvidence)
}

// mixWords says how much of the change of a signal comes from the mix of strata, if any certainly does. s may be nil.
func mixWords(signal string, s *mix.Split) []string { return MixWords(signal, s, "baseline SD") }

// MixWords returns what the evidence says about the mix, with the name of the standard deviations: nothing, or one
// text.
func MixWords(signal string, s *mix.Split, sd string) []string {
	if s == nil || !s.Contributes() {
		return nil
	}
	moved, share := movedBy(finding.QuantityOf(signal, s.Quantity), s)+" "+sd, ShareWords(s)
	if s.Explained() {
		return []string{fmt.Sprintf("%s because %s; there is no clear change within each value of %s (%s)",
			moved, share, s.By, InSD(s.Within, s.WithinError, s.SD))}
	}
	return []string{fmt.Sprintf("%s: by %s because %s, and by %s within the values of %s",
		moved, InSD(s.Mix, s.MixError, s.SD), share, InSD(s.Within, s.WithinError, s.SD), s.By)}
}

// movedBy says by how many standard deviations a quantity rose or fell.
func movedBy(subject string, s *mix.Split) string {
	verb := "rose"
	if s.Change < 0 {
		verb = "fell"
	}
	return fmt.Sprintf("%s %s by %.2g", subject, verb, math.Abs(s.Change)/s.SD)
}

// InSD writes a part of a change and its standard error, if it is not 0, in standard deviations of the baseline.
func InSD(part, standardError, sd float64) string {
	if standardError == 0 {
		return fmt.Sprintf("%+.2f", part/sd)
	}
	return fmt.Sprintf("%+.2f ± %.2f", part/sd, standardError/sd)
}

// ShareWords describes how the share of the stratum that contributes most has changed.
func ShareWords(s *mix.Split) string {
	verb := "rose"
	if s.After < s.Before {
		verb = "fell"
	}
	value := s.By + "=" + s.Stratum
	if s.Stratum == "" {
		value = "other values of " + s.By
	}
	return fmt.Sprintf("the share of %s %s from %s to %s", value, verb, wholePercent(s.Before), wholePercent(s.After))
}

func wholePercent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// tellMix puts the words of the mix before the evidence of the environment if it explains the change, else before that of
// the first cause.
func tellMix(ranked []RankedCause, f *finding.Finding) {
	words := mixWords(f.Signal, f.Mix)
	if len(words) == 0 {
		return
	}
	at := 0
	if f.Mix.Explained() {
		at = slices.IndexFunc(ranked, func(c RankedCause) bool { return c.Cause == CauseEnvironment })
	}
	ranked[at].Evidence = keepFirst(append(words, ranked[at].Evidence...), maxEvidence)
}
