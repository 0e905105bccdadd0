package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
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

// With --keep, the retraining waits for its approval, and the version that its job releases meets the contract.
func TestDemoFollowsItsRetrainingToItsOutcome(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	told, errs := io.Pipe()
	ended := make(chan int, 1)
	args := []string{"demo", "--keep", "--training", "100ms", "--brokers", startBroker(t, 4)}
	go func() {
		ended <- execute(ctx, &terminal.Console{In: strings.NewReader(""), Out: io.Discard, Err: errs}, args)
		_ = errs.Close() // a pipe's does not fail
	}()
	waits := regexp.MustCompile(`^The retrain request (rr_\w+) .* waits for your approval: (http://[^/]+)/`)
	var said, outcome string
	for lines := bufio.NewScanner(told); lines.Scan(); {
		said += lines.Text() + "\n"
		if found := waits.FindStringSubmatch(lines.Text()); found != nil {
			answer, err := http.Post(found[2]+"/api/v1/retrain-requests/"+found[1]+"/approve", "application/json", strings.NewReader(`{"by": "ann", "why": "the customers have changed"}`))
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("approve: %v %v", answer, err)
			}
			_ = answer.Body.Close() // nothing is read of it
		}
		if strings.HasPrefix(lines.Text(), "The outcome of the retraining is ") {
			outcome = lines.Text()
			interrupt()
		}
	}
	if code := <-ended; code != 0 || !strings.HasPrefix(outcome, "The outcome of the retraining is met: ") {
		t.Errorf("exit %d, %q:\n%s", code, outcome, said)
	}
}
