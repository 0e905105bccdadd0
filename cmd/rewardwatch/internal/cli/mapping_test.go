package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeFile writes a file for a test, and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const shopConfig = `
ingest:
  kafka:
    topics:
      - topic: decisions
        mapping:
          take: [{path: type, in: [shown]}]
          fields:
            policy: {value: shop}
            ts: {path: at_ms, unit: ms}
            action: item.id
            terminated: {value: true}
            reward: {path: clicked, default: 0, choices: {"yes": 1}}
            episode_id: %s
`

// shopRecords returns a recommender's telemetry. If it drifts, clicks become rare in its second half.
func shopRecords(n int, drifts bool) string {
	var b strings.Builder
	for i := range n {
		clicked := ""
		if i%3 == 0 && (!drifts || i < n*2/3) {
			clicked = `,"clicked":"yes"`
		}
		fmt.Fprintf(&b, `{"type":"shown","at_ms":%d,"item":{"id":"i%d"},"request":{"id":"r-%d"}%s}`+"\n", 1795168800000+int64(i)*1000, i*7%5, i, clicked)
		if i%10 == 0 {
			b.WriteString(`{"type":"ping","at_ms":"never"}` + "\n")
		}
	}
	return b.String()
}

func TestValidateReadsASample(t *testing.T) {
	good := writeFile(t, "good.yml", fmt.Sprintf(shopConfig, "request.id"))
	records := writeFile(t, "r.ndjson", shopRecords(30, false)+`{"type":"shown","at_ms":true}`+"\n")
	stdout, stderr, code := commandLine(t, "validate", "--sample", records, good)
	want := "Read 31 records: 30 accepted, 1 rejected; the mapping skips 3 others.\n" +
		"  wrong_type  1  first at record 33: column 25: wrong_type: ts from at_ms: expected an RFC 3339 string or a Unix time\n" +
		"\n  " + `{"type":"shown","at_ms":1795168800000,"item":{"id":"i0"},"request":{"id":"r-0"},"clicked":"yes"}` +
		"\n  -> " + `{"ts":"2026-11-20T10:00:00Z","policy":"shop","episode_id":"r-0","action":"i0","reward":1,"terminated":true}` + "\n"
	if code != exitFine || !strings.HasPrefix(stdout, want) || strings.Count(stdout, "\n  -> ") != 10 {
		t.Errorf("exit %d, %s\n%s\nwant\n%s", code, stderr, stdout, want)
	}

	typo := writeFile(t, "typo.yml", fmt.Sprintf(shopConfig, "request.idd"))
	stdout, _, code = commandLine(t, "validate", "--sample", records, typo)
	if code != exitError || !strings.Contains(stdout, "episode_id has no value in any record: there is no data at request.idd\n") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	stdout, _, code = commandLine(t, "--output", "json", "validate", "--sample", records, typo)
	var v validation
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != exitError || v.OK || v.Sample.NotTaken != 3 || v.Sample.Missing[0].Field != "episode_id" {
		t.Errorf("exit %d, %v, %s", code, err, stdout)
	}

	none := writeFile(t, "none.ndjson", `{"type":"ping"}`+"\n")
	stdout, _, code = commandLine(t, "validate", "--sample", none, good)
	if code != exitError || stdout != "Read 0 records: 0 accepted, 0 rejected; the mapping skips 1 others.\n" {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if _, stderr, code = commandLine(t, "validate", "--sample", none, "--topic", "clicks", good); code != exitError || !strings.Contains(stderr, `unknown topic "clicks"; the configuration has decisions`) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// The findings in mapped records are those in the same records as telemetry v1.
func TestSimReplayReadsMappedFiles(t *testing.T) {
	cfg := writeFile(t, "shop.yml", fmt.Sprintf(shopConfig, "request.id"))
	records := shopRecords(9000, true)
	var same strings.Builder
	for _, line := range strings.Split(records, "\n") {
		var r struct {
			Type    string
			AtMS    json.RawMessage `json:"at_ms"`
			Item    struct{ ID string }
			Request struct{ ID string }
			Clicked string
		}
		if line == "" || json.Unmarshal([]byte(line), &r) != nil || r.Type != "shown" {
			continue
		}
		fmt.Fprintf(&same, `{"policy":"shop","ts":%s,"action":%q,"reward":%d,"terminated":true,"episode_id":%q}`+"\n", r.AtMS, r.Item.ID, len(r.Clicked)/3, r.Request.ID)
	}
	mapped, _, code := commandLine(t, "--output", "json", "replay", "--config", cfg, writeFile(t, "mapped.ndjson", records))
	if code != exitDrift {
		t.Fatalf("exit %d, %s", code, mapped)
	}
	plain, _, code := commandLine(t, "--output", "json", "replay", writeFile(t, "plain.ndjson", same.String()))
	if code != exitDrift {
		t.Fatalf("exit %d, %s", code, plain)
	}
	alarms := func(text string) (out []string) {
		for _, line := range strings.Split(text, "\n") {
			var a struct {
				Event, Signal, ID string
				Unit              int64
			}
			if json.Unmarshal([]byte(line), &a) == nil && a.Event == "alarm" {
				out = append(out, fmt.Sprint(a.Signal, " ", a.Unit))
			}
		}
		return out
	}
	if got, want := alarms(mapped), alarms(plain); len(got) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("alarms %v\nof telemetry v1 %v", got, want)
	}
	if !strings.Contains(mapped, `"not_taken":900`) {
		t.Errorf("%s", mapped[strings.LastIndex(mapped[:len(mapped)-1], "\n"):])
	}
}

// A baseline extracted from mapped records is telemetry v1.
func TestBaselineOfMappedFiles(t *testing.T) {
	cfg := writeFile(t, "shop.yml", fmt.Sprintf(shopConfig, "request.id")+"policies: [{match: '*', baseline: {units: 200}}]\n")
	out := filepath.Join(t.TempDir(), "baseline.ndjson")
	if stdout, stderr, code := commandLine(t, "baseline", "create", "--config", cfg, "-o", out, writeFile(t, "r.ndjson", shopRecords(900, false))); code != exitFine {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	stdout, stderr, code := commandLine(t, "--output", "json", "inspect", out)
	if code != exitFine || !strings.Contains(stdout, `"refused":[]`) || !strings.Contains(stdout, `"policy":"shop"`) {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// The proposal of inspect for records of another shape is valid, and finds the drift in them without manual changes.
func TestSimInspectProposesAMappingThatWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for name, text := range map[string]string{
		"a recommender": shopRecords(9000, true),
		"clicks that come later": func() string {
			var b strings.Builder
			for i := range 9000 {
				at := 1795168800 + i
				fmt.Fprintf(&b, `{"kind":"impression","req":{"id":"r%d"},"user":{"id":"u%d"},"unix":%d,"placed":{"item":"i%d"}}`+"\n", i, i%50, at, i%5)
				if i > 20 && i%3 == 0 && (i < 6000 || i%12 == 0) {
					fmt.Fprintf(&b, `{"kind":"click","request":"r%d","unix":%d}`+"\n", i-20, at)
				}
			}
			return b.String()
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			records, proposed := writeFile(t, "shop.ndjson", text), filepath.Join(t.TempDir(), "rewardwatch.yml")
			stdout, stderr, code := commandLine(t, "inspect", "--propose", proposed, records)
			if code != exitFine || !strings.Contains(stdout, "PROPOSED MAPPING") || strings.Count(stdout, "\n  -> ") != 4 {
				t.Fatalf("exit %d, %s\n%s", code, stderr, stdout)
			}
			config, err := os.ReadFile(proposed)
			if err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, code = commandLine(t, "validate", "--sample", records, proposed); code != exitFine {
				t.Fatalf("exit %d, %s%s\n%s", code, stdout, stderr, config)
			}
			if stdout, stderr, code = commandLine(t, "replay", "--config", proposed, records); code != exitDrift || !strings.Contains(stdout, "reward") {
				t.Errorf("exit %d, %s%s\n%s", code, stdout, stderr, config)
			}
			again := filepath.Join(t.TempDir(), "again.yml")
			if stdout, stderr, code = commandLine(t, "inspect", "--config", proposed, "--propose", again, records); code != exitFine {
				t.Fatalf("exit %d, %s%s", code, stdout, stderr)
			}
			if stdout, stderr, code = commandLine(t, "validate", "--sample", records, again); code != exitFine {
				t.Errorf("exit %d, %s%s", code, stdout, stderr)
			}
		})
	}
}
