package assemble

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rewardwatch/rewardwatch/ingest"
)

// GroupOf returns the group of the unit that an event ends.
func TestGroupOf(t *testing.T) {
	by := []string{"env", "labels.region", "labels.none"}
	a := New(Config{GroupBy: func(string) []string { return by }}, NewMetrics(prometheus.NewRegistry()))
	e := ingest.Event{
		Policy: "ranker", Env: "prod", Labels: []ingest.Label{{Name: "tier", Value: "1"}, {Name: "region", Value: "eu"}}, Step: -1, HasEpisode: true,
		Return: 1, Length: 3,
	}
	var units []*ingest.Unit
	a.Fold(&e, func(u *ingest.Unit) { units = append(units, u) })
	if len(units) != 1 || units[0].Group != GroupOf(by, &e) || units[0].Group.String() != `ranker{env="prod",label_region="eu",label_none=""}` {
		t.Errorf("units %v, group %s", units, GroupOf(by, &e))
	}
}

// The group of a policy's last decision is found again only by events with all of its labels, and only while it exists.
func TestTheGroupOfTheLastDecision(t *testing.T) {
	b := newBench(Config{GroupBy: func(string) []string { return []string{"env", "labels.segment"} }})
	decision := func(env, segment, agent string) ingest.Event {
		e := stepOf(0, 1, terminated, agentID(agent), episodeID(agent))
		e.Env, e.Labels = env, []ingest.Label{{Name: "segment", Value: segment}}
		return e
	}
	for i, e := range []ingest.Event{
		decision("prod", "new", "1"), decision("prod", "new", "2"), decision("prod", "old", "3"), decision("test", "old", "4"), decision("prod", "old", "5"),
	} {
		b.feed(e)
		u := b.units[len(b.units)-1]
		want := ingest.NewGroup("p", ingest.Label{Name: "env", Value: e.Env}, ingest.Label{Name: "label_segment", Value: e.Labels[0].Value})
		if len(b.units) != i+1 || u.Group != want {
			t.Errorf("%d units, the last one of %v, want %v", len(b.units), u.Group, want)
		}
		if g := b.policies["p"].recent; g == nil || g.Group != want || g.sum != ingest.FNV1a(ingest.FNVBasis, []byte(g.Key)) {
			t.Errorf("the last decision was of %+v", g)
		}
	}
	again := decision("prod", "old", "5")
	b.feed(again)
	if len(b.units) != 5 {
		t.Error("a repeated decision was not recognized by its hash")
	}
	b.Forget("p")
	b.feed(decision("prod", "old", "6"))
	if g := b.policies["p"].recent; g == nil || b.groups[g.Key] != g {
		t.Error("the group was forgotten, but is still used")
	}
}

// Keys of groups that were damaged on disk have no parts.
func TestPartsOfKeys(t *testing.T) {
	key := string(appendPart(appendPart(nil, "policy"), strings.Repeat("e", 200)))
	if parts := partsOf(key); len(parts) != 2 || parts[0] != "policy" || len(parts[1]) != 200 {
		t.Errorf("%q", parts)
	}
	for _, damaged := range []string{key[:10], "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", key + "\x05a"} {
		if parts := partsOf(damaged); parts != nil {
			t.Errorf("%q: %q", damaged, parts)
		}
	}
}
