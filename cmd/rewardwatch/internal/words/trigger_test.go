package words

import "testing"

// A trigger is described in words, without its target. Texts of another form are left alone.
func TestTriggersInWords(t *testing.T) {
	for key, want := range map[string]string{
		"incident(*) -> trainer": "Any incident except improvements",
		"incident(outcome.sale_amount; policies ranker_v2,checkout_*; causes reward_hacking) -> t": "Incidents: signals outcome.sale_amount; policies ranker_v2, checkout_*; causes reward hacking",
		"incident(return,reward) -> trainer":           "Incidents: signals return, reward",
		"incident(*; critical; improvements) -> t":     "Incidents: critical only; including improvements",
		"incident(*; causes environment,policy) -> t":  "Incidents: causes environment, policy",
		"incident(return; policies a*,b; critical)->t": "incident(return; policies a*,b; critical)->t",
		"schedule(0 3 * * *) -> trainer":               "Schedule 0 3 * * *",
		"outcome(missed) -> rollback":                  "Outcome of a previous request: missed",
		"":                                             "",
		"something else":                               "something else",
	} {
		if got := Trigger(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}
