package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// The types of webhooks. They differ so that a receiver that only knows retrainings does not train on another order.
const (
	EventRequested = "retrain.requested" // orders a retraining
	EventOrdered   = "retrain.ordered"   // orders something else, which the field order names
)

// envelope is the body of a webhook as Standard Webhooks 1.0.0 recommends it.
type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when the request was opened, not when it is delivered
	Data      order     `json:"data"`
}

// order is the content for the receiver: what drifted, from what to what, why, and on which offsets. If no incident
// is the reason for the retraining, the fields about the incident are null, or an empty list or object.
//
// It is large because it has a field for each key that a template may use.
type order struct {
	ID       string                    `json:"id"`
	Incident *string                   `json:"incident"`
	Policy   string                    `json:"policy"`
	Group    map[string]string         `json:"group"`
	Signals  []string                  `json:"signals"` // drifting signals, in the order in which their alarms joined
	Cause    *alerts.Cause             `json:"cause"`
	Evidence []string                  `json:"evidence"`
	Causes   []alerts.RankedCause      `json:"causes"`
	Effect   map[string]finding.Effect `json:"effect"` // by signal
	Versions *versionPair              `json:"versions"`
	Baseline *baseline                 `json:"baseline"`
	Offsets  *offsets                  `json:"offsets"`

	// From the recipe, with its templates filled.
	Order        Kind              `json:"order,omitempty"` // absent for Retrain
	Recipe       string            `json:"recipe"`
	Contract     Contract          `json:"contract"`
	ContractFrom map[string]string `json:"contract_from"` // file:line of each part
	Config       yamlfile.Value    `json:"config"`        // a mapping
	ConfigFrom   map[string]string `json:"config_from"`   // file:line of each leaf, by its path, such as optimizer.lr or seeds[0]

	// Of the first of the alarms.
	OnsetInterval *finding.Interval      `json:"onset_interval"`
	ReturnChange  *finding.Decomposition `json:"return_change"`
	Promise       finding.Promise        `json:"promise"`
	Shifts        []finding.Shift        `json:"shifts"`
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
	CutAt    time.Time      `json:"cut_at,omitzero"` // the time up to which Drifted reaches; zero for the opening of the request
}

// bareOrder returns an order without an incident.
func bareOrder(id, policy string) order {
	return order{
		ID: id, Policy: policy,
		Signals: []string{}, Evidence: []string{}, Causes: []alerts.RankedCause{}, Effect: map[string]finding.Effect{}, Shifts: []finding.Shift{},
	}
}

// newOrder returns an order with what drifted: the alarms of an incident that a trigger matched, at least one.
func newOrder(id string, inc alerts.Incident, matched []alerts.Alarm) order {
	first, last := matched[0], matched[len(matched)-1]
	o := bareOrder(id, inc.Group.Policy)
	o.Incident, o.Group, o.Cause = &inc.ID, inc.Group.Map(), &inc.Cause
	o.Evidence, o.Causes = append(o.Evidence, inc.Evidence...), append(o.Causes, inc.Causes...)
	o.Versions = &versionPair{Before: versions(first.Before), After: versions(last.After)}
	o.Baseline = &baseline{ID: first.Baseline.ID, Units: first.Baseline.Units}
	o.Offsets = &offsets{Drifted: []ingest.Range{}, Baseline: append([]ingest.Range{}, first.Baseline.Offsets...)}
	o.OnsetInterval, o.ReturnChange, o.Promise = first.OnsetInterval(), first.Return, first.Promise
	o.Shifts = append(o.Shifts, first.Shifts...)
	for _, a := range matched {
		o.Signals = append(o.Signals, a.Signal)
		o.Effect[a.Signal] = a.Effect
		o.Offsets.Drifted = ingest.Widen(o.Offsets.Drifted, a.Offsets...)
	}
	return o
}

// instruct adds how to retrain, and how the retraining is judged.
func (o *order) instruct(r *Recipe, onset moment) error {
	contract, config, err := r.fill(filler{references: r.references, order: *o, onset: onset})
	if err != nil {
		return fmt.Errorf("fill recipe %s: %w", r.Name, err)
	}
	o.Recipe, o.Contract, o.Config = r.Name, contract, config
	if r.Kind != Retrain {
		o.Order = r.Kind
	}
	o.ContractFrom, o.ConfigFrom = origins(r.Contract), origins(config)
	return nil
}

// origins returns the file and line of every leaf of a mapping.
func origins(v yamlfile.Value) map[string]string {
	out := map[string]string{}
	walk("", v, func(path string, leaf yamlfile.Value) {
		if path != "" {
			out[path] = origin(leaf)
		}
	})
	return out
}

// Occasion is the input of an order besides its recipe.
type Occasion struct {
	ID, Policy string
	Incident   *alerts.Incident                                  // incident that is the reason for the order, nil for none
	Alarms     []alerts.Alarm                                    // alarms of the incident that a trigger matched, at least one
	Level      func(signal string) (finding.Distribution, error) // of a signal in the baseline, to resolve relative values
	At         time.Time
}

// Order returns the body of the webhook with the order of the recipe.
func (r *Recipe) Order(of Occasion) ([]byte, error) {
	o, onset := bareOrder(of.ID, of.Policy), moment{}
	if of.Incident != nil {
		o, onset = newOrder(of.ID, *of.Incident, of.Alarms), onsetOf(of.Alarms[0])
	}
	if err := o.instruct(r, onset); err != nil {
		return nil, err
	}
	var err error
	if o.Contract.Expected, err = o.Contract.Expected.resolve(of.Level); err != nil {
		return nil, err
	}
	return newBody(o, of.At)
}

// newBody returns the webhook body of an order.
func newBody(o order, at time.Time) ([]byte, error) {
	event := EventRequested
	if o.Order != "" {
		event = EventOrdered
	}
	body, err := json.Marshal(envelope{Type: event, Timestamp: at.UTC(), Data: o})
	if err != nil {
		return nil, fmt.Errorf("write webhook body: %w", err)
	}
	return body, nil
}

// EventOf returns the type of a webhook, "" for an invalid body.
func EventOf(body []byte) string {
	var e struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(body, &e) // an invalid body is detected before it is sent
	return e.Type
}

// requestPrefix is the prefix of the id of every request.
const requestPrefix = "rr_"

// IsRequestID distinguishes the id of a request from the name of a recipe.
func IsRequestID(s string) bool { return strings.HasPrefix(s, requestPrefix) }

// RequestID derives the id from the origin of the request and the trigger alone, so that a crash between decision and
// announcement cannot create a second id for the same order.
func RequestID(origin, triggerKey string) string {
	sum := sha256.Sum256([]byte(origin + "\x00" + triggerKey))
	return requestPrefix + hex.EncodeToString(sum[:12])
}
