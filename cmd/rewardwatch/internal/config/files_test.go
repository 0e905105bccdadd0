package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
http: {token_file: `+token+`, status_token_file: `+loose+`, web_config_file: `+write("web.yml", "basic_auth_users: {ann: plain}", 0o644)+`}
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
	want := []string{"ingest.kafka.tls.ca_file", "ingest.kafka.sasl.password_file", "http.status_token_file", "http.web_config_file", "retrain.targets[0].secret_file"}
	if !slices.Equal(got, want) {
		t.Errorf("missing are %q, want %q", got, want)
	}
	if _, err := MissingFiles(filepath.Join(dir, "none.yml")); err == nil {
		t.Error("a configuration that is missing itself is no error")
	}
}

// A trigger whose recipe orders something else than a retraining needs policies that learn all the time.
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
