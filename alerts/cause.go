package alerts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// maxEvidence is how many pieces of evidence are told.
const maxEvidence = 8

// causesByCare lists the causes from the one that asks most for a person to the one that asks least: where the alarms
// of an incident differ, the first of them holds, so that a retraining is rather withheld than ordered wrongly.
var causesByCare = [...]Cause{CauseTelemetry, CauseRewardFunction, CauseEnvironment, CausePolicy, CauseUnknown}

// attribute names the cause of a new alarm from what is known without inference, with the evidence in words.
func attribute(f bank.Finding, faults []streamFault) (Cause, []string) {
	if evidence := faultEvidence(f.Onset, faults); len(evidence) > 0 {
		return CauseTelemetry, evidence
	}
	if cause, ok := onlyChange(f.Changed); ok {
		return cause, []string{versionChange(cause, f.Before, f.After) + " at the onset"}
	}
	return CauseUnknown, []string{whyUnknown(f)}
}

// faultEvidence tells of the telemetry faults that lasted beyond the onset, the newest ones where there are many.
func faultEvidence(onset bank.UnitRef, faults []streamFault) []string {
	var evidence []string
	for _, s := range faults {
		if s.falsifies() && s.reaches(onset) {
			evidence = appendNew(evidence, s.words())
		}
	}
	return keepLast(evidence, maxEvidence)
}

// reaches reports whether the fault was still there at a unit of its group or came after it.
func (s *streamFault) reaches(u bank.UnitRef) bool {
	return !s.Ended || s.Until.Ordinal >= u.Ordinal
}

// falsifies reports whether the fault makes wrong values. Silence does not: agents that pause, or are stopped because
// they drift, say nothing wrong, and a replay knows of no silence.
func (s *streamFault) falsifies() bool {
	return s.Rule != bank.FaultSilent && s.Rule != bank.FaultEndless
}

func (s *streamFault) words() string {
	if s.Ended {
		return fmt.Sprintf("%s was in a telemetry fault (%s) from unit %d to unit %d",
			s.Signal, s.Rule, s.Since.Ordinal, s.Until.Ordinal)
	}
	return fmt.Sprintf("%s is in a telemetry fault (%s) since unit %d", s.Signal, s.Rule, s.Since.Ordinal)
}

// onlyChange gives the cause where exactly one kind of version changed at the onset.
func onlyChange(changed []string) (Cause, bool) {
	if len(changed) != 1 {
		return "", false
	}
	cause := Cause(changed[0])
	switch cause {
	case CausePolicy, CauseEnvironment, CauseRewardFunction:
		return cause, true
	default:
		return "", false
	}
}

// versionChange says which version went from what to what.
func versionChange(cause Cause, before, after ingest.Versions) string {
	field, from, to := "policy_version", before.Policy, after.Policy
	switch cause {
	case CauseEnvironment:
		field, from, to = "env_version", before.Env, after.Env
	case CauseRewardFunction:
		field, from, to = "reward_version", before.Reward, after.Reward
	}
	return fmt.Sprintf("%s changed from %s to %s", field, orNone(from), orNone(to))
}

// whyUnknown says what was looked at in vain.
func whyUnknown(f bank.Finding) string {
	if len(f.Changed) == 0 {
		if f.After == (ingest.Versions{}) {
			return "the telemetry names no versions, and no fault of it falsified values since the onset"
		}
		return "no version changed at the onset, and no telemetry fault falsified values since then"
	}
	var changes []string
	for _, c := range f.Changed {
		changes = append(changes, versionChange(Cause(c), f.Before, f.After))
	}
	return strings.Join(changes, " and ") + " at the onset: their effects cannot be told apart"
}

// blameTelemetry puts an alarm down to a fault that was found after it had fired. It stays so when the fault ends,
// because what made the alarm cannot be judged again.
func (a *Alarm) blameTelemetry(fault streamFault) {
	evidence := a.Evidence
	if a.Cause != CauseTelemetry {
		evidence = nil
	}
	a.Cause = CauseTelemetry
	a.Evidence = keepLast(appendNew(evidence, fault.words()), maxEvidence)
}

// attribute sets the cause of an incident from its alarms: the one on which they agree, else the most careful of them.
func (i *Incident) attribute() {
	for _, cause := range causesByCare {
		var evidence []string
		found := false
		for k := range i.Alarms {
			if a := &i.Alarms[k]; a.Cause == cause {
				found = true
				for _, e := range a.Evidence {
					evidence = appendNew(evidence, e)
				}
			}
		}
		if found {
			i.Cause, i.Evidence = cause, keepLast(evidence, maxEvidence)
			return
		}
	}
}

// appendNew appends a text that is not there yet, into new memory.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(slices.Clip(list), s)
}

func orNone(version string) string {
	if version == "" {
		return "none"
	}
	return version
}
