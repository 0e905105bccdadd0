package retrain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// EventRequested is the type of the webhook that orders a retraining.
const EventRequested = "retrain.requested"

// envelope is the body of a webhook as Standard Webhooks 1.0.0 recommends it.
type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when the request was opened, not when it is delivered
	Data      order     `json:"data"`
}

// order is what the receiver is told: what drifted, from what to what, why, and on which offsets.
type order struct {
	ID       string                 `json:"id"`
	Incident string                 `json:"incident"`
	Policy   string                 `json:"policy"`
	Group    map[string]string      `json:"group"`
	Signals  []string               `json:"signals"` // that drift, in the order in which their alarms joined
	Cause    alerts.Cause           `json:"cause"`
	Evidence []string               `json:"evidence"`
	Causes   []alerts.RankedCause   `json:"causes"`
	Effect   map[string]bank.Effect `json:"effect"` // by signal
	Versions versionPair            `json:"versions"`
	Baseline baseline               `json:"baseline"`
	Offsets  offsets                `json:"offsets"`

	// Of the first of the alarms.
	OnsetInterval *alerts.Interval    `json:"onset_interval"`
	ReturnChange  *bank.Decomposition `json:"return_change"`
	Promise       bank.Promise        `json:"promise"`
	Shifts        []bank.Shift        `json:"shifts"`
}

type versions struct {
	Policy string `json:"policy_version"`
	Env    string `json:"env_version"`
	Reward string `json:"reward_version"`
}

type versionPair struct {
	Before versions `json:"before"`
	After  versions `json:"after"`
}

type baseline struct {
	ID    string `json:"id"`
	Units int    `json:"units"`
}

type offsets struct {
	Drifted  []ingest.Range `json:"drifted"`
	Baseline []ingest.Range `json:"baseline"`
}

// newBody writes the webhook of a request for the alarms of an incident that a trigger matched. There is at least one.
func newBody(id string, at time.Time, inc alerts.Incident, matched []alerts.Alarm) ([]byte, error) {
	first, last := matched[0], matched[len(matched)-1]
	o := order{
		ID:       id,
		Incident: inc.ID,
		Policy:   inc.Group.Policy,
		Group:    inc.Group.Map(),
		Cause:    inc.Cause,
		Evidence: append([]string{}, inc.Evidence...),
		Causes:   append([]alerts.RankedCause{}, inc.Causes...),
		Effect:   make(map[string]bank.Effect, len(matched)),
		Versions: versionPair{Before: versions(first.Before), After: versions(last.After)},
		Baseline: baseline{ID: first.Baseline.ID, Units: first.Baseline.Units},
		Offsets:  offsets{Drifted: []ingest.Range{}, Baseline: append([]ingest.Range{}, first.Baseline.Offsets...)},
	}
	o.OnsetInterval, o.ReturnChange, o.Promise = first.OnsetInterval(), first.Return, first.Promise
	o.Shifts = append([]bank.Shift{}, first.Shifts...)
	for _, a := range matched {
		o.Signals = append(o.Signals, a.Signal)
		o.Effect[a.Signal] = a.Effect
		o.Offsets.Drifted = ingest.Widen(o.Offsets.Drifted, a.Offsets...)
	}
	body, err := json.Marshal(envelope{Type: EventRequested, Timestamp: at.UTC(), Data: o})
	if err != nil {
		return nil, fmt.Errorf("write webhook body: %w", err)
	}
	return body, nil
}

// requestID follows from the incident and the trigger alone, so that a crash between deciding and telling cannot make
// a second id for the same order.
func requestID(incident, triggerKey string) string {
	sum := sha256.Sum256([]byte(incident + "\x00" + triggerKey))
	return "rr_" + hex.EncodeToString(sum[:12])
}
