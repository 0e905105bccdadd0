package console

import (
	"context"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/words"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// donePart summarizes the actions on an incident so far, below its headline.
type donePart struct {
	Alert, AlertClass string
	Retraining        []requestLine
	Why               string // why there is no request
}

// donePart returns the actions on an incident so far. Call it after tellOrders.
func (c *Console) donePart(i *alerts.Incident, d *incidentPage) donePart {
	out := donePart{Retraining: d.Ordered}
	out.Alert, out.AlertClass = words.Alerted(i, c.view.Delivery(i.ID))
	if len(d.Ordered) > 0 {
		return out
	}
	switch {
	case d.Ledger != "":
		out.Why = d.Ledger
	case len(d.Judged) > 0 && d.Judged[len(d.Judged)-1].opened:
		out.Why = "A retraining was requested, but the request is no longer stored."
	case len(d.Judged) > 0:
		out.Why = "Not requested: " + d.Judged[len(d.Judged)-1].Reason + "."
	default:
		out.Why = "Not requested."
	}
	return out
}

// tellPeople adds people's actions on a request, if the ledger answers in time.
func (c *Console) tellPeople(ctx context.Context, line *requestLine, q ledger.Request) {
	history, err := c.desk.History(ctx, q.ID)
	if err != nil {
		c.log.Error().Err(err).Msg("failed to read the ledger")
		return
	}
	line.peopleFrom(q, history)
}

// peopleFrom reads from a history the name of the person who asked, and people's decisions. The decision that ended the
// request determines its standing.
func (l *requestLine) peopleFrom(q ledger.Request, history []ledger.StateChange) {
	if asked, is := words.AskedFor(q, history); is {
		l.Asked, l.asked = asked.By, []words.Decided{asked}
	}
	l.Decided = words.RequestDecisions(history)
	if n := len(l.Decided); n > 0 && (l.state == ledger.StateRejected || l.state == ledger.StateWithdrawn) {
		l.Stands = l.Decided[n-1].Text
	}
}
