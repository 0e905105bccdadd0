package alerts

import (
	"fmt"
	"math"
	"slices"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/detectors/mix"
	"github.com/rewardwatch/rewardwatch/detectors/signals"
)

// explainedByMix reports whether the mix of strata alone explains the change of the signal: the shares of the strata
// have changed, but not how the policy treats each stratum or what it earns there. If the laws of the steps show
// another cause, it returns false.
func explainedByMix(f *finding.Finding, laws *lawsNote) bool {
	return f.Mix != nil && f.Mix.Explained() && (laws.cause == CauseUnknown || laws.cause == CauseEnvironment)
}

// mixBound is the evidence against the other causes, in nats, if the mix explains a change. A version that changed at
// the same time counts less: if it had an effect, values within the strata would have changed.
const mixBound = 6.

// mixSays returns the evidence of the mix for a cause, in nats. It replaces the evidence of the movements.
func mixSays(c Cause) float64 {
	if c == CauseEnvironment {
		return 0
	}
	return -mixBound
}

// onlyMixed returns the alarm that determines the cause of an incident. If the mix explains the change of lead, this is
// an alarm that has certainly changed within the strata, if there is one; otherwise it is lead.
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

// MixedBy returns the field that divides units into the strata whose mix explains the headline alarm, such as
// labels.segment, or "" if the mix explains nothing.
func (i *Incident) MixedBy() string {
	if i.Cause != CauseEnvironment || len(i.Alarms) == 0 {
		return ""
	}
	if a := i.Headline(); a.Mix != nil && a.Mix.Explained() {
		return a.Mix.By
	}
	return ""
}

// causeWords returns the cause and, if the mix of strata explains the headline alarm, the field that divides the
// strata.
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

// withMix adds the words about the mix of one of the alarms to the evidence of an incident, unless they are part of it.
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

// mixWords says how much of a signal's change comes from the mix of strata, if part of it certainly does. s may be nil.
func mixWords(signal string, s *mix.Split) []string { return MixWords(signal, s, "baseline SD") }

// MixWords returns the evidence about the mix as one text, or nothing if the mix does not contribute. sd is the name of
// the standard deviation in which the change is expressed.
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

// tellMix puts the words about the mix at the beginning of the evidence of the environment if the mix explains the
// change, and otherwise of the first cause.
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
