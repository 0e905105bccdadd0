package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
)

// The demo ends by itself, with the drift found, its cause named, and the order to retrain received.
func TestDemoFindsItsDrift(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	code, out := verb(t, "demo", "--output", "json", "--brokers", startBroker(t, 4))
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	var alarm replay.AlarmRecord
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&alarm); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if alarm.State != "firing" || alarm.Cause != alerts.CauseEnvironment {
		t.Errorf("alarm %s with the cause %s, want a firing one with the cause environment", alarm.State, alarm.Cause)
	}
}
