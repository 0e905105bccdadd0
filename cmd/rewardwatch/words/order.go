package words

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain"
)

// Order is what of a webhook's data people are shown beside the config.
type Order struct {
	Group    map[string]string `json:"group"`
	Signals  []string          `json:"signals"`
	Cause    alerts.Cause      `json:"cause"`
	Evidence []string          `json:"evidence"`
	Contract Contract          `json:"contract"`
	Incident string            `json:"incident"`
	Versions struct {
		From, To string // of a rollback
	} `json:"versions"`
}

// Contract is what a retraining is for.
type Contract struct {
	Objective  string `json:"objective"`
	Hypothesis string `json:"hypothesis"`
	Owner      string `json:"owner"`
	Expected   struct {
		Text string `json:"text"`
	} `json:"expected"`
}

// ReadOrder reads them; what the order does not have stays empty.
func ReadOrder(q retrain.Request) (Order, error) {
	var out Order
	if err := json.Unmarshal(q.Order, &out); err != nil {
		return out, fmt.Errorf("read the order of %s: %w", q.ID, err)
	}
	return out, nil
}

// OfIncident chooses the requests that an incident, or a person because of it, has asked for, and those that follow from them; the oldest
// first.
func OfIncident(newestFirst []retrain.Request, incident string) []retrain.Request {
	var out []retrain.Request
	for _, q := range slices.Backward(newestFirst) {
		order, _ := ReadOrder(q) // one that cannot be read names no incident
		follows := q.OriginKind == retrain.OriginOutcome && slices.ContainsFunc(out, func(before retrain.Request) bool { return before.ID == q.Parent })
		if q.Origin == incident || order.Incident == incident || follows {
			out = append(out, q)
		}
	}
	return out
}

// WaitsFor says what a request waits for, "" where it is finished.
func WaitsFor(q retrain.Request) string {
	what := ""
	switch q.State {
	case retrain.StateQueued:
		what = "the end of the policy's other request"
	case retrain.StateAwaitingApproval:
		what = "a person to approve it"
	case retrain.StateOpen:
		what = "its delivery to " + q.Target
	case retrain.StateDelivered:
		what = "a report of its job"
	case retrain.StateRunning:
		what = "the end of its job"
	case retrain.StateVerifying:
		what = "telemetry of version " + q.NewVersion
	default:
		return ""
	}
	return what + ", until " + Time(q.DueAt)
}

// Took says for how long an attempt lasted, "" while it does.
func Took(d retrain.Delivery) string {
	if d.FinishedAt.IsZero() {
		return ""
	}
	return d.FinishedAt.Sub(d.StartedAt).Round(time.Millisecond).String()
}

// Status gives an HTTP status, "" where no answer came.
func Status(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}
