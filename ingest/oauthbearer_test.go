package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each connection reads the token again, so a renewed token applies without a restart.
func TestOAuthBearerReadsItsTokenForEachConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := SASLConfig{Mechanism: SASLOAuthBearer, TokenFile: file}
	if _, err := cfg.Load(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("without a token: %v", err)
	}
	write("one")
	mechanism, err := cfg.Load()
	if err != nil || mechanism.Name() != "OAUTHBEARER" {
		t.Fatal(mechanism, err)
	}
	for _, token := range []string{"one", "two"} {
		write(token)
		session, first, err := mechanism.Start(t.Context())
		if want := "n,,\x01auth=Bearer " + token + "\x01\x01"; err != nil || string(first) != want {
			t.Errorf("%q, %v; want %q", first, err, want)
		}
		if done, answer, err := session.Next(t.Context(), nil); !done || answer != nil || err != nil {
			t.Errorf("%v, %q, %v", done, answer, err)
		}
		if secret, err := cfg.Secret(); secret != token || err != nil {
			t.Errorf("%q, %v", secret, err)
		}
		if _, _, err := session.Next(t.Context(), []byte(`{"status":"invalid_token"}`)); err == nil || !strings.Contains(err.Error(), "invalid_token") {
			t.Errorf("a refused token: %v", err)
		}
	}
	write("one\ntwo")
	if _, _, err := mechanism.Start(t.Context()); err == nil || strings.Contains(err.Error(), "two") {
		t.Errorf("two lines: %v", err)
	}
}

func TestOAuthBearerNeedsATokenFile(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  SASLConfig
		want string
	}{
		"good":                    {SASLConfig{Mechanism: SASLOAuthBearer, TokenFile: "t"}, ""},
		"none":                    {SASLConfig{Mechanism: SASLOAuthBearer}, "token_file"},
		"a user":                  {SASLConfig{Mechanism: SASLOAuthBearer, TokenFile: "t", Username: "u"}, "token_file"},
		"a password":              {SASLConfig{Mechanism: SASLOAuthBearer, TokenFile: "t", PasswordEnv: "p"}, "token_file"},
		"of another mechanism":    {SASLConfig{Mechanism: SASLPlain, Username: "u", PasswordFile: "p", TokenFile: "t"}, "token_file"},
		"without a mechanism":     {SASLConfig{TokenFile: "t"}, "mechanism"},
		"of MSK":                  {SASLConfig{Mechanism: SASLMSKIAM}, ""},
		"of MSK with a user":      {SASLConfig{Mechanism: SASLMSKIAM, Username: "u"}, "mechanism"},
		"of an unknown mechanism": {SASLConfig{Mechanism: "KERBEROS", Username: "u", PasswordFile: "p"}, "mechanism"},
	} {
		var got []string
		tt.cfg.check(func(key, _ string) { got = append(got, key) })
		if strings.Join(got, ",") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
