package recipe

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Terms are the parts of an order that are needed to judge the retraining.
type Terms struct {
	Group    map[string]string `json:"group"`
	Versions *versionPair      `json:"versions"`
	Contract Contract          `json:"contract"`
}

// ReadTerms reads the terms from the data of a webhook. An order of a build without contracts has none.
func ReadTerms(order json.RawMessage) (Terms, error) {
	var out Terms
	if err := json.Unmarshal(order, &out); err != nil {
		return Terms{}, fmt.Errorf("read the terms of a retrain request: %w", err)
	}
	return out, nil
}

// Before returns the policy_versions that existed before the retraining, with the one live at the time of the order
// last.
func (t Terms) Before() []string {
	if t.Versions == nil {
		return nil
	}
	both := []string{t.Versions.Before.Policy, t.Versions.After.Policy}
	return slices.DeleteFunc(both, func(version string) bool { return version == "" })
}
