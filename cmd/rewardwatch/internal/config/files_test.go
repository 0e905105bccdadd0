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
