package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/api/apitest"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
	"github.com/rewardwatch/rewardwatch/retrain/ledger"
)

// exporting sets up a topic with experience, and returns the flags for verbs to reach it and a service with requests
// for it.
func exporting(t *testing.T) []string {
	t.Helper()
	broker := startBroker(t, 1)
	f := &fleet{}
	for _, step := range []string{ // three whole episodes of 2, 3 and 3 steps, and the beginning of another one
		`0`, `1,"terminated":true`, `0`, `1`, `2,"truncated":true`, `0`, `1`, `2,"terminated":true`, `0`,
	} {
		f.lines = append(f.lines, fmt.Appendf(nil, `{"policy":"ranker","env":"prod","agent_id":"a","observation":[0.5,1],"action":2,"reward":1,"step":%s}`, step))
		f.keys = append(f.keys, "a")
	}
	f.produce(t, broker, 0, len(f.lines))
	order := func(baseline, drifted string) json.RawMessage {
		return json.RawMessage(`{"incident":"i1","policy":"ranker","group":{"env":"prod"},"offsets":{"baseline":[` + baseline + `],"drifted":[` + drifted + `]}}`)
	}
	v := apitest.SomeView()
	v.Ordered = []ledger.Request{
		{ID: "rr_1", Order: order(`{"partition":0,"first":0,"last":4}`, `{"partition":0,"first":5,"last":8}`)},
		{ID: "rr_2", Order: order(`{"partition":0,"first":0,"last":4}`, `{"partition":0,"first":4,"last":7}`)},
		{ID: "rr_early", Order: order(`{"partition":0,"first":0,"last":4}`, `{"partition":0,"first":5,"last":6}`)},
		{ID: "rr_gone", Order: order(`{"partition":0,"first":7,"last":9}`, `{"partition":0,"first":100,"last":200}`)},
		{ID: "rr_none", Order: order(``, ``)},
		{ID: "rr_weekly", OriginKind: ledger.OriginSchedule, Order: json.RawMessage(`{"incident":null,"policy":"ranker","group":null,"offsets":null}`)},
		{ID: "rr_back", Kind: ledger.KindRollback, Order: json.RawMessage(`{"policy":"ranker","group":{"env":"prod"},"request":"rr_1"}`)},
		{ID: "rr_hand", Order: json.RawMessage(`{"incident":null,"policy":"ranker","group":null,"offsets":null}`)},
		{ID: "rr_person", Order: order(``, `{"partition":0,"first":5,"last":8}`)},
	}
	config := testkit.WriteConfig(t, fmt.Sprintf("ingest: {kafka: {brokers: [%q], topic: agent-telemetry}}", broker))
	return append(serveOrders(t, v, &apitest.FixedOrders{}), "--config", config)
}

func TestRetrainExport(t *testing.T) {
	flags := exporting(t)
	run := func(args ...string) outcome {
		return runVerb(append(append([]string{"retrain", "export"}, args...), flags...)...)
	}

	piped := run("rr_1")
	if piped.code != exitFine || piped.err != "9 steps of 4 episodes, 1 of them incomplete\n" {
		t.Fatalf("exit %d: %s", piped.code, piped.err)
	}
	testkit.SameAsFile(t, filepath.Join("testdata", "verbs", "retrain_export.ndjson"), piped.out)

	file := filepath.Join(t.TempDir(), "experience.ndjson")
	if err := os.WriteFile(file, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	said := run("rr_1", "--out", file, "--output", "json")
	if want := fmt.Sprintf(`{"request":"rr_1","file":%q,"steps":9,"episodes":4,"incomplete":1,"stepless":0}`+"\n", file); said.code != exitFine || said.err != "" || said.out != want {
		t.Errorf("exit %d: %s%s", said.code, said.err, said.out)
	}
	if testkit.Read(t, file) != piped.out {
		t.Error("the file is not what is piped")
	}

	for data, says := range map[string]string{"baseline": "5 steps of 2 episodes, 0 of them incomplete", "drifted": "4 steps of 2 episodes, 1 of them incomplete"} {
		got := run("rr_1", "--data", data)
		if got.code != exitFine || got.err != says+"\n" || strings.Count(got.out, `{"data":"`+data+`"`) != strings.Count(got.out, "\n") {
			t.Errorf("%s: exit %d: %s%s", data, got.code, got.err, got.out)
		}
	}
	const without = "The request contains no offsets for the baseline data, so the output contains no such data.\n"
	if got := run("rr_person"); got.code != exitFine || strings.Count(got.out, "\n") != 4 || !strings.HasPrefix(got.err, without) {
		t.Errorf("without a baseline: exit %d: %s%s", got.code, got.err, got.out)
	}
	if got := run("rr_person", "--data", "drifted"); got.code != exitFine || strings.Count(got.out, "\n") != 4 {
		t.Errorf("exit %d: %s%s", got.code, got.err, got.out)
	}
}

// An order that was cut early can be exported as far as the topic reaches, or to a time; it never becomes shorter.
func TestRetrainExportReachesFurther(t *testing.T) {
	flags := exporting(t)
	now := time.Now()
	for _, tt := range []struct {
		until string
		steps int
	}{
		{"", 2}, {"now", 4}, {now.Add(time.Hour).Format(time.RFC3339), 4}, {now.Add(-time.Hour).Format(time.RFC3339), 2},
	} {
		args := append([]string{"retrain", "export", "rr_early"}, flags...)
		if tt.until != "" {
			args = append(args, "--until", tt.until)
		}
		got := runVerb(args...)
		if drifted := strings.Count(got.out, `{"data":"drifted"`); got.code != exitFine || drifted != tt.steps || strings.Count(got.out, "\n") != 5+tt.steps {
			t.Errorf("until %q: exit %d, %d drifted steps, want %d: %s%s", tt.until, got.code, drifted, tt.steps, got.err, got.out)
		}
	}
}

func TestRetrainExportAsParquet(t *testing.T) {
	flags, docs := exporting(t), testkit.Read(t, "../../../../docs/training-data.md")
	t.Chdir(t.TempDir())
	got := runVerb(append([]string{"retrain", "export", "rr_2", "--format", "parquet", "--out", "experience.parquet"}, flags...)...)
	if got.code != exitFine || got.err != "" || got.out != "experience.parquet: 9 steps of 4 episodes, 1 of them incomplete\n" {
		t.Fatalf("exit %d: %s%s", got.code, got.err, got.out)
	}
	if !strings.Contains(docs, " --format parquet --out experience.parquet\n"+got.out) {
		t.Errorf("docs/training-data.md does not have %q", got.out)
	}
	type step struct {
		Data     string
		Complete bool      `parquet:"episode_complete"`
		Action   []float64 `parquet:"action,list"`
	}
	steps, err := parquet.ReadFile[step]("experience.parquet")
	if err != nil || len(steps) != 9 || steps[0].Action[0] != 2 {
		t.Errorf("%+v: %v", steps, err)
	}
	if left, err := filepath.Glob("*"); err != nil || len(left) != 1 {
		t.Errorf("left %v: %v", left, err)
	}
}

func TestRetrainExportSaysWhatIsWrong(t *testing.T) {
	flags := exporting(t)
	noConfig := flags[:len(flags)-2]
	file := filepath.Join(t.TempDir(), "experience.ndjson")
	for name, tt := range map[string]struct {
		args  []string
		flags []string
		says  string
	}{
		"no configuration": {[]string{"rr_1"}, noConfig, "--config is required: pass the configuration file with the ingest section for the telemetry"},
		"no request":       {nil, flags, "0 arguments given; usage: rewardwatch "},
		"unknown request":  {[]string{"rr_unknown"}, flags, "rr_unknown: request not found"},
		"unknown data":     {[]string{"rr_1", "--data", "all"}, flags, `invalid argument "all" for "--data" flag: must be drifted, baseline or both`},
		"unknown format":   {[]string{"rr_1", "--format", "csv"}, flags, `invalid argument "csv" for "--format" flag: must be ndjson or parquet`},
		"unknown time":     {[]string{"rr_1", "--until", "tomorrow"}, flags, `invalid argument "tomorrow" for "--until" flag: must be now or a time such as "2026-11-20 18:00:00 UTC" or 2026-11-20T18:00:00Z`},
		"until of nothing": {[]string{"rr_1", "--data", "baseline", "--until", "now"}, flags, "--until extends the drifted data and cannot be combined with --data baseline"},
		"no offsets":       {[]string{"rr_none"}, flags, "request rr_none contains no offsets for the baseline or the drifted data"},
		"no incident":      {[]string{"rr_weekly"}, flags, "request rr_weekly was opened by a schedule, not for an incident, so it contains no offsets. "},
		"no origin":        {[]string{"rr_hand"}, flags, "request rr_hand was opened without an incident, so it contains no offsets. "},
		"a rollback":       {[]string{"rr_back"}, flags, "request rr_back is a rollback and has no data"},
		"not the offsets":  {[]string{"rr_person", "--data", "baseline"}, flags, "request rr_person contains no offsets for the baseline data"},
		"gone": {
			[]string{"rr_gone"}, flags, "export request rr_gone: offsets 7 to 9 of partition 0 of topic agent-telemetry: the topic does not contain these offsets, only 0 to 8\n" +
				"offsets 100 to 200 of partition 0 of topic agent-telemetry: the topic does not contain these offsets, only 0 to 8\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := runVerb(append(append([]string{"retrain", "export", "--out", file}, tt.args...), tt.flags...)...)
			code := exitError
			if strings.HasPrefix(name, "no incident") || name == "no origin" { // a pipeline continues without the data
				code = exitOpen
			}
			if got.code != code || got.out != "" || !strings.Contains(got.err, tt.says) {
				t.Errorf("exit %d, out %q, says %q, want %q", got.code, got.out, got.err, tt.says)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) > 0 {
				t.Errorf("left %v: %v", left, err)
			}
		})
	}
	if got := runVerb(append([]string{"retrain", "export", "rr_gone"}, flags...)...); got.code != exitError || got.out != "" {
		t.Errorf("exit %d, wrote %q", got.code, got.out)
	}
}

func TestRetrainExportHelp(t *testing.T) {
	help, _, found := strings.Cut(runVerb("retrain", "export", "--help").out, "\nGlobal Flags:")
	if !found {
		t.Error("the flags of all verbs are missing")
	}
	testkit.SameAsFile(t, filepath.Join("testdata", "verbs", "retrain_export_help.txt"), help)
}
