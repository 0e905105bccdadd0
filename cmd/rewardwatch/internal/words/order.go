package words

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
	"github.com/rewardwatch/rewardwatch/retrain/recipe"
)

// Order is the part of a webhook's data that people see, in addition to the config.
type Order struct {
	Group    map[string]string `json:"group"`
	Signals  []string          `json:"signals"`
	Cause    alerts.Cause      `json:"cause"`
	Evidence []string          `json:"evidence"`
	Contract Contract          `json:"contract"`
	Incident string            `json:"incident"`
	Versions struct {
		From, To string // for a rollback
	} `json:"versions"`
}

// Contract is the purpose of a retraining.
type Contract struct {
	Objective  string          `json:"objective"`
	Hypothesis string          `json:"hypothesis"`
	Owner      string          `json:"owner"`
	Expected   recipe.Expected `json:"expected"`
}

// Ordered returns the name for the orders of requests of a kind, capitalized.
func Ordered(kind string) string {
	if kind == string(recipe.Retrain) {
		return "Retraining"
	}
	return Capital(Plain(kind))
}

// ReadOrder parses the order of a request. Fields that the order does not have remain empty.
func ReadOrder(q ledger.Request) (Order, error) {
	var out Order
	if err := json.Unmarshal(q.Order, &out); err != nil {
		return out, fmt.Errorf("read the contents of request %s: %w", q.ID, err)
	}
	return out, nil
}

// OfIncident returns the requests that an incident has led to, those that people have made because of it, and those
// that follow from them, oldest first.
func OfIncident(newestFirst []ledger.Request, incident string) []ledger.Request {
	var out []ledger.Request
	for _, q := range slices.Backward(newestFirst) {
		order, _ := ReadOrder(q) // an order that cannot be read names no incident
		follows := q.OriginKind == ledger.OriginOutcome && slices.ContainsFunc(out, func(before ledger.Request) bool { return before.ID == q.Parent })
		if q.Origin == incident || order.Incident == incident || follows {
			out = append(out, q)
		}
	}
	return out
}

// StateOf returns the state of a request in words.
func StateOf(q ledger.Request) string { return q.State.InWords(q.Untracked) }

// StatesOf returns the texts that are displayed for requests in a state.
func StatesOf(s ledger.State) string {
	if s == ledger.StateRejected {
		return s.InWords(false) + " or " + s.InWords(true)
	}
	return Plain(s)
}

// StepOf describes a past state of a request.
func StepOf(q ledger.Request, s ledger.State) string {
	if s == ledger.StateRejected {
		return StateOf(q)
	}
	return Plain(s)
}

// WaitsFor describes what a request waits for, or returns "" if it is finished.
func WaitsFor(q ledger.Request) string {
	what, due := "", "deadline: "+Stamp(q.DueAt)
	switch q.State {
	case ledger.StateQueued:
		what = "the policy's other request to end"
	case ledger.StateAwaitingApproval:
		return "approval (expires at " + Stamp(q.DueAt) + ")"
	case ledger.StateOpen:
		what = "delivery to " + q.Target
		if failed := q.Attempts - 1; failed > 0 { // the last one may be in progress
			due = fmt.Sprintf("failed attempts: %d; %s", failed, due)
		}
	case ledger.StateDelivered:
		what = "a status report from the job"
	case ledger.StateRunning:
		what = "the job to finish"
	case ledger.StateVerifying:
		what = "telemetry from version " + q.NewVersion
	default:
		return ""
	}
	return what + " (" + due + ")"
}

// Standing returns the state of a request as the predicate of a sentence about its order.
func Standing(q ledger.Request) string {
	if q.Untracked {
		return "is no longer tracked"
	}
	switch q.State {
	case ledger.StateQueued, ledger.StateRunning:
		return "is " + Plain(q.State)
	case ledger.StateAwaitingApproval:
		return "is awaiting approval"
	case ledger.StateOpen:
		return "is being delivered"
	case ledger.StateVerifying:
		return "is being verified"
	case ledger.StateMet:
		return "met its success criteria"
	case ledger.StateMissed:
		return "did not meet its success criteria"
	case ledger.StateFailed:
		return "failed"
	case ledger.StateExpired:
		return "expired without approval"
	case ledger.StateDeadLetter:
		return "could not be delivered"
	}
	return "was " + Plain(q.State) // delivered, inconclusive, rejected or withdrawn
}

// Decided is a person's decision or comment, and its time.
type Decided struct {
	At   time.Time
	By   string // the person, of a decision on a request
	Text string

	what string // the beginning of Text, of a decision on a request
}

// Of returns the text of a decision on a request with the name of its order, such as Retraining.
func (d Decided) Of(order string) string {
	rest := strings.TrimPrefix(d.Text, d.what)
	switch d.what {
	case trackingStopped:
		return "Tracking of the " + strings.ToLower(order) + " stopped" + rest
	case deliveryRepeated:
		return order + " delivered again" + rest
	}
	return order + " " + strings.ToLower(d.what) + rest
}

// Beginnings of the texts of decisions that are not about the order itself.
const (
	trackingStopped  = "Tracking stopped"
	deliveryRepeated = "Delivery repeated"
)

// AskedFor describes that a person opened a request, and is false if no person did.
func AskedFor(q ledger.Request, history []ledger.StateChange) (asked Decided, is bool) {
	if q.OriginKind != ledger.OriginPerson || len(history) == 0 || history[0].By == "" {
		return Decided{}, false
	}
	return decided("Requested", history[0], ""), true
}

func decided(what string, h ledger.StateChange, more string) Decided {
	return Decided{At: h.At, By: h.By, Text: fmt.Sprintf("%s by %s at %s: %s", what, h.By, Stamp(h.At), h.Reason) + more, what: what}
}

// RequestDecisions describes people's decisions on a request, from its history, oldest first.
func RequestDecisions(history []ledger.StateChange) (all []Decided) {
	for i := 1; i < len(history); i++ {
		if d, is := requestDecision(history[:i], history[i]); is {
			all = append(all, d)
		}
	}
	return all
}

// requestDecision describes the decision in a change of state after earlier ones, and is false if no person made one.
func requestDecision(before []ledger.StateChange, h ledger.StateChange) (Decided, bool) {
	what, more, last := "", "", before[len(before)-1].State
	sent := slices.ContainsFunc(before, func(h ledger.StateChange) bool { return h.State.AtTarget() })
	switch {
	case h.By == "" || h.By == ledger.ByService:
		return Decided{}, false
	case h.State == ledger.StateRejected && sent:
		what, more = trackingStopped, ". The job may still be running"
	case h.State == ledger.StateRejected:
		what = "Rejected"
	case h.State == ledger.StateWithdrawn:
		what = "Withdrawn"
	case last == ledger.StateAwaitingApproval && (h.State == ledger.StateOpen || h.State == ledger.StateQueued):
		what = "Approved"
	case h.State == ledger.StateOpen && (last == ledger.StateDelivered || last == ledger.StateDeadLetter):
		what = deliveryRepeated
	default:
		return Decided{}, false
	}
	return decided(what, h, more), true
}

// Took returns the duration of an attempt, or "" until it ends.
func Took(d ledger.Delivery) string {
	if d.FinishedAt.IsZero() {
		return ""
	}
	return Duration(d.FinishedAt.Sub(d.StartedAt))
}

// Status formats an HTTP status, or returns "" if no answer arrived.
func Status(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}
