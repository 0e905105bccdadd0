package wire

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// ByJob is the author of a job's report that does not name one.
const ByJob = "job"

// RetrainRequest is a request as returned by GET. Links are only for clients that may decide.
type RetrainRequest struct {
	ledger.Request
	Links *Links `json:"links,omitempty"`
}

// Links are the addresses at which people decide on a request.
type Links struct {
	Decide string `json:"decide"` // the page on which a person approves or rejects it
}

// Report is a job's report of its progress.
type Report struct {
	State   string `json:"state"`
	Version string `json:"version"`
	Error   string `json:"error"`
	Log     string `json:"log"`
	By      string `json:"by"`
}

// Check limits the fields that are kept unchanged.
func (b Report) Check() error {
	for _, text := range []struct{ name, text string }{{"version", b.Version}, {"by", b.By}} {
		if utf8.RuneCountInString(text.text) > words.MaxBy {
			return fmt.Errorf("%s must have at most %d characters", text.name, words.MaxBy)
		}
	}
	return nil
}

// Report returns the report to keep. It truncates an error that is too long, because a failed job cannot be asked for a
// shorter one.
func (b Report) Report() retrain.Report {
	out := retrain.Report{State: b.State, Version: b.Version, Error: strings.TrimSpace(b.Error), Log: b.Log, By: strings.TrimSpace(b.By)}
	if out.By == "" {
		out.By = ByJob
	}
	if text := []rune(out.Error); len(text) > words.MaxWhy {
		out.Error = string(text[:words.MaxWhy-1]) + "…"
	}
	return out
}

// RetrainOrder is a person's order for a retraining.
type RetrainOrder struct {
	ID       string `json:"id,omitempty"`
	Policy   string `json:"policy"`
	Recipe   string `json:"recipe"`
	Target   string `json:"target"`
	Incident string `json:"incident,omitempty"`
	Reason
}

// Check limits the fields that are kept.
func (b *RetrainOrder) Check() error {
	b.By, b.Why = strings.TrimSpace(b.By), strings.TrimSpace(b.Why)
	errs := []error{words.CheckText("by", b.By, words.MaxBy), words.CheckText("why", b.Why, words.MaxWhy)}
	if b.ID != "" {
		errs = append(errs, words.CheckText("id", b.ID, words.MaxBy))
	}
	return errors.Join(errs...)
}

// Forgotten is the answer to an order to forget.
type Forgotten struct {
	Forgotten string `json:"forgotten"`
	Pending   bool   `json:"pending"` // all instances have the order, and the one that judges the policy will forget it when it reads the order
}

// Reason is the name of the person who decides, and the reason. Every order requires one.
type Reason struct {
	By  string `json:"by"`
	Why string `json:"why"`
}

// Check returns an error if a field is missing.
func (r *Reason) Check() error {
	if strings.TrimSpace(r.By) == "" {
		return errors.New("--by must be set to your name")
	}
	if strings.TrimSpace(r.Why) == "" {
		return errors.New("--why must be set to a reason that others can understand")
	}
	return nil
}
