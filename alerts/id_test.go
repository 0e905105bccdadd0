package alerts

import (
	"testing"

	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// TestAlarmIDs fixes ids, because people keep them in tickets, and a restart must not page again with a different id.
func TestAlarmIDs(t *testing.T) {
	bare := finding.Finding{Group: ingest.NewGroup("p")}
	for _, test := range []struct {
		name    string
		finding finding.Finding
		want    string
	}{
		{"a whole finding", drift("return", 100), "8913315e1179a501"},
		{"the least of one", bare, "26a81fe9570da6e8"},
	} {
		if got := alarmID(test.finding); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestAlarmIDIsOfTheEventsAndNotOfTheirPlace(t *testing.T) {
	kafka := drift("return", 100)
	file := kafka
	file.At, file.Onset, file.Offsets = unit(100, 7), unit(92, 7), []ingest.Range{{Partition: 7, First: 1, Last: 2}}
	file.Score, file.At.TS = 3, 0
	if alarmID(kafka) != alarmID(file) {
		t.Error("the same unit at another offset gave another id")
	}
}

func TestAlarmIDsDiffer(t *testing.T) {
	seen := map[string]string{alarmID(drift("return", 100)): "the first"}
	for name, change := range map[string]func(*finding.Finding){
		"policy":    func(f *finding.Finding) { f.Group = ingest.NewGroup("check", ingest.Label{Name: "env", Value: "prod"}) },
		"no labels": func(f *finding.Finding) { f.Group = ingest.NewGroup("checkout") },
		"label name": func(f *finding.Finding) {
			f.Group = ingest.NewGroup("checkout", ingest.Label{Name: "en", Value: "vprod"})
		},
		"label value": func(f *finding.Finding) {
			f.Group = ingest.NewGroup("checkout", ingest.Label{Name: "env", Value: "test"})
		},
		"signal":        func(f *finding.Finding) { f.Signal = "returnb" },
		"baseline":      func(f *finding.Finding) { f.Baseline.ID = "b2" },
		"moved border":  func(f *finding.Finding) { f.Signal, f.Baseline.ID = "returnb", "1" },
		"ordinal":       func(f *finding.Finding) { f.At.Ordinal++ },
		"agent":         func(f *finding.Finding) { f.At.Agent = "a-2" },
		"episode":       func(f *finding.Finding) { f.At.Episode = "e-1" },
		"agent absent":  func(f *finding.Finding) { f.At.Agent, f.At.Episode = "", "a-1e-100" },
		"other episode": func(f *finding.Finding) { f.At.Agent, f.At.Episode = "a-1e-100", "" },
	} {
		f := drift("return", 100)
		change(&f)
		id := alarmID(f)
		if other, twice := seen[id]; twice {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[id] = name
	}
}
