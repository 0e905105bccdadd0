package words

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Every state of a request completes a sentence that begins with the name of its order.
func TestStandingOfARequest(t *testing.T) {
	want := map[ledger.State]string{
		ledger.StateQueued: "is queued", ledger.StateAwaitingApproval: "is awaiting approval", ledger.StateOpen: "is being delivered",
		ledger.StateDelivered: "was delivered", ledger.StateRunning: "is running", ledger.StateVerifying: "is being verified",
		ledger.StateMet: "met its success criteria", ledger.StateMissed: "did not meet its success criteria", ledger.StateInconclusive: "was inconclusive",
		ledger.StateFailed: "failed", ledger.StateRejected: "was rejected", ledger.StateExpired: "expired without approval",
		ledger.StateDeadLetter: "could not be delivered", ledger.StateWithdrawn: "was withdrawn",
	}
	for _, s := range ledger.States() {
		if got := Standing(ledger.Request{State: s}); got != want[s] {
			t.Errorf("%s: %q, want %q", s, got, want[s])
		}
	}
	if got := Standing(ledger.Request{State: ledger.StateRejected, Untracked: true}); got != "is no longer tracked" {
		t.Errorf("untracked: %q", got)
	}
}
