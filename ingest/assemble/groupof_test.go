package assemble

import (
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
