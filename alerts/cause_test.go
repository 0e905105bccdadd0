package alerts

import (
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// driftAfter is a drift at whose onset versions changed.
func driftAfter(signal string, n int64, changed ...string) bank.Finding {
	f := drift(signal, n)
	f.Changed = changed
	f.After = ingest.Versions{Policy: "p2", Env: "42", Reward: "r8"}
	return f
}

func TestCauseOfAnAlarm(t *testing.T) {
	unversioned := drift("return", 100)
	unversioned.Before, unversioned.After = ingest.Versions{}, ingest.Versions{}
	first := driftAfter("return", 100, "policy")
	first.Before = ingest.Versions{}
	ended := []bank.Finding{faulty("reward", bank.FaultNonFinite, 60), goes("reward", bank.TelemetryFault, bank.OK, 91)}
	late := []bank.Finding{faulty("reward", bank.FaultNonFinite, 60), goes("reward", bank.TelemetryFault, bank.OK, 92)}
	for name, test := range map[string]struct {
		before   []bank.Finding
		finding  bank.Finding
		cause    Cause
		evidence string
	}{
		"the policy": {
			finding: driftAfter("return", 100, "policy"), cause: CausePolicy,
			evidence: "policy_version changed from p1 to p2 at the onset",
		},
		"the environment": {
			finding: driftAfter("return", 100, "environment"), cause: CauseEnvironment,
			evidence: "env_version changed from 41 to 42 at the onset",
		},
		"the reward function": {
			finding: driftAfter("return", 100, "reward_function"), cause: CauseRewardFunction,
			evidence: "reward_version changed from r7 to r8 at the onset",
		},
		"a version that was not told before": {
			finding: first, cause: CausePolicy, evidence: "policy_version changed from none to p2 at the onset",
		},
		"two versions": {
			finding: driftAfter("return", 100, "policy", "reward_function"), cause: CauseUnknown,
			evidence: "policy_version changed from p1 to p2 and reward_version changed from r7 to r8 at the onset: " +
				"their effects cannot be told apart",
		},
		"no version": {
			finding: drift("return", 100), cause: CauseUnknown,
			evidence: "no version changed at the onset, and no telemetry fault falsified values since then",
		},
		"telemetry without versions": {
			finding: unversioned, cause: CauseUnknown,
			evidence: "the telemetry names no versions, and no fault of it falsified values since the onset",
		},
		"a fault that holds beats a version": {
			before: []bank.Finding{faulty("reward", bank.FaultNonFinite, 60)}, finding: driftAfter("return", 100, "policy"),
			cause: CauseTelemetry, evidence: "reward is in a telemetry fault (non_finite) since unit 60",
		},
		"a fault that ended at the onset": {
			before: late, finding: driftAfter("return", 100, "policy"),
			cause: CauseTelemetry, evidence: "reward was in a telemetry fault (non_finite) from unit 60 to unit 92",
		},
		"a fault that ended before the onset": {
			before: ended, finding: driftAfter("return", 100, "policy"),
			cause: CausePolicy, evidence: "policy_version changed from p1 to p2 at the onset",
		},
		"silence falsifies nothing": {
			before: []bank.Finding{faulty("reward", bank.FaultSilent, 95)}, finding: driftAfter("return", 100, "policy"),
			cause: CausePolicy, evidence: "policy_version changed from p1 to p2 at the onset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			applied(b, append(test.before, test.finding)...)
			a, i := b.Alarms()[0], b.Incidents()[0]
			if a.Cause != test.cause || !slices.Equal(a.Evidence, []string{test.evidence}) {
				t.Errorf("alarm: %s %q", a.Cause, a.Evidence)
			}
			if i.Cause != test.cause || !slices.Equal(i.Evidence, []string{test.evidence}) {
				t.Errorf("incident: %s %q", i.Cause, i.Evidence)
			}
		})
	}
}

func TestCauseOfAnIncident(t *testing.T) {
	for name, test := range map[string]struct {
		findings []bank.Finding
		cause    Cause
		evidence []string
	}{
		"alarms that agree": {
			findings: []bank.Finding{driftAfter("return", 100, "policy"), driftAfter("reward", 101, "policy")},
			cause:    CausePolicy, evidence: []string{"policy_version changed from p1 to p2 at the onset"},
		},
		"what is known beats what is not": {
			findings: []bank.Finding{drift("return", 100), driftAfter("reward", 101, "environment")},
			cause:    CauseEnvironment, evidence: []string{"env_version changed from 41 to 42 at the onset"},
		},
		"the reward function asks a person": {
			findings: []bank.Finding{driftAfter("return", 100, "reward_function"), driftAfter("reward", 101, "policy")},
			cause:    CauseRewardFunction, evidence: []string{"reward_version changed from r7 to r8 at the onset"},
		},
		"a fault after the alarm": {
			findings: []bank.Finding{driftAfter("return", 100, "policy"), faulty("reward", bank.FaultConstant, 130)},
			cause:    CauseTelemetry, evidence: []string{"reward is in a telemetry fault (constant) since unit 130"},
		},
		"a fault after the alarm that has ended": {
			findings: []bank.Finding{
				driftAfter("return", 100, "policy"), faulty("reward", bank.FaultConstant, 130),
				goes("reward", bank.TelemetryFault, bank.OK, 160),
			},
			cause: CauseTelemetry, evidence: []string{"reward is in a telemetry fault (constant) since unit 130"},
		},
		"a fault after the alarm has resolved": {
			findings: []bank.Finding{
				driftAfter("return", 100, "policy"), goes("return", bank.Drift, bank.OK, 120), faulty("reward", bank.FaultConstant, 130),
			},
			cause: CausePolicy, evidence: []string{"policy_version changed from p1 to p2 at the onset"},
		},
		"silence after the alarm": {
			findings: []bank.Finding{driftAfter("return", 100, "policy"), faulty("return", bank.FaultSilent, 130)},
			cause:    CausePolicy, evidence: []string{"policy_version changed from p1 to p2 at the onset"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBook()
			applied(b, test.findings...)
			i := b.Incidents()[0]
			if i.Cause != test.cause || !slices.Equal(i.Evidence, test.evidence) {
				t.Errorf("got %s %q", i.Cause, i.Evidence)
			}
		})
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	b := NewBook()
	applied(b, drift("return", 100))
	for n := range int64(3 * maxEvidence) {
		applied(b, faulty("reward", bank.FaultConstant, 110+n), goes("reward", bank.TelemetryFault, bank.OK, 110+n))
	}
	i := b.Incidents()[0]
	if len(i.Evidence) != maxEvidence || !strings.HasSuffix(i.Evidence[maxEvidence-1], "unit 133") {
		t.Errorf("got %q", i.Evidence)
	}
}
