package tenant

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/detectors/watch"
	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func per() watch.Per { return watch.DefaultConfig().FalseAlarms.Per }

func three() List {
	return List{
		{Name: "ads", Topics: []string{"ads-telemetry"}, FalseAlarms: Budget{Per: per()}, Quota: Quota{Streams: 500}},
		{Name: "shop", Labels: map[string]string{"team": "shop", "org": "x"}, Policies: []string{"cart-*"}, FalseAlarms: Budget{Budget: 4, Per: per()}, Quota: Quota{Policies: 2}},
		{Name: "games", Policies: []string{"*-v?", "c*t-1"}, FalseAlarms: Budget{Per: per()}},
	}
}

func TestWhoseAPolicyIs(t *testing.T) {
	l := three()
	for policy, want := range map[string]string{
		"ads:ranker": "ads", "ads:": "ads", "shop:ranker": "shop", "ads:shop:x": "ads",
		"cart-1": "shop", "pong-v5": "games", "ads": "", "Ads:x": "", "": "", "x:ads": "",
		"games:ranker":  "", // it has no topic and no label, and therefore no such policy
		"games:pong-v5": "games",
	} {
		if got := l.Name(policy); got != want {
			t.Errorf("%q is of %q, want %q", policy, got, want)
		}
	}
	if List(nil).Of("x") != 0 || List(nil).Name("x") != "" || l.Has("") || !l.Has("games") {
		t.Error("no tenants have a policy, or a tenant is unknown")
	}
	if b := l.Budget("cart-1"); b.Budget != 2 || b.Per != per() || l.Budget("pong-v5") != (watch.Budget{}) || l.Budget("x") != (watch.Budget{}) {
		t.Errorf("a share of %+v", b)
	}
}

// Events of a tenant's topic or with its labels get its name, regardless of the name that they claim. Others cannot
// claim it.
func TestEventsGetTheNameOfTheirTenant(t *testing.T) {
	for _, tt := range []struct{ topic, record, want string }{
		{"ads-telemetry", `{"policy":"p","reward":1}`, "ads:p"},
		{"ads-telemetry", `{"policy":"shop:p","reward":1,"labels":{"team":"shop","org":"x"}}`, "ads:shop:p"},
		{"all", `{"policy":"p","reward":1,"labels":{"team":"shop","org":"x","more":"1"}}`, "shop:p"},
		{"all", `{"policy":"p","reward":1,"labels":{"team":"shop"}}`, "p"},
		{"all", `{"policy":"p","reward":1}`, "p"},
		{"all", `{"policy":"games:p","reward":1}`, "games:p"},
		{"all", `{"policy":"ads:p","reward":1}`, ""},
		{"all", `{"policy":"shop:p","reward":1,"labels":{"team":"shop"}}`, ""},
	} {
		d := three().Format(tt.topic, telemetry.V1{}).NewDecoder(ingest.DecoderOptions{MaxRecord: 1000})
		var why *ingest.RecordError
		got := d.Decode(nil, &ingest.Message{Value: []byte(tt.record)}, func(e *ingest.RecordError, raw []byte) {
			if why = e; string(raw) != tt.record {
				t.Errorf("%s is kept as %s", tt.record, raw)
			}
		})
		switch {
		case tt.want == "" && (len(got) != 0 || why == nil || why.Reason != ingest.ReasonOtherTenant):
			t.Errorf("%s in %s: %+v, %v", tt.record, tt.topic, got, why)
		case tt.want != "" && (len(got) != 1 || got[0].Policy != tt.want || why != nil):
			t.Errorf("%s in %s: %+v, %v; want %s", tt.record, tt.topic, got, why, tt.want)
		}
	}
	if f := three()[2:].Format("all", telemetry.V1{}); f != (telemetry.V1{}) {
		t.Errorf("without topics and labels, events are decoded with %T", f)
	}
}

// Events in the same message as a refused one are kept, and names use no further memory after the first time.
func TestARefusedEventLeavesTheOthers(t *testing.T) {
	d := three().Format("all", telemetry.V1{}).NewDecoder(ingest.DecoderOptions{MaxRecord: 1000})
	m := &ingest.Message{Value: []byte(`{"policy":"a","observation":[1,2],"reward":1}
{"policy":"ads:b","observation":[3,4],"reward":2}
{"policy":"c","observation":[5,6],"reward":3,"labels":{"team":"shop","org":"x"}}`)}
	var events []ingest.Event
	for range 3 {
		refused := 0
		events = d.Decode(events[:0], m, func(*ingest.RecordError, []byte) { refused++ })
		if len(events) != 2 || refused != 1 || events[0].Policy != "a" || events[0].Observation[1].X != 2 || events[1].Policy != "shop:c" || events[1].Observation[1].X != 6 {
			t.Fatalf("%d refused: %+v", refused, events)
		}
		d.Reset()
	}
	good := &ingest.Message{Value: []byte(`{"policy":"c","reward":3,"labels":{"team":"shop","org":"x"}}`)}
	if n := testing.AllocsPerRun(100, func() { events = d.Decode(events[:0], good, nil); d.Reset() }); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
}

// Of a message with many events of other tenants, or many invalid ones, only some are kept with their bytes.
func TestRefusedEventsAreCapped(t *testing.T) {
	d := three().Format("all", telemetry.V1{}).NewDecoder(ingest.DecoderOptions{MaxRecord: 1000})
	for _, value := range []string{
		strings.Repeat(`{"policy":"ads:b"}`+"\n", 1000),
		strings.Repeat(`{"policy":"ads:b"}`+"\nx\n", 500),
	} {
		refused, raw := 0, 0
		d.Decode(nil, &ingest.Message{Value: []byte(value)}, func(_ *ingest.RecordError, bytes []byte) {
			if refused++; bytes != nil {
				raw++
			}
		})
		if refused != 1000 || raw != ingest.MaxRefusals {
			t.Errorf("%d refused, %d with their bytes", refused, raw)
		}
		d.Reset()
	}
}

// The parts of a limit never exceed the limit in total, and each is at least 1.
func TestQuotasDivideTheLimit(t *testing.T) {
	l := three()
	if got := l.Streams(2000); !slices.Equal(got, []int{500, 500, 500, 500}) {
		t.Errorf("got %v", got)
	}
	if got := l.OpenEpisodes(10); !slices.Equal(got, []int{2, 2, 2, 4}) {
		t.Errorf("got %v", got)
	}
	if got := List(nil).OpenDecisions(7); !slices.Equal(got, []int{7}) {
		t.Errorf("without tenants, got %v", got)
	}
	check := func(l List, streams int) (found []string) {
		l.Check(Limits{streams, 100, 100}, func(path, msg string) { found = append(found, path+": "+msg) })
		return found
	}
	if found := check(l, 503); len(found) != 0 {
		t.Errorf("%q", found)
	}
	if found := check(l, 502); len(found) != 1 || !strings.Contains(found[0], "limits.streams (502)") {
		t.Errorf("%q", found)
	}
	for want, change := range map[string]func(*Config){
		"tenants[1].name: another":           func(c *Config) { c.Name = "ads" },
		"tenants[1].name: must":              func(c *Config) { c.Name = "Shop" },
		"tenants[1].topics[0]: belongs":      func(c *Config) { c.Topics = []string{"ads-telemetry"} },
		"tenants[1].topics[0]: must":         func(c *Config) { c.Topics = []string{"ä"} },
		"tenants[1].labels: must":            func(c *Config) { c.Labels = map[string]string{"team": ""} },
		"tenants[1].policies: must be set":   func(c *Config) { c.Labels, c.Policies = nil, nil },
		"tenants[1].policies[0]: \"[\"":      func(c *Config) { c.Policies = []string{"["} },
		"tenants[1].quota.policies: must":    func(c *Config) { c.Quota.Policies, c.FalseAlarms.Budget = -1, 0 },
		"tenants[1].false_alarms.budget: re": func(c *Config) { c.Quota.Policies = 0 },
		"tenants[1].false_alarms.budget: mu": func(c *Config) { c.FalseAlarms.Budget = -1 },
		"tenants[1].false_alarms.per: must":  func(c *Config) { c.FalseAlarms.Per.Amount = 0 },
	} {
		l := three()
		change(&l[1])
		if found := check(l, 1000); len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%s: %q", want, found)
		}
	}
}

func TestAccountsCountByTenant(t *testing.T) {
	reg := prometheus.NewRegistry()
	a := NewAccounts(three(), Limits{2000, 100, 100}, reg)
	a.Watched = func(yield func(string) bool) { _ = yield("cart-1") && yield("cart-2") && yield("other") }
	now := time.Unix(1000, 0)
	if a.Full("cart-2", now) || !a.Full("cart-3", now) || a.Full("pong-v5", now) || a.Full("x", now) {
		t.Error("the quota of policies is not obeyed")
	}
	counted := a.Watched
	a.Watched = func(func(string) bool) { t.Error("counted again") }
	if !a.Full("cart-3", now.Add(recount-1)) {
		t.Error("the quota of policies is forgotten")
	}
	a.Watched = func(func(string) bool) {}
	if a.Full("cart-3", now.Add(recount)) {
		t.Error("a policy that is gone still counts")
	}
	a.Watched = counted
	for range 501 {
		a.Limit("ads:p").Take()
	}
	a.Over(1).Units.Inc()
	if a.Limit("x") == a.Limit("pong-v5") || !a.Limit("x").Take() {
		t.Error("tenants share a limit")
	}
	want := fmt.Sprint(
		"# HELP rewardwatch_tenant_used Policies and streams of a tenant that are judged, by kind.\n# TYPE rewardwatch_tenant_used gauge\n",
		"rewardwatch_tenant_used{kind=\"policies\",tenant=\"\"} 1\nrewardwatch_tenant_used{kind=\"policies\",tenant=\"ads\"} 0\n",
		"rewardwatch_tenant_used{kind=\"policies\",tenant=\"games\"} 0\nrewardwatch_tenant_used{kind=\"policies\",tenant=\"shop\"} 2\n",
		"rewardwatch_tenant_used{kind=\"streams\",tenant=\"\"} 1\nrewardwatch_tenant_used{kind=\"streams\",tenant=\"ads\"} 500\n",
		"rewardwatch_tenant_used{kind=\"streams\",tenant=\"games\"} 0\nrewardwatch_tenant_used{kind=\"streams\",tenant=\"shop\"} 0\n",
	)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "rewardwatch_tenant_used"); err != nil {
		t.Error(err)
	}
	if n := testutil.ToFloat64(a.refused.WithLabelValues("shop", units)) + testutil.ToFloat64(a.refused.WithLabelValues("shop", policies)); n != 3 {
		t.Errorf("%v refused", n)
	}
	if n, err := testutil.GatherAndCount(reg, "rewardwatch_tenant_refused_total"); n != 4*6 || err != nil {
		t.Errorf("%d series of what was refused, %v", n, err)
	}
}
