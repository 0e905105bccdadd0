package app

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

func TestLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, g, other := lookAgain{}, ingest.NewGroup("p"), ingest.NewGroup("q")
		at := time.Now().Add(time.Hour)
		clock := func(t time.Time) func() time.Time { return func() time.Time { return t } }
		until := func(at time.Time) ledger.Decision { return ledger.Decision{Reason: ledger.NotLasted, Again: at} }
		l.after(g, until(at))
		if l.due(g, clock(at.Add(-1))) || !l.due(g, clock(at)) || l.due(g, clock(time.Time{})) || l.due(other, clock(at)) {
			t.Error("it is due where it must not be, or the other way round")
		}
		l.after(other, until(time.Now().Add(-time.Second)))
		if !l.due(other, clock(time.Time{})) {
			t.Error("without a clock, the world's does not hold")
		}
		for _, reason := range []ledger.Reason{ledger.OpenRequest, ledger.Cooldown, ledger.BreakerOpen, ledger.TargetDisabled} {
			l.after(other, ledger.Decision{Reason: reason})
			if l.due(other, clock(at)) {
				t.Errorf("%s: due at once", reason)
			}
			time.Sleep(heldEvery)
			if !l.due(other, clock(time.Unix(1, 0))) {
				t.Errorf("%s: not due after a minute", reason)
			}
		}
		l.forget([]string{"p"})
		l.after(other, ledger.Decision{Reason: ledger.Opened})
		if l.due(g, clock(at)) || l.due(other, clock(at)) {
			t.Error("what was taken out is due")
		}
	})
}

func TestIncidentsOwedToTheLedger(t *testing.T) {
	l := lookAgain{}
	if again, _ := l.back("p", 0); again {
		t.Error("the ledger was never away")
	}
	l.owe("p", "i1")
	l.owe("p", "i2")
	l.owe("q", "i3")
	if again, owed := l.back("p", 0); again || owed != nil {
		t.Error("looked at before the ledger is back")
	}
	if again, owed := l.back("p", 1); !again || len(owed) != 2 || !owed["i1"] || !owed["i2"] {
		t.Errorf("owed %v", owed)
	}
	if again, owed := l.back("p", 1); again || owed != nil {
		t.Error("looked at twice")
	}
	l.forget([]string{"q"})
	if again, owed := l.back("q", 1); !again || len(owed) != 0 {
		t.Errorf("owed of a policy that is gone: %v", owed)
	}
}

// While policies wait for the ledger, they are not judged, and the readiness response says so.
func TestNotReadyWhileTheLedgerHoldsUpJudging(t *testing.T) {
	for waiting, want := range map[time.Duration]string{
		0: "", ledgerPatience - 1: "", ledgerPatience: "has been waiting 15s for the ledger of retrain requests", 2 * time.Minute: "waiting 2m0s",
	} {
		err := heldUp(waiting)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", waiting, err, want)
		}
	}
}
