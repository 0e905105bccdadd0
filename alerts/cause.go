package alerts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/fault"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxEvidence is the maximum number of pieces of evidence for a cause.
const maxEvidence = 8

// leadingWeight is the minimum weight at which the first of the ranked causes is named.
const leadingWeight = .65

// clearWeight is the weight of a cause that is not weighed against the others: the telemetry if a fault falsifies
// values, or reward hacking.
const clearWeight = .9

// movementBound is the maximum evidence, in nats, from signals that moved. It is less than the evidence of a version
// that changed at the onset and rarely changes, because a release is a fact.
const movementBound = 4.

// RankedCause is a possible cause with its weight among all causes, and the evidence for and against it, in words.
type RankedCause struct {
	Cause    Cause
	Weight   float64 // 0 to 1; those of all causes sum to 1
	Evidence []string
}

// negligibleWeight is the weight below which a cause is shown with 0 %.
const negligibleWeight = .005

// Telling returns the evidence for people: of a cause that is ruled out only what speaks against it.
func (c RankedCause) Telling() []string {
	if c.Weight >= negligibleWeight {
		return c.Evidence
	}
	return slices.DeleteFunc(slices.Clone(c.Evidence), func(e string) bool { return !isAgainst(e) })
}

// MarshalJSON writes the weight with three decimals, and an empty list if there is no evidence.
func (c RankedCause) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Cause    Cause    `json:"cause"`
		Weight   float64  `json:"weight"`
		Evidence []string `json:"evidence"`
	}{c.Cause, math.Round(1000*c.Weight) / 1000, append([]string{}, c.Evidence...)})
}

// hypothesis describes the effects that a cause is expected to have on the telemetry.
type hypothesis struct {
	cause   Cause
	moves   [classes]float64 // the probability that the cause moves the class
	answers float64          // the probability that the cause moves actions if observations have not moved; otherwise moves[actions] applies
	further float64          // the probability that actions move further than observations, if both move
}

// hypotheses returns the causes between which evidence is weighed. Without evidence, all are equally probable. A reward
// function changes rewards, even for the same actions, and nothing else by itself. A policy changes actions and their
// consequences. An environment changes observations or outcomes, to which a policy may respond with other actions.
func hypotheses() [3]hypothesis {
	return [3]hypothesis{
		{CausePolicy, [classes]float64{
			rewards: .8, likeRewards: .35, actions: .95, observations: .15, outcomes: .5, lengths: .5,
		}, .95, .85},
		{CauseEnvironment, [classes]float64{
			rewards: .8, likeRewards: .7, actions: .6, observations: .65, outcomes: .7, lengths: .5,
		}, .15, .15},
		{CauseRewardFunction, [classes]float64{
			rewards: .97, likeRewards: .95, actions: .005, observations: .005, outcomes: .005, lengths: .005,
		}, .005, .5},
	}
}

// verdict is the conclusion from the evidence.
type verdict struct {
	cause    Cause
	evidence []string
	causes   []RankedCause
}

// attribute names the cause of an alarm if one clearly leads, with the evidence in words. The evidence comes from
// faults of the telemetry, from the versions that changed at the onset, and from what has moved since then and what has
// not.
func attribute(f finding.Finding, faults []StreamFault) verdict {
	moved := observe(f.Shifts)
	laws := readLaws(&f, &moved)
	if evidence := faultEvidence(f.Onset, f.Promise.UnitName(), faults); len(evidence) > 0 {
		return verdict{CauseTelemetry, evidence, ahead(CauseTelemetry, evidence, rank(f, &moved, &laws, nil))}
	}
	if f.Guard != nil && f.Guard.Cause != "" { // the incident that tripped it has weighed the evidence
		cause, why := Cause(f.Guard.Cause), []string{f.Guard.Why}
		return verdict{cause, why, ahead(cause, why, rank(f, &moved, &laws, nil))}
	}
	return weigh(f, &moved, &laws).orHacking(&f, &laws).orSwapped(&f)
}

// weigh names the cause if one clearly leads, for telemetry without a fault that falsifies values.
func weigh(f finding.Finding, moved *movements, laws *lawsNote) verdict {
	v := verdict{cause: CauseUnknown, causes: rank(f, moved, laws, nil)}
	if v.names(f, moved, laws) {
		return v
	}
	if shows(f.OffPolicy) {
		v.causes = rank(f, moved, laws, f.OffPolicy)
		if v.names(f, moved, laws) {
			return v
		}
	}
	why := append([]string{whyUnknown(f)}, mixWords(f.Signal, f.Mix)...)
	why = append(why, offPolicyWords(f.OffPolicy)...)
	if f.Guard != nil {
		why = []string{f.Guard.Why, whyUnknown(f)}
	}
	why = append(why, laws.evidence...)
	v.evidence = keepFirst(append(why, moved.words(f.Promise.UnitName())...), maxEvidence)
	return v
}

// names sets the cause if the first of the ranked causes clearly leads, and reports whether it does.
func (v *verdict) names(f finding.Finding, moved *movements, laws *lawsNote) bool {
	first := v.causes[0]
	shown := laws.cause == first.Cause || explainedByMix(&f, laws) && first.Cause == CauseEnvironment
	if first.Weight < leadingWeight || !released(&f, CausePolicy, CauseEnvironment, CauseRewardFunction) && !moved.single(first.Cause) && !shown {
		return false
	}
	v.cause, v.evidence = first.Cause, first.Evidence
	return true
}

// rank returns the causes, the one with the largest weight first. The weight of a cause is the probability that it
// produces the observed movements, times the evidence of the versions and, unless it is nil, of an off-policy estimate.
// If the laws of the steps identify the cause, or the mix of strata explains the change, this replaces the movements.
func rank(f finding.Finding, moved *movements, laws *lawsNote, estimate *finding.OffPolicy) []RankedCause {
	all := laws.hypotheses()
	scores := laws.score(all, moved)
	if explainedByMix(&f, laws) {
		for i, h := range all {
			scores[i] = mixSays(h.cause)
		}
	}
	total := 0.0
	var order []int
	for i, h := range all {
		scores[i] = math.Exp(scores[i] + versionSays(h.cause, f) + offPolicySays(h.cause, estimate))
		total += scores[i]
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	ranked := make([]RankedCause, len(all))
	for place, i := range order {
		rival := all[order[0]]
		if place == 0 {
			rival = all[order[1]]
		}
		ranked[place] = RankedCause{Cause: all[i].cause, Weight: scores[i] / total, Evidence: all[i].evidence(f, moved, rival)}
	}
	laws.tell(ranked)
	tellMix(ranked, &f)
	if estimate != nil {
		ranked[0].Evidence = keepFirst(append(offPolicyWords(estimate), ranked[0].Evidence...), maxEvidence)
	}
	return ranked
}

// movement returns the logarithm of the probability that exactly these classes moved.
func (h hypothesis) movement(moved *movements) float64 {
	sum := 0.0
	for c := range classes {
		if moved.tell(c) {
			sum += math.Log(h.likelihood(c, moved))
		}
	}
	return sum
}

// likelihood returns how likely the values of a class are under the cause, relative to a class that has not moved.
func (h hypothesis) likelihood(c class, moved *movements) float64 {
	if c == actions {
		return h.doneFor(moved[observations], moved[actions])
	}
	return moved[c].likelihood(h.moves[c])
}

// doneFor returns the likelihood of the actions, done, given the observations, seen: the mean over whether the
// observations moved. If both moved, it takes into account which of them moved further.
func (h hypothesis) doneFor(seen, done movement) float64 {
	further := h.further
	switch {
	case seen.quantities == 0:
		further = .5
	case prominence(done.foremost) <= prominence(seen.foremost):
		further = 1 - further
	}
	p, q := h.moves[observations], h.moves[actions]
	both := p * seen.odds * (q*done.odds*2*further + 1 - q)
	return (both + (1-p)*done.likelihood(h.answers)) / seen.likelihood(p)
}

// released reports whether the version of one of the causes changed at the onset, and changes so rarely that this is
// hardly a coincidence.
func released(f *finding.Finding, causes ...Cause) bool {
	return slices.ContainsFunc(causes, func(c Cause) bool {
		return slices.Contains(f.Changed, string(c)) && f.Paces.Of(string(c)).Rare()
	})
}

// versionSays returns the evidence for a cause from its version, in nats.
func versionSays(c Cause, f finding.Finding) float64 {
	switch from, to := versionsOf(c, f.Before, f.After); {
	case slices.Contains(f.Changed, string(c)):
		return f.Paces.Of(string(c)).Changed()
	case c == CauseEnvironment || c == CauseObservations || from == "" && to == "":
		return 0 // the world changes without a release
	default:
		return f.Paces.Of(string(c)).Unchanged()
	}
}

// againstIt is the prefix of evidence against a cause, and againstItBefore the prefix in evidence that earlier versions
// have saved.
const (
	againstIt       = "evidence against: "
	againstItBefore = "against it: "
)

func isAgainst(evidence string) bool {
	return strings.HasPrefix(evidence, againstIt) || strings.HasPrefix(evidence, againstItBefore)
}

// evidence lists the evidence for the cause and then the evidence against it, compared with a rival cause.
func (h hypothesis) evidence(f finding.Finding, moved *movements, rival hypothesis) []string {
	var pro, contra []string
	if slices.Contains(f.Changed, string(h.cause)) {
		pro = append(pro, releaseWords(h.cause, &f))
	}
	for c := range classes {
		if !moved.tell(c) {
			continue
		}
		switch ratio := h.likelihood(c, moved) / rival.likelihood(c, moved); {
		case ratio >= .9:
			pro = append(pro, moved[c].words(c, f.Promise.UnitName()))
		case ratio < .5:
			contra = append(contra, againstIt+moved[c].words(c, f.Promise.UnitName()))
		}
	}
	if missing := moved.missing(); missing != "" && len(f.Shifts) > 0 {
		contra = append(contra, missing)
	}
	return keepFirst(append(pro, contra...), maxEvidence)
}

// words describes the movement of every class.
func (all *movements) words(unit finding.UnitName) []string {
	var out []string
	for c := range classes {
		if all[c].quantities > 0 {
			out = append(out, all[c].words(c, unit))
		}
	}
	if missing := all.missing(); missing != "" && len(out) > 0 {
		out = append(out, missing)
	}
	return out
}

// missing names the signals that would distinguish the causes but are not in the telemetry, or returns "" if all are.
func (all *movements) missing() string {
	var names []string
	for _, c := range []class{actions, observations, outcomes} {
		if all[c].quantities == 0 {
			names = append(names, c.String())
		}
	}
	switch last := len(names) - 1; {
	case last < 0:
		return ""
	case last > 1:
		names = []string{strings.Join(names[:last], ", "), names[last]}
	}
	return fmt.Sprintf("the telemetry contains no %s to compare with", strings.Join(names, " or "))
}

// ahead puts a clear cause first. The others share the remaining weight.
func ahead(cause Cause, evidence []string, others []RankedCause) []RankedCause {
	out := []RankedCause{{Cause: cause, Weight: clearWeight, Evidence: evidence}}
	for _, c := range others {
		if c.Cause != cause {
			c.Weight *= 1 - clearWeight
			out = append(out, c)
		}
	}
	return out
}

// settle determines the cause of an alarm again as the evidence grows. A cause that needs a person is not taken back,
// because the drift must not turn into a retraining order without that person.
func (a *Alarm) settle(f finding.Finding, faults []StreamFault) {
	v := attribute(f, faults)
	if a.Cause == CauseTelemetry && v.cause != CauseTelemetry {
		a.Causes = ahead(CauseTelemetry, a.Evidence, v.causes)
		return
	}
	a.Causes, a.EvidenceAt = v.causes, f.At
	if a.Cause.NeedsPerson() && v.cause != a.Cause && care(v.cause) <= care(a.Cause) {
		if a.Cause == CauseRewardHacking || v.cause == CauseRewardHacking {
			a.Causes = ahead(a.Cause, a.Evidence, v.causes)
		}
		return
	}
	a.Cause, a.Evidence = v.cause, v.evidence
}

// blameTelemetry attributes an alarm to a fault that was found after the alarm had fired. The attribution stays when
// the fault ends, because the values that raised the alarm cannot be judged again.
func (a *Alarm) blameTelemetry(fault StreamFault) {
	evidence := a.Evidence
	if a.Cause != CauseTelemetry {
		evidence = nil
	}
	causes := a.Causes
	if a.Cause == CauseTelemetry {
		causes = causes[1:]
	}
	a.Cause = CauseTelemetry
	a.Evidence = keepLast(appendNew(evidence, fault.words(a.UnitName())), maxEvidence)
	a.Causes = ahead(CauseTelemetry, a.Evidence, causes)
}

// attribute sets the cause of an incident from its alarms. A cause that needs a person takes precedence, because
// withholding a retraining is better than ordering a wrong one. Otherwise, the newest evidence that named a cause
// decides. The evidence shown is that of the first alarm with this cause, in the order of Headline, so it does not
// alternate between alarms as each is renewed. The mix of strata is the cause only if it explains all alarms.
func (i *Incident) attribute() {
	alarms := ofItsChange(i)
	lead := alarms[0]
	for _, a := range alarms {
		if leads(a, lead) {
			lead = a
		}
	}
	agree := slices.DeleteFunc(alarms, func(a *Alarm) bool { return a.Cause != lead.Cause })
	lead = i.onlyMixed(first(agree))
	i.Cause, i.Evidence, i.Causes = lead.Cause, i.withMix(lead.Evidence), lead.Causes
	if i.Cause == CauseRewardHacking && i.Guard() == nil {
		i.Improvement = false
		if !i.Provisional {
			i.Severity = Critical
		}
	}
}

// ofItsChange returns the alarms that can explain why the incident opened. A policy version that was released while the
// incident was open, for example by a retraining, may also drift from the baseline. Its alarms count only if their
// cause needs a person, or if no other firing alarm names a cause.
func ofItsChange(i *Incident) []*Alarm {
	own := slices.DeleteFunc(pointers(i.Alarms), func(a *Alarm) bool {
		return a.LaterThan(i) && a.Before.Policy != a.After.Policy && !a.Cause.NeedsPerson()
	})
	if slices.ContainsFunc(own, func(a *Alarm) bool { return !a.Resolved && care(a.Cause) > care(CauseUnknown) }) {
		return own
	}
	return pointers(i.Alarms)
}

// A cause is likely from likelyWeight on. From possibleWeight on, it is worth waiting for more evidence.
const (
	likelyWeight   = .7
	possibleWeight = .2
)

// Unsettled reports whether the cause may still turn out to require a person's decision: because it probably does, or
// because it might and the cause has not been reassessed since the alarms fired.
func (i *Incident) Unsettled() bool {
	weight := 0.0
	for _, c := range i.Causes {
		if c.Cause.NeedsPerson() {
			weight += c.Weight
		}
	}
	return weight > likelyWeight || weight > possibleWeight && !slices.ContainsFunc(i.Alarms, Alarm.renewed)
}

// renewed reports whether the evidence of an alarm has been renewed since the alarm fired.
func (a Alarm) renewed() bool { return a.EvidenceAt.Ordinal >= a.At.Ordinal+finding.SettledUnits }

// leads reports whether, for their incident, the cause of alarm a takes precedence over that of alarm than.
func leads(a, than *Alarm) bool {
	return cmp.Or(
		cmp.Compare(care(a.Cause), care(than.Cause)),
		cmp.Compare(a.EvidenceAt.Ordinal, than.EvidenceAt.Ordinal)) > 0
}

// NeedsPerson reports whether a person must decide before a drift of this cause starts a retraining, because the
// retraining would learn the fault.
func (c Cause) NeedsPerson() bool { return care(c) > care(CauseEnvironment) }

// care ranks causes by how much they need a person.
func care(c Cause) int {
	switch c {
	case CauseTelemetry:
		return 4
	case CauseRewardFunction, CauseObservations:
		return 3
	case CauseRewardHacking:
		return 2
	case CauseUnknown:
		return 0
	default:
		return 1
	}
}

// faultEvidence describes the telemetry faults that lasted beyond the onset. If there are many, it describes the
// newest.
func faultEvidence(onset finding.UnitRef, unit finding.UnitName, faults []StreamFault) []string {
	var evidence []string
	for _, s := range faults {
		if s.falsifies() && s.reaches(onset) {
			evidence = appendNew(evidence, s.words(unit))
		}
	}
	return keepLast(evidence, maxEvidence)
}

// reaches reports whether the fault still lasted at a unit of its group or came after it.
func (s *StreamFault) reaches(u finding.UnitRef) bool {
	return !s.Ended || s.Until.Ordinal >= u.Ordinal
}

// falsifies reports whether the fault produces wrong records. Findings during such a fault are attributed to the
// telemetry, and no retraining is ordered, because it would learn from these records. Duplicates and a skewed clock
// leave the judged values right, but not the records that a retraining would read. Silence produces no wrong records:
// agents that pause, or are stopped because they drift, send no wrong values, and a replay cannot detect silence. If
// most episodes have no end, this is also true of the baseline, so the judged episodes are comparable.
func (s *StreamFault) falsifies() bool {
	switch s.Rule {
	case fault.Silent, fault.NoEpisodeEnds, fault.EpisodesBegan, fault.MixedBlocks, fault.MostlyUnfinished:
		return false
	}
	return true
}

func (s *StreamFault) words(unit finding.UnitName) string {
	if s.Ended {
		return fmt.Sprintf("%s had a telemetry fault (%s) from %s to %s",
			s.Signal, s.Rule, s.Since.Numbered(unit), s.Until.Numbered(unit))
	}
	return fmt.Sprintf("%s has had a telemetry fault (%s) since %s", s.Signal, s.Rule, s.Since.Numbered(unit))
}

// versionsOf returns the versions of a cause before and after the onset.
func versionsOf(cause Cause, before, after ingest.Versions) (from, to string) {
	switch cause {
	case CauseEnvironment:
		return before.Env, after.Env
	case CauseRewardFunction:
		return before.Reward, after.Reward
	default:
		return before.Policy, after.Policy
	}
}

// versionChange describes which version changed from what to what.
func versionChange(cause Cause, f *finding.Finding) string {
	field := map[Cause]string{
		CausePolicy: "policy_version", CauseEnvironment: "env_version", CauseRewardFunction: "reward_version",
	}[cause]
	from, to := versionsOf(cause, f.Before, f.After)
	return fmt.Sprintf("%s changed from %s to %s", field, orNone(from), orNone(to))
}

// releaseWords describes the version that changed at the onset and, if this may be a coincidence, how often it changes.
func releaseWords(c Cause, f *finding.Finding) string {
	return versionChange(c, f) + " at the onset" + f.Paces.Of(string(c)).Words(f.Promise.UnitName())
}

// whyUnknown explains why the evidence names no cause.
func whyUnknown(f finding.Finding) string {
	if len(f.Changed) == 0 {
		if f.After == (ingest.Versions{}) {
			return "the telemetry contains no version fields, and no telemetry fault has affected values since the onset"
		}
		return "no version changed at the onset, and no telemetry fault has affected values since then"
	}
	if len(f.Changed) == 1 {
		return releaseWords(Cause(f.Changed[0]), &f)
	}
	var changes []string
	for _, c := range f.Changed {
		changes = append(changes, versionChange(Cause(c), &f))
	}
	return strings.Join(changes, " and ") + " at the onset, so their effects cannot be separated"
}

// appendNew appends a text that is not in the list yet. It always allocates new memory, because the list may be shared.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(slices.Clip(list), s)
}

// keepFirst returns the first n entries of a list.
func keepFirst[T any](s []T, n int) []T { return s[:min(len(s), n)] }

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}
