package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
)

// The demo ends by itself, with the drift found, its cause named, and the order to retrain received.
func TestDemoFindsItsDrift(t *testing.T) {
	code, out := verb(t, "demo", "--output", "json")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	var alarm alarmJSON
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&alarm); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if alarm.State != "firing" || alarm.Cause != alerts.CauseEnvironment {
		t.Errorf("alarm %s with the cause %s, want a firing one with the cause environment", alarm.State, alarm.Cause)
	}
}
