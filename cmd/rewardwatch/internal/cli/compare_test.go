package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/replay"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/detectors/finding"
	"github.com/rewardwatch/rewardwatch/ingest"
)

// logged returns an alarm at a unit that is as many records into the telemetry, and that resolved at end; 0 for not
// yet.
func logged(id, signal, env string, onset, unit, end int64) replay.LoggedAlarm {
	at := func(offset int64) finding.UnitRef {
		return finding.UnitRef{First: ingest.Position{Offset: offset}, Pos: ingest.Position{Offset: offset}}
	}
	return replay.LoggedAlarm{Units: unit, Alarm: alerts.Alarm{
		ID: id, Signal: signal, Group: ingest.NewGroup("ranker", ingest.Label{Name: "env", Value: env}),
		Onset: at(onset), At: at(unit), Resolved: end > 0, ResolvedAt: at(end),
	}}
}

func TestCompare(t *testing.T) {
	first := logged("1", "reward", "prod", 100, 120, 200)
	tests := map[string]struct {
		this, other []replay.LoggedAlarm
		want        []string // change, unit, units later
		same        int
	}{
		"nothing":                  {nil, nil, nil, 0},
		"the same unit":            {[]replay.LoggedAlarm{first}, []replay.LoggedAlarm{logged("2", "reward", "prod", 90, 120, 300)}, nil, 1},
		"later":                    {[]replay.LoggedAlarm{first}, []replay.LoggedAlarm{logged("2", "reward", "prod", 150, 170, 0)}, []string{"moved 120 +50"}, 0},
		"earlier":                  {[]replay.LoggedAlarm{first}, []replay.LoggedAlarm{logged("2", "reward", "prod", 90, 110, 130)}, []string{"moved 120 -10"}, 0},
		"removed":                  {[]replay.LoggedAlarm{first}, nil, []string{"removed 120"}, 0},
		"added":                    {nil, []replay.LoggedAlarm{first}, []string{"added 120"}, 0},
		"another signal":           {[]replay.LoggedAlarm{first}, []replay.LoggedAlarm{logged("2", "return", "prod", 100, 115, 200)}, []string{"added 115", "removed 120"}, 0},
		"another group":            {[]replay.LoggedAlarm{first}, []replay.LoggedAlarm{logged("2", "reward", "test", 100, 125, 200)}, []string{"removed 120", "added 125"}, 0},
		"one that was over before": {[]replay.LoggedAlarm{first}, []replay.LoggedAlarm{logged("2", "reward", "prod", 50, 60, 99)}, []string{"added 60", "removed 120"}, 0},
		"each once": {
			[]replay.LoggedAlarm{first},
			[]replay.LoggedAlarm{logged("2", "reward", "prod", 100, 121, 150), logged("3", "reward", "prod", 160, 180, 190)},
			[]string{"moved 120 +1", "added 180"},
			0,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lines, same := replay.Compare(tt.this, tt.other)
			var got []string
			for _, line := range lines {
				s := fmt.Sprint(line.Change, " ", line.Index())
				if line.Units != nil {
					s += fmt.Sprintf(" %+d", *line.Units)
				}
				got = append(got, s)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) || same != tt.same {
				t.Errorf("got %q and %d the same, want %q and %d", got, same, tt.want, tt.same)
			}
		})
	}
}

// compared is the output of replay --compare.
type compared struct {
	alarms      int
	comparisons []replay.ComparisonJSON
	sum         replay.ComparisonSummaryJSON
	last        string // the last event
}

// replayBoth replays the standard input with two configurations.
func replayBoth(t *testing.T, input []byte, this, other string) (int, compared) {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(context.Background(), &terminal.Console{In: bytes.NewReader(input), Out: &out, Err: &errs}, []string{
		"replay", "--output", "json", "--config", testkit.WriteConfig(t, this), "--compare", testkit.WriteConfig(t, other), "-",
	})
	times := regexp.MustCompile(`"ts":"[^"]*"`) // times can only be encoded
	var c compared
	for line := range strings.Lines(times.ReplaceAllString(out.String(), `"ts":null`)) {
		var kind struct {
			Event string `json:"event"`
			State string `json:"state"`
		}
		err := json.Unmarshal([]byte(line), &kind)
		switch c.last = kind.Event; kind.Event {
		case "alarm":
			if kind.State == "firing" {
				c.alarms++
			}
		case "comparison":
			var one replay.ComparisonJSON
			err = json.Unmarshal([]byte(line), &one)
			c.comparisons = append(c.comparisons, one)
		case "comparison_summary":
			err = json.Unmarshal([]byte(line), &c.sum)
		}
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
	}
	return code, c
}

func TestSimReplayCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	f := newFleet(12, 2)
	f.episodes(400)
	f.mean = -1.1
	f.episodes(80)
	input, err := os.ReadFile(f.file(t))
	if err != nil {
		t.Fatal(err)
	}
	const (
		all    = "policies: [{match: ranker, baseline: {units: 250}, false_alarms: {budget: 1, per: 20000 episodes}}]"
		strict = "policies: [{match: ranker, baseline: {units: 250}, false_alarms: {budget: 1, per: 20000000 episodes}}]"
		length = "policies: [{match: ranker, baseline: {units: 250}, signals: [episode_length]}]"
	)
	t.Run("itself", func(t *testing.T) {
		code, c := replayBoth(t, input, all, all)
		if code != exitDrift || c.alarms < 2 || c.sum.Same != c.alarms || len(c.comparisons) != 0 || c.last != "summary" {
			t.Errorf("exit %d, %+v", code, c)
		}
	})
	t.Run("a stricter budget", func(t *testing.T) {
		code, c := replayBoth(t, input, all, strict)
		if code != exitDrift || c.sum.Moved != c.alarms || c.sum.Same+c.sum.Added+c.sum.Removed != 0 {
			t.Fatalf("exit %d, %+v", code, c)
		}
		for _, m := range c.comparisons {
			if m.Change != replay.AlarmMoved || *m.Units <= 0 || m.Other.Index <= m.This.Index || m.This.ID == m.Other.ID {
				t.Errorf("%+v", m)
			}
		}
	})
	t.Run("fewer signals", func(t *testing.T) {
		code, c := replayBoth(t, input, all, length)
		if code != exitDrift || c.sum.Removed != c.alarms || c.comparisons[0].Other != nil || c.comparisons[0].This == nil {
			t.Errorf("exit %d, %+v", code, c)
		}
	})
	t.Run("more signals", func(t *testing.T) {
		code, c := replayBoth(t, input, length, all)
		if code != exitFine || c.alarms != 0 || c.sum.Added < 2 || c.comparisons[0].This != nil {
			t.Errorf("exit %d, %+v", code, c)
		}
	})
}

func TestReplayCompareText(t *testing.T) {
	config := testkit.WriteConfig(t, fmt.Sprintf(budgetOfAMillion, 250))
	other := testkit.WriteConfig(t, "policies: [{match: '*', signals: [episode_length]}]")
	code, out := verb(t, "replay", "--config", config, "--compare", other,
		"testdata/returns/td3-Pendulum-v1.csv.gz", "testdata/returns/ars-Pendulum-v1.csv.gz")
	if want := "removed   return of Pendulum-v0{env=\"\"}: at record 7"; code != exitDrift || !strings.Contains(out, want) {
		t.Errorf("exit %d, no %q in\n%s", code, want, out)
	}
	if want := "Under " + other + ": 0 added, 1 removed, 0 moved, 0 the same.\n"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	if code, _ := verb(t, "replay", "--compare", "no such file", "testdata/returns/td3-Pendulum-v1.csv.gz"); code != exitError {
		t.Errorf("a missing configuration gives exit %d", code)
	}
}
