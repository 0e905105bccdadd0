package alerts

import "time"

// DeliveryState is the delivery state of the alert for an open incident. Its values are those of MetricIncidentAlert.
type DeliveryState int

// The states of a delivery.
const (
	// ByRules: nothing is pushed, Prometheus evaluates the alerting rules.
	ByRules DeliveryState = iota
	// Undelivered: no Alertmanager has accepted the alert in its current state.
	Undelivered
	// Delivered: at least one Alertmanager has accepted it.
	Delivered
	// Silenced: a person has muted the incident.
	Silenced
)

// Delivery is the delivery state of an incident's alert, and when the alert was first delivered.
type Delivery struct {
	State DeliveryState
	// Since is when an Alertmanager first accepted the alert, as far as is known; zero if none has.
	Since time.Time
}

// Delivery returns the delivery state of the alert for an open incident that is not muted.
func (n *Notifier) Delivery(incident string) Delivery {
	if len(n.senders) == 0 {
		return Delivery{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.alerts["incident/"+incident]
	switch {
	case t == nil:
		return Delivery{State: Undelivered}
	case t.takers() == 0:
		return Delivery{State: Undelivered, Since: t.first}
	}
	return Delivery{State: Delivered, Since: t.first}
}
