package retrain

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// bodyOf gives the webhook of an order that the recipe ranker makes.
func bodyOf(t *testing.T) []byte {
	t.Helper()
	inc := incident("i1", "ranker")
	o := newOrder("rr_1", inc, inc.Alarms)
	check(t, o.instruct(testRecipes(t)["ranker"], onsetOf(inc.Alarms[0])))
	body, err := newBody(o, time.Unix(0, 0))
	check(t, err)
	return body
}

// Nothing of a body may be missing, of another type, or one too many, down to the parts of the condition.
func TestSchemaHoldsEveryPart(t *testing.T) {
	published, err := newSchema()
	check(t, err)
	body := bodyOf(t)
	check(t, published.check(body))
	open := map[string]bool{"group": true, "effect": true, "config": true, "config_from": true, "contract_from": true}
	refused := 0
	refuse := func(what string, whole any) {
		text, err := json.Marshal(whole)
		check(t, err)
		if err := published.check(text); !errors.Is(err, errOffSchema) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want a refusal in one line", what, err)
		}
		refused++
	}
	var whole any
	check(t, decode(body, &whole))
	var visit func(path string, at map[string]any)
	visit = func(path string, at map[string]any) {
		for key, value := range at {
			inside := path + "." + key
			delete(at, key)
			refuse(inside+" is missing", whole)
			at[key] = true
			refuse(inside+" is of another type", whole)
			at[key] = value
			if below, ok := value.(map[string]any); ok && !open[key] {
				visit(inside, below)
			}
		}
		at["surplus"] = 1
		refuse(path+" has a surplus key", whole)
		delete(at, "surplus")
	}
	visit("", whole.(map[string]any))
	check(t, published.check(body))
	if refused < 80 {
		t.Errorf("only %d bodies were tried", refused)
	}
}

func TestSchemaHoldsTheContract(t *testing.T) {
	published, err := newSchema()
	check(t, err)
	for change, fragment := range map[[2]string]string{
		{`"owner":"ranking@shop.example"`, `"owner":" \t"`}:     "/data/contract/owner",
		{`"objective":"the ranker`, `"objective":"","x":"`}:     "/data/contract",
		{`"statistic":"mean"`, `"statistic":"mode"`}:            "/data/contract/expected/statistic",
		{`"signal":"return"`, `"signal":"retrun"`}:              "/data/contract/expected/signal",
		{`"comparison":"\u003e"`, `"comparison":"="`}:           "/data/contract/expected/comparison",
		{`"over":200`, `"over":0`}:                              "/data/contract/expected/over",
		{`"over":200`, `"over":1.5`}:                            "/data/contract/expected/over",
		{`"unit":"episodes"`, `"unit":"steps"`}:                 "/data/contract/expected/unit",
		{`"within_seconds":86400`, `"within_seconds":0`}:        "/data/contract/expected/within_seconds",
		{`"id":"rr_1"`, `"id":"r_1"`}:                           "/data/id",
		{`"optimizer.lr":"ranker.yaml:6"`, `"optimizer.lr":""`}: "/data/config_from/optimizer.lr",
		{`"type":"retrain.requested"`, `"type":"retrain"`}:      "/type",
		{`"timestamp":"1970`, `"timestamp":"x1970`}:             "/timestamp",
	} {
		body := bodyOf(t)
		changed := strings.Replace(string(body), change[0], change[1], 1)
		if changed == string(body) {
			t.Fatalf("%s does not stand in %s", change[0], body)
		}
		if err := published.check([]byte(changed)); !errors.Is(err, errOffSchema) || !strings.Contains(err.Error(), fragment) {
			t.Errorf("%s: %v, want a refusal of %s", change[1], err, fragment)
		}
	}
	if err := published.check([]byte("{")); !errors.Is(err, errOffSchema) {
		t.Errorf("no JSON: %v", err)
	}
}

// A contract that is empty once its templates are filled opens no request, and the service lives on.
func testOrderThatBreaksItsPromise(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		owner := r.recipes["ranker"].contract.Members["owner"]
		owner.Scalar = "{{ group.env }}"
		r.recipes["ranker"].contract.Members["owner"] = owner
		r.run()
		inc := incident("i1", "ranker")
		inc.Group = ingest.NewGroup("ranker")
		for range 2 {
			d := r.consider(inc)
			if d.Reason != InvalidOrder || d.Request != "" || !strings.Contains(d.Detail, "/data/contract/owner") {
				t.Errorf("decision %+v, want invalid_order with its place", d)
			}
		}
		r.pass(time.Hour)
		requests, err := r.Requests(t.Context(), 10)
		check(t, err)
		if len(requests) != 0 || len(r.receiver.seen()) != 0 {
			t.Errorf("%d requests, %d deliveries, want none", len(requests), len(r.receiver.seen()))
		}
		decisions, err := r.Decisions(t.Context(), "i1", 10)
		check(t, err)
		if len(decisions) != 1 || decisions[0].Reason != InvalidOrder {
			t.Errorf("recorded %+v, want invalid_order once", decisions)
		}
		delete(r.recipes, "ranker")
		if d := r.consider(incident("i2", "ranker")); d.Reason != InvalidOrder || !strings.Contains(d.Detail, `no recipe is named "ranker"`) {
			t.Errorf("without its recipe: %+v, want invalid_order", d)
		}
	})
}

// writeOldLedger makes a ledger with the first migration alone, and an open request.
func writeOldLedger(t *testing.T, cfg LedgerConfig) {
	t.Helper()
	open := openSQLite
	if cfg.OnPostgreSQL() {
		open = openPostgreSQL
	}
	db, d, err := open(cfg)
	check(t, err)
	l := &ledger{db: db, dialect: d, waiting: func(err error, _ time.Duration) { t.Error(err) }}
	check(t, l.update(t.Context(), func(tx *sql.Tx) error {
		if _, err := schemaVersion(t.Context(), tx); err != nil {
			return err
		}
		if err := apply(t.Context(), tx, "migrations/"+d.name, "0001_ledger.sql"); err != nil {
			return err
		}
		now := time.Now()
		if _, err := tx.ExecContext(t.Context(), `
			INSERT INTO requests (id, incident, policy, trigger_key, target, state, reason, body, attempts, opened_at, expires_at, next_attempt_at)
			VALUES ('rr_old', 'i0', 'ranker', 'k', 'trainer', 'open', '', $1, 0, $2, $3, $2)`,
			[]byte(`{"type":"retrain.requested","data":{"id":"rr_old"}}`), now.UnixMilli(), now.Add(requestLifetime).UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(t.Context(), `INSERT INTO history (request, at, state, reason) VALUES ('rr_old', $1, 'open', '')`, now.UnixMilli())
		return err
	}))
	check(t, l.close())
}

// A ledger of a build before recipes is taken over. What it would still have sent has no contract, and is given up unsent.
func testRequestOfABuildBeforeRecipes(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		old := func(t *testing.T) LedgerConfig {
			cfg := on(t)
			writeOldLedger(t, cfg)
			return cfg
		}
		r := newRig(t, old, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
		r.run()
		r.pass(time.Hour)
		if q := r.request(); q.State != StateDeadLetter || q.Recipe != "" || !strings.Contains(q.Reason, SchemaFile) {
			t.Errorf("request %+v, want a dead letter", q)
		}
		if got := r.results(); len(got) != 1 || got[0] != ResultInvalid {
			t.Errorf("results %v, want invalid", got)
		}
		r.stop() // or it would be sent
		if d := r.consider(incident("i1", "ranker")); d.Reason != Opened {
			t.Errorf("the next incident: %+v, want opened", d)
		}
	})
}

func testRequestByItsID(t *testing.T, on storage) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, on)
		id := r.consider(incident("i1", "ranker")).Request
		q, err := r.Request(t.Context(), id)
		check(t, err)
		if q.ID != id || q.Recipe != "ranker" || q.Origin != "i1" {
			t.Errorf("request %+v", q)
		}
		leaves, err := LeavesOfOrder(q.Order)
		check(t, err)
		recipe := r.recipes["ranker"].Leaves()
		var changed []string
		for _, d := range Differences(recipe, leaves) {
			changed = append(changed, d.Path)
		}
		const want = "config.ranges config.ranges[0].first config.ranges[0].last config.ranges[0].partition config.run contract.hypothesis contract.objective"
		if got := strings.Join(changed, " "); got != want {
			t.Errorf("filling the recipe has changed %s, want %s", got, want)
		}
		for _, unknown := range []string{"rr_none", "", "a\x00b"} {
			if _, err := r.Request(t.Context(), unknown); !errors.Is(err, ErrUnknownRequest) {
				t.Errorf("%q: %v", unknown, err)
			}
		}
	})
}
