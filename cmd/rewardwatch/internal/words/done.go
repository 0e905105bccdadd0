package words

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// Alerted says whether people were alerted about an incident, and the class of that text in the console.
func Alerted(i *alerts.Incident, d alerts.Delivery) (text, class string) {
	switch {
	case i.Closed:
		return alertedThen(i, d), ""
	case i.IsMuted():
		text, class = "Muted until "+Stamp(i.MutedUntil), "warming-up"
		for _, decision := range slices.Backward(i.Decisions) {
			if decision.Kind == alerts.Muted {
				return fmt.Sprintf("%s by %s. No notifications are sent until then.", text, decision.By), class
			}
		}
		return text + ". No notifications are sent until then.", class
	case d.State == alerts.Delivered && d.Since.IsZero():
		return "Alertmanager has accepted the alert and sends the notifications.", "ok"
	case d.State == alerts.Delivered:
		return "Alertmanager accepted the alert at " + Stamp(d.Since) + " and sends the notifications.", "ok"
	case d.State == alerts.Undelivered && d.Since.IsZero():
		return "Not delivered: Alertmanager has not accepted the alert yet, so no one has been notified.", "drift"
	case d.State == alerts.Undelivered:
		return "Alertmanager accepted the alert at " + Stamp(d.Since) + ", but not its latest update.", "drift"
	}
	return "Rewardwatch does not send an alert, because alerts.alertmanager is not set. " + rulesMay, "warming-up"
}

const rulesMay = "Prometheus alerting rules may have sent one."

// alertedThen describes the alert of a closed incident.
func alertedThen(i *alerts.Incident, d alerts.Delivery) string {
	text := fmt.Sprintf("The incident was open from %s until %s.", i.Opened.Moment(i.UnitName()), i.ClosedAt.Moment(i.UnitName()))
	if slices.ContainsFunc(i.Decisions, func(d alerts.Decision) bool { return d.Kind == alerts.Muted }) {
		text += " It was muted for part of that time."
	}
	if !d.Since.IsZero() {
		text += " Alertmanager accepted its alert at " + Stamp(d.Since) + "."
	}
	if d.State == alerts.ByRules {
		text += " Rewardwatch sent no alert, because alerts.alertmanager is not set. " + rulesMay
	}
	return text
}

// EffectOf describes the effects of the decisions on a request in a state if their names do not, and is "" otherwise.
func EffectOf(s ledger.State) string {
	const end = "“Stop tracking” closes the request and does not stop the job."
	switch s {
	case ledger.StateAwaitingApproval:
		return "“Approve” sends the request to the target. “Reject” and “Withdraw” close it: reject a retraining that should not run; withdraw one that is no longer needed."
	case ledger.StateDelivered:
		return "The target has the request. Use “Deliver again” if the target lost it. " + end
	case ledger.StateDeadLetter:
		return "The target did not accept the request. “Deliver again” sends it once more."
	case ledger.StateRunning:
		return end
	case ledger.StateVerifying:
		return "“Stop tracking” closes the request without an outcome. The new version stays in use."
	}
	return ""
}

// ReasonText says why an incident did or did not lead to a retrain request.
func ReasonText(r ledger.Reason) string {
	text, known := map[ledger.Reason]string{
		ledger.Opened:           "a retraining was requested",
		ledger.AlreadyRequested: "the incident already had a retrain request",
		ledger.IncidentClosed:   "the incident was closed",
		ledger.IncidentAccepted: "the change was accepted as the new normal",
		ledger.IncidentMuted:    "the incident was muted",
		ledger.NoTrigger:        "no trigger matches the incident",
		ledger.NotLasted:        "the incident did not last as long as the trigger requires",
		ledger.Provisional:      "its alarms are based on a provisional baseline",
		ledger.Improvement:      "the signals improved, and no trigger matches improvements",
		ledger.CauseNeedsPerson: "a manual decision is required, because a retrained policy would learn the fault",
		ledger.CauseUnsettled:   "the cause was uncertain, so a manual decision may be required",
		ledger.GuardTripped:     "a tripped guard requires a manual decision",
		ledger.Cooldown:         "the trigger was in its cooldown",
		ledger.OpenRequest:      "the policy had an unfinished request",
		ledger.BreakerOpen:      "the policy's most recent retrainings did not succeed",
		ledger.TargetDisabled:   "the target responded with 410 Gone",
		ledger.InvalidOrder:     "the request generated from the recipe does not match the schema",
	}[r]
	if !known {
		return Plain(r)
	}
	return text
}

// MutePreset is a suggested duration for a mute.
type MutePreset struct{ For, Title string }

// MutePresets returns the suggestions, shortest first.
func MutePresets() []MutePreset {
	return []MutePreset{{"1h", "1 h"}, {"4h", "4 h"}, {"8h", "8 h"}, {"1d", "1 day"}, {"1w", "1 week"}}
}

// MutedLongDays is the number of days above which a mute is likely to be a mistake, or to be forgotten before it ends.
const MutedLongDays = 30

// MutedLong reports whether a mute is longer than MutedLongDays.
func MutedLong(at, until time.Time) bool { return until.Sub(at) > MutedLongDays*24*time.Hour }

// EndedBy returns the state of an incident that a decision ended.
func EndedBy(k alerts.DecisionKind) string {
	if k == alerts.Reset {
		return "baseline replaced"
	}
	return string(k)
}

// Decision describes a decision for people.
func Decision(d alerts.Decision) string {
	what := Capital(string(d.Kind))
	switch d.Kind {
	case alerts.Accepted:
		what = "Accepted as the new normal"
	case alerts.Released:
		what = "Guard released"
	case alerts.Reset:
		what = "Baseline replaced"
	case alerts.Muted:
		what = "Muted until " + Stamp(d.Until)
	}
	return fmt.Sprintf("%s by %s at %s: %s", what, d.By, Stamp(d.At), d.Why)
}

// Listed joins the first names as in a sentence, and counts the others.
func Listed(names []string) string {
	const most = 4
	if len(names) > most {
		names = append(slices.Clone(names[:most-1]), fmt.Sprintf("%d more signals", len(names)-most+1))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// AskedBy returns who or what opened a request.
func AskedBy(q ledger.Request) string {
	switch q.OriginKind {
	case ledger.OriginIncident:
		return "a trigger"
	case ledger.OriginSchedule:
		return "a schedule"
	case ledger.OriginPerson:
		return "a person"
	case ledger.OriginOutcome:
		return "an outcome trigger"
	}
	return Plain(q.OriginKind)
}

// Capital capitalizes the first letter of a text.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Latest compares the last point of a chart with the mean and standard deviation of the baseline, NaN if unknown.
func Latest(mean float64, units string, baseline, sd float64) string {
	text := fmt.Sprintf("Mean of the last %s: %s. ", units, Short(mean))
	if sum := baseline + sd; math.IsNaN(sum) || math.IsInf(sum, 0) {
		return text + "No baseline is available."
	}
	return text + fmt.Sprintf("Baseline (gray): %s ± %s (mean ± SD).", Short(baseline), Short(sd))
}
