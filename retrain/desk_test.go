package retrain

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/detectors/bank"
	"github.com/rewardwatch/rewardwatch/ingest"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func TestJudge(t *testing.T) {
	triggers := []Trigger{
		{On: OnIncident, Signals: []string{"return", "outcome.*"}, Target: "trainer"},
		{On: OnIncident, Signals: []string{"action"}, Target: "tuner"},
	}
	with := func(change func(*alerts.Incident)) alerts.Incident {
		inc := incident("i1", "ranker")
		change(&inc)
		return inc
	}
	tests := []struct {
		name    string
		inc     alerts.Incident
		want    Reason
		target  string
		signals []string
	}{
		{"matches", with(func(*alerts.Incident) {}), Opened, "trainer", []string{"return"}},
		{"glob", with(func(i *alerts.Incident) { i.Alarms[0].Signal = "outcome.conversion" }), Opened, "trainer", []string{"outcome.conversion"}},
		{"second trigger", with(func(i *alerts.Incident) { i.Alarms[0].Signal = "action" }), Opened, "tuner", []string{"action"}},
		{"first trigger of two", with(func(i *alerts.Incident) { i.Alarms = append([]alerts.Alarm{alarm("action")}, i.Alarms...) }), Opened, "trainer", []string{"return"}},
		{"unknown cause", with(func(i *alerts.Incident) { i.Cause = alerts.CauseUnknown }), Opened, "trainer", []string{"return"}},
		{"unknown cause, perhaps the reward function", with(func(i *alerts.Incident) { doubtful(i, .3) }), CauseUnsettled, "trainer", []string{"return"}},
		{"environment, perhaps the reward function", with(func(i *alerts.Incident) {
			doubtful(i, .3)
			i.Cause = alerts.CauseEnvironment
		}), CauseUnsettled, "trainer", []string{"return"}},
		{"unknown cause, hardly the reward function", with(func(i *alerts.Incident) { doubtful(i, .1) }), Opened, "trainer", []string{"return"}},
		{"unknown cause, perhaps the reward function, looked at again", with(func(i *alerts.Incident) {
			doubtful(i, .3)
			i.Alarms[0].EvidenceAt.Ordinal = 20
		}), Opened, "trainer", []string{"return"}},
		{"unknown cause, rather the reward function, looked at again", with(func(i *alerts.Incident) {
			doubtful(i, .75)
			i.Alarms[0].EvidenceAt.Ordinal = 20
		}), CauseUnsettled, "trainer", []string{"return"}},
		{"environment", with(func(i *alerts.Incident) { i.Cause = alerts.CauseEnvironment }), Opened, "trainer", []string{"return"}},
		{"other signal", with(func(i *alerts.Incident) { i.Alarms[0].Signal = "episode_length" }), NoTrigger, "", nil},
		{"resolved", with(func(i *alerts.Incident) { i.Alarms[0].Resolved = true }), NoTrigger, "", nil},
		{"closed", with(func(i *alerts.Incident) { i.Closed = true }), IncidentClosed, "", nil},
		{"muted", with(func(i *alerts.Incident) { i.MutedUntil = time.Unix(1, 0) }), IncidentMuted, "", nil},
		{"mute over", with(func(i *alerts.Incident) { i.Decisions = []alerts.Decision{{Kind: alerts.Muted}} }), Opened, "trainer", []string{"return"}},
		{"accepted, about to close", with(func(i *alerts.Incident) { i.Decisions = []alerts.Decision{{Kind: alerts.Accepted}} }), IncidentAccepted, "", nil},
		{"reward function", with(func(i *alerts.Incident) { i.Cause = alerts.CauseRewardFunction }), CauseNeedsPerson, "trainer", []string{"return"}},
		{"telemetry", with(func(i *alerts.Incident) { i.Cause = alerts.CauseTelemetry }), CauseNeedsPerson, "trainer", []string{"return"}},
		{"cause of the only alarm", with(func(i *alerts.Incident) { i.Alarms[0].Cause = alerts.CauseTelemetry }), CauseNeedsPerson, "trainer", nil},
		{"provisional incident", with(func(i *alerts.Incident) { i.Provisional = true }), Provisional, "trainer", []string{"return"}},
		{"provisional alarm", with(func(i *alerts.Incident) { i.Alarms[0].Provisional = true }), Provisional, "trainer", nil},
		{"provisional beside accepted", with(func(i *alerts.Incident) {
			i.Alarms[0].Provisional = true
			i.Alarms = append(i.Alarms, alarm("outcome.sale"))
		}), Opened, "trainer", []string{"outcome.sale"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c, reason := judge(triggers, tc.inc)
			var signals []string
			for _, a := range c.alarms {
				signals = append(signals, a.Signal)
			}
			if reason != tc.want || c.trigger.Target != tc.target || !slices.Equal(signals, tc.signals) {
				t.Errorf("%s for %q with %v, want %s for %q with %v", reason, c.trigger.Target, signals, tc.want, tc.target, tc.signals)
			}
		})
	}
	if _, reason := judge(nil, incident("i1", "ranker")); reason != NoTrigger {
		t.Errorf("without triggers: %s, want no_trigger", reason)
	}
}

func testConsiderIsIdempotent(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		first := r.consider(incident("i1", "ranker"))
		if first.Reason != Opened || first.Request != requestID("i1", r.cfg.Triggers[0].key()) {
			t.Fatalf("first decision %+v", first)
		}
		for n := range 100 {
			if n%25 == 0 {
				r.reopen()
			}
			inc := incident("i1", "ranker")
			inc.Alarms = append(inc.Alarms, alarm("reward"))
			if d := r.consider(inc); d.Reason != AlreadyRequested || d.Request != first.Request {
				t.Fatalf("decision %d: %+v", n, d)
			}
		}
		r.run()
		r.pass(2 * requestLifetime)
		r.consider(incident("i1", "ranker"))
		r.pass(time.Hour)
		if got := len(r.receiver.seen()); got != 1 {
			t.Errorf("%d deliveries, want 1", got)
		}
		decisions, err := r.Decisions(t.Context(), "i1", 10)
		check(t, err)
		if len(decisions) != 1 || decisions[0].Reason != Opened || decisions[0].Request != first.Request {
			t.Errorf("decisions %+v, want opened alone", decisions)
		}
	})
}

func testConsiderConcurrently(t *testing.T, on storage) {
	desk, err := Open(t.Context(), testConfig(t, on), testRecipes(t), zerolog.Nop(), prometheus.NewRegistry())
	check(t, err)
	reasons := make([]Reason, 20)
	var wg sync.WaitGroup
	for i := range reasons {
		wg.Go(func() {
			d, err := desk.Consider(t.Context(), incident("i1", "ranker"), time.Time{})
			if err != nil {
				t.Error(err)
			}
			reasons[i] = d.Reason
		})
	}
	wg.Wait()
	slices.Sort(reasons)
	if reasons[18] != AlreadyRequested || reasons[19] != Opened {
		t.Errorf("reasons %v, want one opened and the rest already_requested", reasons)
	}
	check(t, desk.Close())
}

func testWhatOrdersNothingIsRecordedOnce(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.run()
		inc := incident("i1", "ranker")
		inc.Provisional = true
		var want []Reason
		for _, step := range []struct {
			change func()
			reason Reason
		}{
			{func() {}, Provisional},
			{func() {}, Provisional},
			{func() { inc.Provisional, inc.Cause = false, alerts.CauseRewardFunction }, CauseNeedsPerson},
			{func() { inc.Cause = alerts.CauseTelemetry }, CauseNeedsPerson},
			{func() { inc.Alarms[0].Signal = "episode_length" }, NoTrigger},
		} {
			step.change()
			if d := r.consider(inc); d.Reason != step.reason || d.Request != "" {
				t.Errorf("decision %+v, want %s", d, step.reason)
			}
			if !slices.Contains(want, step.reason) {
				want = append(want, step.reason)
			}
			r.pass(time.Minute)
		}
		decisions, err := r.Decisions(t.Context(), "", 10)
		check(t, err)
		var got []Reason
		for _, d := range slices.Backward(decisions) {
			got = append(got, d.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %v, want %v", got, want)
		}
		if n := len(r.receiver.seen()); n != 0 {
			t.Errorf("%d deliveries, want none", n)
		}
		inc.Alarms[0].Signal, inc.Cause = "return", alerts.CausePolicy
		if d := r.consider(inc); d.Reason != Opened {
			t.Errorf("once the cause is the policy: %+v, want opened", d)
		}
	})
}

func testCooldownAndOpenRequest(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on, status(500))
		r.run()
		first := r.consider(incident("i1", "ranker"))
		synctest.Wait()
		if d := r.consider(incident("i2", "ranker")); d.Reason != OpenRequest || d.Detail != first.Request {
			t.Errorf("beside an undelivered request: %+v, want open_request", d)
		}
		if d := r.consider(incident("i3", "bidder")); d.Reason != Opened {
			t.Errorf("another policy: %+v, want opened", d)
		}
		r.pass(time.Hour)
		if d := r.consider(incident("i2", "ranker")); d.Reason != OpenRequest {
			t.Errorf("beside one whose job goes on: %+v, want open_request", d)
		}
		r.failJobs()
		if d := r.consider(incident("i2", "ranker")); d.Reason != Cooldown || d.Detail != "until 2000-01-02T00:00:00Z" {
			t.Errorf("after the job: %+v, want cooldown", d)
		}
		r.reopen()
		r.pass(23*time.Hour - 2*time.Second)
		if d := r.consider(incident("i2", "ranker")); d.Reason != Cooldown {
			t.Errorf("just before its end: %+v, want cooldown", d)
		}
		r.pass(2 * time.Second)
		if d := r.consider(incident("i2", "ranker")); d.Reason != Opened {
			t.Errorf("at its end: %+v, want opened", d)
		}
	})
}

func testCooldownIsOfTheTrigger(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.cfg.Triggers = append(r.cfg.Triggers, Trigger{On: OnIncident, Signals: []string{"action"}, Recipe: "ranker", Target: "trainer", Cooldown: 0})
		r.reopen()
		r.run()
		r.consider(incident("i1", "ranker"))
		r.pass(time.Minute)
		r.failJobs()
		for _, id := range []string{"i2", "i3"} {
			other := incident(id, "ranker")
			other.Alarms = []alerts.Alarm{alarm("action")}
			if d := r.consider(other); d.Reason != Opened {
				t.Errorf("another trigger, without a cooldown: %+v, want opened", d)
			}
			r.pass(time.Minute)
			r.failJobs()
		}
	})
}

func testExpiredRequestBlocksNothing(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		r.consider(incident("i1", "ranker"))
		r.pass(requestLifetime)
		if d := r.consider(incident("i2", "ranker")); d.Reason != Opened {
			t.Errorf("decision %+v, want opened", d)
		}
	})
}

func testCauseThatNeedsAPersonWithdraws(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		inc := incident("i1", "ranker")
		id := r.consider(inc).Request
		inc.Cause = alerts.CauseRewardFunction
		if d := r.consider(inc); d.Reason != CauseNeedsPerson || d.Request != id {
			t.Errorf("decision %+v, want cause_needs_person", d)
		}
		r.run()
		r.pass(time.Hour)
		if q := r.request(); q.State != StateWithdrawn || !strings.Contains(q.Reason, "reward_function") {
			t.Errorf("request %+v, want withdrawn", q)
		}
		if n := len(r.receiver.seen()); n != 0 {
			t.Errorf("%d deliveries, want none", n)
		}
		if d := r.consider(inc); d.Reason != AlreadyRequested {
			t.Errorf("again: %+v, want already_requested", d)
		}
	})
}

func testAcceptedIncidentWithdraws(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		inc := incident("i1", "ranker")
		id := r.consider(inc).Request
		inc.Decisions = []alerts.Decision{{Kind: alerts.Accepted, By: "alice", Why: "new prices"}}
		if d := r.consider(inc); d.Reason != IncidentAccepted || d.Request != id {
			t.Errorf("decision %+v, want incident_accepted", d)
		}
		r.run()
		r.pass(time.Hour)
		if q := r.request(); q.State != StateWithdrawn || !strings.Contains(q.Reason, "accepted by alice") {
			t.Errorf("request %+v, want withdrawn", q)
		}
		if n := len(r.receiver.seen()); n != 0 {
			t.Errorf("%d deliveries, want none", n)
		}
	})
}

func TestOrder(t *testing.T) {
	inc := incident("i1", "ranker")
	inc.Causes = []alerts.RankedCause{{Cause: alerts.CausePolicy, Weight: 1}}
	first := &inc.Alarms[0]
	first.OnsetFrom.First.Offset, first.Onset.First.Offset, first.OnsetTo.First.Offset = 990, 1000, 1010
	first.OnsetFrom.Ordinal, first.OnsetTo.Ordinal, first.OnsetOffsets = 98, 102, []ingest.Range{{First: 990, Last: 1020}}
	first.Return, first.Promise = &bank.Decomposition{Change: -50, PerStep: -50}, bank.Promise{N: 20000, Confidence: bank.ConfidenceNone}
	first.Shifts = []bank.Shift{{
		Signal: "return", Quantity: "return", BaselineMean: 200, CurrentMean: 150, StandardShift: -2, Z: math.Inf(-1), Units: 40, Drifted: true,
	}}
	second := alarm("reward")
	second.After.Policy = "v3"
	second.Effect.MeanShift, second.Effect.CurrentSD = math.Inf(-1), math.NaN()
	second.Offsets = []ingest.Range{{Partition: 0, First: 900, Last: 1050}, {Partition: 3, First: 7, Last: 9}}
	o := newOrder("rr_1", inc, append(inc.Alarms, second))
	check(t, o.instruct(testRecipes(t)["ranker"], onsetOf(inc.Alarms[0])))
	body, err := newBody(o, time.Date(2026, 11, 21, 10, 0, 0, 0, time.FixedZone("", 3600)))
	check(t, err)
	follows, err := newSchema()
	check(t, err)
	check(t, follows.check(body))
	var got, want any
	check(t, json.Unmarshal(body, &got))
	check(t, json.Unmarshal([]byte(`{
		"type": "retrain.requested",
		"timestamp": "2026-11-21T09:00:00Z",
		"data": {
			"id": "rr_1", "incident": "i1", "policy": "ranker", "group": {"env": "prod-eu"},
			"signals": ["return", "reward"],
			"cause": "policy", "evidence": ["policy_version changed from v1 to v2 at the onset"],
			"causes": [{"cause": "policy", "weight": 1, "evidence": []}],
			"onset_interval": {"first_unit": 98, "last_unit": 102, "first_ts": null, "last_ts": null, "first_index": 990,
				"last_index": 1010, "offsets": [{"partition": 0, "first": 990, "last": 1020}]},
			"return_change": {"change": -50, "reward_per_step": -50, "episode_length": 0, "action_mix": 0, "rest": 0},
			"promise": {"units": 20000, "arl0": null, "low": null, "high": null, "confidence": "none", "allowance": null, "overlap": null, "weakest": "", "caveats": []},
			"shifts": [{"signal": "return", "quantity": "return", "baseline_mean": 200, "current_mean": 150,
				"standardized_shift": -2, "z": null, "spread_z": 0, "units": 40, "drifted": true}],
			"effect": {
				"return": {"quantity": "return", "baseline_mean": 200, "current_mean": 150, "mean_shift": -50, "baseline_sd": 25, "current_sd": 30, "standardized_shift": -2, "current_units": 40,
					"median_shift": -48, "q10_shift": -55, "q90_shift": -45, "spread_ratio": 1.2, "wasserstein": 50, "moved_at_least": 0.25},
				"reward": {"quantity": "return", "baseline_mean": 200, "current_mean": 150, "mean_shift": null, "baseline_sd": 25, "current_sd": null, "standardized_shift": -2, "current_units": 40,
					"median_shift": -48, "q10_shift": -55, "q90_shift": -45, "spread_ratio": 1.2, "wasserstein": 50, "moved_at_least": 0.25}
			},
			"versions": {
				"before": {"policy_version": "v1", "env_version": "41", "reward_version": "r7"},
				"after": {"policy_version": "v3", "env_version": "41", "reward_version": "r7"}
			},
			"baseline": {"id": "b1", "units": 500},
			"offsets": {
				"drifted": [{"partition": 0, "first": 900, "last": 1100}, {"partition": 3, "first": 7, "last": 9}],
				"baseline": [{"partition": 0, "first": 0, "last": 900}]
			},
			"recipe": "ranker",
			"contract": {
				"objective": "the ranker earns what it did",
				"hypothesis": "return, reward moved as customers changed; policy in prod-eu",
				"expected": {"text": "mean return > 180 over 200 episodes within 24h", "statistic": "mean", "signal": "return",
					"comparison": ">", "value": 180, "over": 200, "unit": "episodes", "within_seconds": 86400},
				"owner": "ranking@shop.example"
			},
			"contract_from": {"objective": "base.yaml:2", "owner": "base.yaml:3", "hypothesis": "ranker.yaml:3", "expected": "ranker.yaml:4"},
			"config": {
				"optimizer": {"name": "adam", "lr": 0.0003}, "seeds": [7], "run": "retrain-rr_1",
				"ranges": [{"partition": 0, "first": 900, "last": 1100}, {"partition": 3, "first": 7, "last": 9}]
			},
			"config_from": {
				"optimizer.name": "base.yaml:5", "optimizer.lr": "ranker.yaml:6", "seeds[0]": "ranker.yaml:7", "run": "ranker.yaml:10",
				"ranges[0].partition": "ranker.yaml:9", "ranges[0].first": "ranker.yaml:9", "ranges[0].last": "ranker.yaml:9",
				"ranges[1].partition": "ranker.yaml:9", "ranges[1].first": "ranker.yaml:9", "ranges[1].last": "ranker.yaml:9"
			}
		}
	}`), &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("body\n%s\nwant\n%v", body, want)
	}
	if inc.Alarms[0].Offsets[0].First != 1000 {
		t.Error("the incident was changed")
	}
}

// What the ledger has kept is neither changed nor removed, whoever writes to it.
func testLedgerIsAppendOnly(t *testing.T, on storage) {
	l, err := openQuietly(t, on(t))
	check(t, err)
	check(t, l.update(t.Context(), func(tx *sql.Tx) error {
		return insert(t.Context(), tx, entry{id: "rr_1", state: StateOpen, origin: "i1", policy: "p", body: []byte("{}"), opened: time.Now(), due: time.Now()})
	}))
	for _, statement := range []string{
		`INSERT INTO decisions (incident, reason, at, policy, request, detail) VALUES ('i1', 'opened', 1, 'p', 'rr_1', '')`,
		`INSERT INTO deliveries (request, attempt, target, started_at, finished_at, result, status, error, response)
			VALUES ('rr_1', 1, 't', 1, 2, 'rejected', 500, 'no', ''), ('rr_1', 2, 't', 3, 4, 'interrupted', 0, '', ''), ('rr_1', 3, 't', 5, NULL, 'in_flight', 0, '', '')`,
		`UPDATE deliveries SET finished_at = 2, result = 'rejected', status = 500, error = 'no', response = '' WHERE attempt = 1`, // said again
		`UPDATE deliveries SET finished_at = 5, result = 'delivered', status = 200 WHERE attempt = 2`,                             // came after all
		`UPDATE deliveries SET finished_at = 6, result = 'delivered', status = 200 WHERE attempt = 3`,
		`UPDATE requests SET state = 'delivered', reason = 'x', new_version = 'v3', attempts = 3, due_at = 9, next_attempt_at = 9, log = 'x'`,
	} {
		if _, err := l.db.ExecContext(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	refused := []string{
		`UPDATE history SET reason = 'x'`, `DELETE FROM history`, `UPDATE decisions SET detail = 'x'`, `DELETE FROM decisions`, `DELETE FROM requests`,
		`DELETE FROM deliveries`, `UPDATE deliveries SET status = 200 WHERE attempt = 1`, `UPDATE deliveries SET finished_at = NULL WHERE attempt = 3`,
		`UPDATE deliveries SET response = 'x' WHERE attempt = 2`,
	}
	for table, columns := range map[string]string{
		"requests": "id kind origin_kind origin parent policy trigger_key recipe target body opened_at", "deliveries": "request attempt target started_at",
	} {
		for column := range strings.FieldsSeq(columns) {
			refused = append(refused, fmt.Sprintf(`UPDATE %s SET %s = %[2]s`, table, column))
		}
	}
	if l.shared {
		refused = append(refused, `TRUNCATE history`, `TRUNCATE decisions`, `TRUNCATE deliveries`, `TRUNCATE requests CASCADE`)
	}
	for _, statement := range refused {
		if _, err := l.db.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
	check(t, l.close())
}

func testLedgerKeepsTheRulesItself(t *testing.T, on storage) {
	l, err := openQuietly(t, on(t))
	check(t, err)
	put := func(id, incident, policy string) error {
		return l.update(t.Context(), func(tx *sql.Tx) error {
			return insert(t.Context(), tx, entry{id: id, state: StateOpen, origin: incident, policy: policy, body: []byte("{}"), opened: time.Now(), due: time.Now()})
		})
	}
	check(t, put("rr_1", "i1", "p"))
	if put("rr_2", "i1", "q") == nil {
		t.Error("a second request of an incident was taken")
	}
	if put("rr_3", "i2", "p") == nil {
		t.Error("a second open request of a policy was taken")
	}
	check(t, l.close())
}

func TestLedgerIsDurable(t *testing.T) {
	l, err := openQuietly(t, onSQLite(t))
	check(t, err)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		check(t, l.db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	check(t, l.close())
}

func testLedgerOfANewerBuildIsRefused(t *testing.T, on storage) {
	cfg := on(t)
	l, err := openQuietly(t, cfg)
	check(t, err)
	_, err = l.db.ExecContext(t.Context(), `INSERT INTO migrations (version, name, applied_at) VALUES (99, 'later', 0)`)
	check(t, err)
	check(t, l.close())
	if _, err := openQuietly(t, cfg); err == nil || !strings.Contains(err.Error(), "newer build") {
		t.Errorf("openLedger: %v, want a refusal", err)
	}
}

func TestLedgerPathWithOddCharacters(t *testing.T) {
	dir := t.TempDir()
	l, err := openQuietly(t, LedgerConfig{SQLite: dir + "/a ?b#c%20/led ger.db"})
	check(t, err)
	check(t, l.close())
	again, err := openQuietly(t, LedgerConfig{SQLite: dir + "/a ?b#c%20/led ger.db"})
	check(t, err)
	check(t, again.close())
}

func TestOpenFails(t *testing.T) {
	secretless := testConfig(t, onSQLite)
	secretless.Targets[0].SecretFile += ".missing"
	noLedger := testConfig(t, onSQLite)
	noLedger.Ledger.SQLite = noLedger.Targets[0].SecretFile // not a database
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{"secret": {secretless, "target trainer: read webhook secret"}, "ledger": {noLedger, "open ledger"}} {
		if _, err := Open(t.Context(), tc.cfg, testRecipes(t), zerolog.Nop(), prometheus.NewRegistry()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func testOpenTwiceOnOneRegistry(t *testing.T, on storage) {
	cfg, reg := testConfig(t, on), prometheus.NewRegistry()
	first, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), reg)
	check(t, err)
	if _, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), reg); err == nil {
		t.Error("metrics were registered twice")
	}
	check(t, first.Close())
	second, err := Open(t.Context(), cfg, testRecipes(t), zerolog.Nop(), reg)
	check(t, err)
	check(t, second.Close())
}

func BenchmarkConsiderKnownIncident(b *testing.B) {
	cfg := Config{
		Ledger:   LedgerConfig{SQLite: b.TempDir() + "/ledger.db"},
		Triggers: []Trigger{{On: OnIncident, Signals: []string{"action"}, Cooldown: model.Duration(time.Hour)}},
	}
	desk, err := Open(b.Context(), cfg, nil, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := desk.Consider(b.Context(), incident("i1", "ranker"), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := desk.Close(); err != nil {
		b.Fatal(err)
	}
}

// A slash in a signal's name is a character like any other, here as in the signals of a policy.
func TestTriggerMatchesNamesWithSlashes(t *testing.T) {
	for glob, want := range map[string]bool{"outcome.*": true, "outcome.ctr/7d": true, "outcome.ctr": false, "return": false} {
		if got := (Trigger{Signals: []string{glob}}).matches("outcome.ctr/7d"); got != want {
			t.Errorf("%s matches outcome.ctr/7d: %v", glob, got)
		}
	}
}

// doubtful makes an incident of which it is not known what caused it, the reward function with the given weight.
func doubtful(i *alerts.Incident, weight float64) {
	i.Cause = alerts.CauseUnknown
	i.Causes = []alerts.RankedCause{
		{Cause: alerts.CauseEnvironment, Weight: 1 - weight}, {Cause: alerts.CauseRewardFunction, Weight: weight},
	}
}

// An order waits until the cause has been judged for the second time, and is not made where it needs a person then.
func testUnsettledCauseWaits(t *testing.T, on storage) {
	for name, test := range map[string]struct {
		then alerts.Cause
		want Reason
	}{
		"it is the reward function": {alerts.CauseRewardFunction, CauseNeedsPerson},
		"it is the environment":     {alerts.CauseEnvironment, Opened},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, on)
				inc := incident("i1", "ranker")
				doubtful(&inc, .4)
				if d := r.consider(inc); d.Reason != CauseUnsettled || d.Request != "" {
					t.Errorf("decision %+v, want cause_unsettled", d)
				}
				inc.Cause, inc.Alarms[0].EvidenceAt.Ordinal = test.then, 20
				inc.Causes = nil
				if d := r.consider(inc); d.Reason != test.want {
					t.Errorf("then %+v, want %s", d, test.want)
				}
			})
		})
	}
}
