package recipe

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/retrain/retraintest"
)

// bodyOf returns the webhook of an order from the recipe ranker.
func bodyOf(t *testing.T) []byte {
	t.Helper()
	inc := retraintest.Incident("i1", "ranker")
	o := newOrder("rr_1", inc, inc.Alarms)
	check(t, o.instruct(testRecipes(t)["ranker"], onsetOf(inc.Alarms[0])))
	body, err := newBody(o, time.Unix(0, 0))
	check(t, err)
	return body
}

// No part of a body may be missing, have another type, or be added, down to the parts of the condition.
func TestSchemaHoldsEveryPart(t *testing.T) {
	published, err := NewValidator()
	check(t, err)
	body := bodyOf(t)
	check(t, published.Check(body))
	open := map[string]bool{"group": true, "effect": true, "config": true, "config_from": true, "contract_from": true}
	refused := 0
	refuse := func(what string, whole any) {
		text, err := json.Marshal(whole)
		check(t, err)
		if err := published.Check(text); !errors.Is(err, ErrOffSchema) || strings.Contains(err.Error(), "\n") {
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
	check(t, published.Check(body))
	if refused < 80 {
		t.Errorf("only %d bodies were tried", refused)
	}
}

func TestSchemaHoldsTheContract(t *testing.T) {
	published, err := NewValidator()
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
		if err := published.Check([]byte(changed)); !errors.Is(err, ErrOffSchema) || !strings.Contains(err.Error(), fragment) {
			t.Errorf("%s: %v, want a refusal of %s", change[1], err, fragment)
		}
	}
	if err := published.Check([]byte("{")); !errors.Is(err, ErrOffSchema) {
		t.Errorf("no JSON: %v", err)
	}
}

// Each kind has its type of webhook, and its name unless it is a retraining.
func TestSchemaHoldsTheKind(t *testing.T) {
	published, err := NewValidator()
	check(t, err)
	ranker := testRecipes(t)["ranker"]
	inc := retraintest.Incident("i1", "ranker")
	for _, kind := range Kinds() {
		r := *ranker
		r.Kind = kind
		body, err := r.Order(Occasion{ID: "rr_1", Policy: "ranker", Incident: &inc, Alarms: inc.Alarms, At: time.Unix(0, 0)})
		check(t, err)
		check(t, published.Check(body))
		want, other := EventOrdered, EventRequested
		if kind == Retrain {
			want, other = other, want
		}
		if got := EventOf(body); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		changed := strings.Replace(string(body), want, other, 1)
		if err := published.Check([]byte(changed)); !errors.Is(err, ErrOffSchema) {
			t.Errorf("%s as %s: %v", kind, other, err)
		}
		if kind != Retrain {
			changed = strings.Replace(string(body), `"order":"`+string(kind), `"order":"retrain`, 1)
			if err := published.Check([]byte(changed)); !errors.Is(err, ErrOffSchema) {
				t.Errorf("retrain as another order: %v", err)
			}
		}
	}
}
