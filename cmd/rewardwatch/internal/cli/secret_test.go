package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	for kind, fits := range map[string]func(line string) bool{
		"token":   func(line string) bool { return len(line) >= 32 },
		"webhook": func(line string) bool { return strings.HasPrefix(line, "whsec_") },
	} {
		file := filepath.Join(dir, kind)
		if got := runVerb("secret", "--kind", kind, file); got.code != exitFine || got.out != "created "+file+"\n" {
			t.Fatalf("exit %d: %q %q", got.code, got.out, got.err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if line := strings.TrimSuffix(string(text), "\n"); !fits(line) || strings.ContainsAny(line, " \n") {
			t.Errorf("a %s is %q", kind, line)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if got := runVerb("secret", "--kind", kind, file); got.code != exitError || !strings.Contains(got.err, file+" already exists") {
			t.Errorf("a file that exists: exit %d, %q", got.code, got.err)
		}
		if again, _ := os.ReadFile(file); string(again) != string(text) {
			t.Error("the secret of an existing file was replaced")
		}
	}
	if got := runVerb("secret", "--kind", "pin", filepath.Join(dir, "pin")); got.code != exitError || !strings.Contains(got.err, `"pin"`) {
		t.Errorf("an unknown kind: exit %d, %q", got.code, got.err)
	}
}

// The service accepts what the verb has created, for each key that names such a file.
func TestValidateWarnsOfMissingFiles(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []string{"token", "webhook"} {
		runVerb("secret", "--kind", kind, filepath.Join(dir, kind))
	}
	config := func(secret string) string {
		return testkit.WriteFile(t, "http: {token_file: "+dir+"/token}\n"+
			"retrain: {targets: [{name: trainer, webhook: \"https://trainer.example/\", secret_file: "+dir+"/"+secret+"}]}\n")
	}
	if got := runVerb("validate", config("webhook")); got.code != exitFine || got.out != "ok\n" {
		t.Errorf("exit %d: %q %q", got.code, got.out, got.err)
	}
	file := config("nothing")
	got := runVerb("validate", file)
	if want := file + ":2:87: warning: retrain.targets[0].secret_file: stat " + dir + "/nothing: no such file or directory\nok\n"; got.code != exitFine || got.out != want {
		t.Errorf("exit %d: %q %q, want %q", got.code, got.out, got.err, want)
	}
}
