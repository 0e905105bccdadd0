// Package retraintest provides fixtures for the tests of several subpackages of retrain.
package retraintest

import (
	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// Secret signs the webhooks of tests.
const Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// Alarm returns a firing alarm of a signal.
func Alarm(signal string) alerts.Alarm {
	return alerts.Alarm{
		ID: "a-" + signal, Signal: signal, Score: 1.2, Cause: alerts.CausePolicy, Detectors: []string{"rank_mean"},
		Effect: finding.Effect{
			Quantity: "return", BaselineMean: 200, CurrentMean: 150, MeanShift: -50, BaselineSD: 25, CurrentSD: 30,
			StandardShift: -2, CurrentUnits: 40, MedianShift: -48, Q10Shift: -55, Q90Shift: -45, SpreadRatio: 1.2,
			Wasserstein: 50, AtLeast: .25,
		},
		Baseline: finding.BaselineRef{ID: "b1", Units: 500, Offsets: []ingest.Range{{Partition: 0, First: 0, Last: 900}}},
		Before:   ingest.Versions{Policy: "v1", Env: "41", Reward: "r7"},
		After:    ingest.Versions{Policy: "v2", Env: "41", Reward: "r7"},
		Offsets:  []ingest.Range{{Partition: 0, First: 1000, Last: 1100}},
	}
}

// Incident returns an incident that orders a retraining, of a policy with the group label env.
func Incident(id, policy string) alerts.Incident {
	group := ingest.NewGroup(policy, ingest.Label{Name: "env", Value: "prod-eu"})
	a := Alarm("return")
	a.Incident, a.Group = id, group
	return alerts.Incident{
		ID: id, Group: group, Severity: alerts.Critical, Cause: alerts.CausePolicy,
		Evidence: []string{"policy_version changed from v1 to v2 at the onset"}, Alarms: []alerts.Alarm{a},
	}
}
