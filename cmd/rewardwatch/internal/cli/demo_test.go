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

// The demo ends by itself after it has found the drift, named its cause, and received the order to retrain.
func TestSimDemoFindsItsDrift(t *testing.T) {
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

// With --keep, the retraining waits for its approval, and the version released by its job meets the contract.
func TestDemoFollowsItsRetrainingToItsOutcome(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	code, said := keptDemo(t, "100ms", map[string]string{"The retrain request": "approve"}, "Outcome of the retraining: ")
	if code != 0 || !strings.Contains(said, "\nOutcome of the retraining: met, ") {
		t.Errorf("exit %d:\n%s", code, said)
	}
}

// The demo continues if a user ends its request while the job is running.
func TestSimDemoRunsOnWithoutItsRequest(t *testing.T) {
	decisions := map[string]string{"The retrain request": "approve", "The simulated training job has started.": "reject"}
	if code, said := keptDemo(t, "3s", decisions, "The service rejected the job's report"); code != 0 {
		t.Errorf("exit %d:\n%s", code, said)
	}
}

// keptDemo runs the demo with --keep, makes decisions on its request after lines with given beginnings, and interrupts
// it after a line. It returns the exit code and the output of the demo.
func keptDemo(t *testing.T, training string, decisions map[string]string, until string) (code int, said string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	told, errs := io.Pipe()
	ended := make(chan int, 1)
	args := []string{"demo", "--keep", "--training", training, "--brokers", startBroker(t, 4)}
	go func() {
		ended <- execute(ctx, &terminal.Console{In: strings.NewReader(""), Out: io.Discard, Err: errs}, args)
		_ = errs.Close() // closing a pipe does not fail
	}()
	waits := regexp.MustCompile(`(?m)^The retrain request (rr_\w+) .* is waiting for your approval: (http://[^/]+)/`)
	for lines := bufio.NewScanner(told); lines.Scan(); {
		said += lines.Text() + "\n"
		for begins, verb := range decisions {
			if strings.HasPrefix(lines.Text(), begins) {
				request := waits.FindStringSubmatch(said)
				answer, err := http.Post(request[2]+"/api/v1/retrain-requests/"+request[1]+"/"+verb, "application/json", strings.NewReader(`{"by": "ann", "why": "a test"}`))
				if err != nil || answer.StatusCode != http.StatusOK {
					t.Fatalf("%s: %v %v", verb, answer, err)
				}
				_ = answer.Body.Close() // the body is not needed
			}
		}
		if strings.HasPrefix(lines.Text(), until) {
			interrupt()
		}
	}
	return <-ended, said
}
