package alerts

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeliveryOfAnIncident(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		am, b := &receiver{status: http.StatusServiceUnavailable}, NewTracker()
		n := start(t, am)
		changes := applied(b, drift("return", 100))
		id := changes[0].Incident.ID
		check := func(when string, want Delivery) {
			t.Helper()
			if got := n.Delivery(id); got.State != want.State || !got.Since.Equal(want.Since) {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		check("before the incident", Delivery{State: Undelivered})
		n.Update(changes)
		synctest.Wait()
		check("while Alertmanager refuses", Delivery{State: Undelivered})
		am.answer(http.StatusOK)
		before := time.Now()
		pass(2 * maxBackoff)
		first := n.Delivery(id)
		if first.State != Delivered || first.Since.Before(before) || first.Since.After(before.Add(maxBackoff)) {
			t.Errorf("accepted after %s: %+v", before, first)
		}
		pass(3 * resendEvery)
		check("after it was sent again", first)
		am.answer(http.StatusServiceUnavailable)
		n.Update(applied(b, drift("reward", 101)))
		synctest.Wait()
		check("while its news is refused", Delivery{State: Undelivered, Since: first.Since})
	})
}

func TestDeliveryWithoutAnAlertmanager(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		n := start(t)
		changes := applied(NewTracker(), drift("return", 100))
		n.Update(changes)
		if got := n.Delivery(changes[0].Incident.ID); got != (Delivery{}) {
			t.Errorf("%+v, want nothing pushed", got)
		}
	})
}

// Alerts that are in the notes from before a crash count as delivered at that time.
func TestDeliveryAfterACrash(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		begin, b := lives(t, "file"), NewTracker()
		n := begin(&receiver{status: http.StatusOK})
		n.Update(applied(b, drift("return", 100)))
		pass(time.Second)
		id := b.Incidents()[0].ID
		before := n.Delivery(id)
		n.stop()
		pass(time.Minute)
		again := begin(&receiver{status: http.StatusServiceUnavailable})
		again.Resync(b.Incidents(), nil)
		if got := again.Delivery(id); got.State != Delivered || before.Since.IsZero() || !got.Since.Equal(before.Since) {
			t.Errorf("%+v, want %+v", got, before)
		}
	})
}
