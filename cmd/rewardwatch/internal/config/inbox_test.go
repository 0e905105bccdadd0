package config

import (
	"os"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/ingest"
	"github.com/rewardwatch/rewardwatch/ingest/telemetry"
)

// The example of the documentation receives telemetry of each of its tenants over HTTP, and assigns it to the tenant.
func TestInboxesOfTheDocumentedTenants(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/tenants.md")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseConfig("tenants.md", []byte(strings.Split(strings.Split(string(page), "```yaml")[1], "```")[0]), (*Config).CheckAlone)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ topic, record, policy string }{
		"ads":   {"ads-telemetry", `{"reward":1,"policy":"ranker"}`, "ads:ranker"},
		"shop":  {"agent-telemetry", `{"reward":1,"policy":"ranker","labels":{"team":"shop"}}`, "shop:ranker"},
		"games": {"agent-telemetry", `{"reward":1,"policy":"chess-1"}`, "chess-1"},
		"":      {"agent-telemetry", `{"reward":1,"policy":"ranker"}`, "ranker"},
	} {
		topic, takes := c.Inbox(name)
		if !takes || topic.Topic != want.topic {
			t.Errorf("telemetry of %q goes to %q, %t", name, topic.Topic, takes)
			continue
		}
		decoder := c.Tenants.Format(topic.Topic, telemetry.V1{}).NewDecoder(ingest.DecoderOptions{MaxRecord: 1 << 10})
		events := decoder.Decode(nil, &ingest.Message{Value: []byte(want.record)}, func(e *ingest.RecordError, _ []byte) { t.Error(e) })
		if len(events) != 1 || events[0].Policy != want.policy || c.Tenants.Name(events[0].Policy) != name {
			t.Errorf("%q sends %+v", name, events)
		}
	}
}

// What a tenant sends goes to its own topic, or to one without a tenant.
func TestInboxOfATenant(t *testing.T) {
	for _, tt := range []struct{ topics, tenant, want string }{
		{"[{topic: b}, {topic: a}, {topic: all}]", "ads", "a"},
		{"[{topic: b}, {topic: a}, {topic: all}]", "shop", "all"},
		{"[{topic: b}, {topic: a}, {topic: all}]", "", "all"},
		{"[{topic: b}, {topic: a, format: protobuf}, {topic: all}]", "ads", ""},
		{"[{topic: b}, {topic: a, format: protobuf}, {topic: all}]", "dolls", "b"},
		{"[{topic: b}, {topic: a}, {topic: all, format: protobuf}]", "shop", ""},
		{"[{topic: b}, {topic: a}, {topic: all, format: protobuf}]", "", ""},
	} {
		text := "ingest: {kafka: {topics: " + tt.topics + "}}\ntenants: [{name: ads, topics: [a]}, {name: dolls, topics: [b]}, {name: shop, labels: {team: shop}}]"
		c, err := ParseConfig("x.yml", []byte(text), (*Config).CheckAlone)
		if err != nil {
			t.Fatal(err)
		}
		if topic, takes := c.Inbox(tt.tenant); topic.Topic != tt.want || takes != (tt.want != "") {
			t.Errorf("of topics %s, %q sends to %q, %t", tt.topics, tt.tenant, topic.Topic, takes)
		}
	}
}
