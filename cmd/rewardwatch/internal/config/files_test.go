package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

func TestMissingFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	token := write("token", strings.Repeat("t", 32), 0o600)
	loose := write("loose", strings.Repeat("t", 32), 0o644)
	file := write("rewardwatch.yml", `
ingest: {kafka: {tls: {enabled: true, ca_file: `+dir+`/ca.pem}, sasl: {mechanism: plain, username: u, password_file: `+dir+`/password}}}
http: {token_file: `+token+`, status_token_file: `+loose+`, telemetry_token_file: `+write("short", "12345", 0o600)+`, web_config_file: `+write("web.yml", "basic_auth_users: {ann: plain}", 0o644)+`}
retrain: {targets: [{name: trainer, webhook: "https://trainer.example/", secret_file: `+dir+`/secret}]}
`, 0o600)
	problems, err := MissingFiles(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.Path)
		if p.Line < 2 || p.Message == "" {
			t.Errorf("%s has no place or no message", p)
		}
	}
	want := []string{"ingest.kafka.tls.ca_file", "ingest.kafka.sasl.password_file", "http.status_token_file", "http.telemetry_token_file", "http.web_config_file", "retrain.targets[0].secret_file"}
	if !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
	if _, err := MissingFiles(filepath.Join(dir, "none.yml")); err == nil {
		t.Error("a configuration that is missing itself is no error")
	}
}

// If people put files next to the configuration, as with other programs, an error says why they are not found.
func TestRelativePathsSayWhereTheyStart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rewardwatch.yml")
	if err := os.WriteFile(file, []byte("http: {token_file: token, web_config_file: web.yml, status_token_file: "+dir+"/none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	problems, err := MissingFiles(file)
	if err != nil || len(problems) != 3 {
		t.Fatalf("%v, %v", problems, err)
	}
	for _, p := range problems {
		if says := strings.Contains(p.Message, "working directory"); says != (p.Path != "http.status_token_file") {
			t.Errorf("%s", p)
		}
	}
}

// A trigger whose recipe orders something other than a retraining requires policies that learn continuously.
func TestWarningsOfRefusedOrders(t *testing.T) {
	dir := t.TempDir()
	text := `{order: freeze, contract: {objective: o, hypothesis: h, expected: "mean return > 1 over 100 episodes within 24h", owner: w}}`
	if err := os.WriteFile(filepath.Join(dir, "stop.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ policies, trigger, want string }{
		"all learn":           {`[{match: "*", learning: continuous}]`, "", ""},
		"the default":         {`[{match: "*"}]`, "", "*"},
		"versions":            {`[{match: "*", learning: versions}]`, "", "*"},
		"only some":           {`[{match: "ads-*", learning: continuous}, {match: "*"}]`, "", "*"},
		"not of the trigger":  {`[{match: "ads-*", learning: continuous}, {match: "*"}]`, `policies: ["ads-*"], `, ""},
		"a name of the first": {`[{match: "ads-*", learning: continuous}, {match: "*"}]`, `policies: [ads-1], `, ""},
		"a name of the rest":  {`[{match: "ads-*", learning: continuous}, {match: "*"}]`, `policies: [ads-1, b], `, "*"},
		"narrower entry":      {`[{match: ads-1}, {match: "*", learning: continuous}]`, `policies: ["ads-*"], `, "ads-1"},
	} {
		file := filepath.Join(t.TempDir(), "rewardwatch.yml")
		err := os.WriteFile(file, []byte("policies: "+tt.policies+"\nretrain:\n  recipes: "+dir+"\n  targets: [{name: t, kafka: {topic: orders}}]\n"+
			"  triggers: [{on: incident, "+tt.trigger+"recipe: stop, target: t}]\n"), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := LoadForService(file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		problems, err := Warnings(file)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tt.want == "" && len(problems) == 0:
		case tt.want == "" || len(problems) != 1 || problems[0].Path != "retrain.triggers[0].recipe" || problems[0].Line != 5 ||
			!strings.Contains(problems[0].Message, `match "`+tt.want+`"`):
			t.Errorf("%s: %v, want one about %q", name, problems, tt.want)
		}
	}
}

// There is a warning for secrets that cross a network without encryption, but not for those that stay on this machine
// or are encrypted.
func TestSecretsInClearTextAreWarnedOf(t *testing.T) {
	secret := testkit.WriteFile(t, "s3cr3t")
	for text, want := range map[string][]string{
		"alerts: {alertmanager: {urls: ['http://am:9093', 'http://127.0.0.1:9093', 'https://am:9093'], token_file: FILE}}":         {"alerts.alertmanager.urls[0]"},
		"alerts: {alertmanager: {urls: ['http://am:9093'], username: ann, password_file: FILE}}":                                   {"alerts.alertmanager.urls[0]"},
		"alerts: {alertmanager: {urls: ['http://am:9093']}}":                                                                       nil,
		"retrain: {targets: [{name: a, argo_events: {url: 'http://argo:12000/x', token_file: FILE}}]}":                             {"retrain.targets[0]"},
		"retrain: {targets: [{name: a, argo_events: {url: 'http://[::1]:12000/x', token_file: FILE}}]}":                            nil,
		"retrain: {targets: [{name: a, argo_events: {url: 'https://argo/x', token_file: FILE}}]}":                                  nil,
		"retrain: {targets: [{name: a, cloudevents: {url: 'http://events/'}}]}":                                                    nil,
		"ingest: {kafka: {brokers: ['k:9092'], sasl: {mechanism: PLAIN, username: a, password_file: FILE}}}":                       {"ingest.kafka.sasl.mechanism"},
		"ingest: {kafka: {brokers: ['localhost:9092'], sasl: {mechanism: PLAIN, username: a, password_file: FILE}}}":               nil,
		"ingest: {kafka: {brokers: ['k:9092'], sasl: {mechanism: OAUTHBEARER, token_file: FILE}}}":                                 {"ingest.kafka.sasl.mechanism"},
		"ingest: {kafka: {brokers: ['k:9092'], sasl: {mechanism: SCRAM-SHA-256, username: a, password_file: FILE}}}":               nil,
		"ingest: {kafka: {brokers: ['k:9092'], tls: {enabled: true}, sasl: {mechanism: PLAIN, username: a, password_file: FILE}}}": nil,
	} {
		file := testkit.WriteFile(t, strings.ReplaceAll(text, "FILE", secret))
		if _, err := LoadForService(file); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		problems, err := Warnings(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

// The service writes this file before it reads it, so it need not exist.
func TestFilesOfSecretsNeedNotExist(t *testing.T) {
	dir := t.TempDir()
	file := testkit.WriteFile(t, "http: {token_file: "+dir+"/token, status_token_file: "+dir+"/status}\nsecrets: [{file: "+dir+"//token, command: [cat, x]}]\n")
	problems, err := MissingFiles(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 || problems[0].Path != "http.status_token_file" {
		t.Errorf("%v", problems)
	}
}
