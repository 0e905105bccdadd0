package cli

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// The service obtains its token with a command before it reads it. When the secret manager has another one, that one is
// used without a restart.
func TestServiceFetchesItsSecrets(t *testing.T) {
	cfgFile, _ := localConfig(t)
	dir := t.TempDir()
	source, file := filepath.Join(dir, "source"), filepath.Join(dir, "token")
	first, second := strings.Repeat("first-", 6), strings.Repeat("second-", 6)
	set := func(token string) {
		t.Helper()
		next := source + ".next"
		if err := errors.Join(os.WriteFile(next, []byte(token), 0o600), os.Rename(next, source)); err != nil {
			t.Fatal(err)
		}
	}
	set(first)
	text := strings.Replace(testkit.Read(t, cfgFile), "http: {", "secrets: [{file: "+file+", command: [cat, "+source+"], every: 1s}]\nhttp: {token_file: "+file+", ", 1)
	if err := os.WriteFile(cfgFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startService(t, cfgFile)
	status := func(token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.address+"/api/v1/sessions", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // not read
		return answer.StatusCode
	}
	if got := status(first); got != http.StatusOK {
		t.Fatalf("the token gives %d", got)
	}
	set(second)
	testkit.Eventually(t, "the second token in the file", func() bool { return testkit.Read(t, file) == second })
	if got := status(second); got != http.StatusOK {
		t.Errorf("the second token gives %d", got)
	}
	if got := status(first); got != http.StatusUnauthorized {
		t.Errorf("the first token gives %d", got)
	}
	p.interrupt(t)
}

// Without a secret, the service does not start, and reports which one is missing.
func TestServiceWithoutASecretDoesNotStart(t *testing.T) {
	cfgFile, _ := localConfig(t)
	text := testkit.Read(t, cfgFile) + "secrets: [{file: " + filepath.Join(t.TempDir(), "token") + ", env: REWARDWATCH_TEST_NO_SUCH_SECRET}]\n"
	if err := os.WriteFile(cfgFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "run", "--config", cfgFile)
	cmd.Env = append(os.Environ(), asService+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "REWARDWATCH_TEST_NO_SUCH_SECRET is empty") {
		t.Errorf("the service ends with %v and says\n%s", err, out)
	}
}
