package secrets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rewardwatch/rewardwatch/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// of returns a secret obtained by a shell script.
func of(file, script string) Secret {
	return Secret{File: file, Command: []string{"/bin/sh", "-c", script}, Every: model.Duration(10 * time.Millisecond), Timeout: model.Duration(5 * time.Second)}
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := ingest.ReadSecretFile(file) // this refuses a file that others can read
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSecretsAreWritten(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("REWARDWATCH_TEST_SECRET", "of the environment")
	wide := filepath.Join(dir, "wide")
	if err := os.WriteFile(wide, []byte("same"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	err := Write(t.Context(), []Secret{of(a, "echo of a command"), {File: b, Env: "REWARDWATCH_TEST_SECRET"}, of(wide, "printf same")})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{a: "of a command\n", b: "of the environment", wide: "same"} {
		if got := content(t, file); got != want {
			t.Errorf("%s has %q", file, got)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("the directory has %v, %v", files, err)
	}
}

// No error contains the output of a command, and no failure changes the file.
func TestUnavailableSecrets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kept")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	slow := of(file, "echo s3cr3t; exec sleep 60")
	slow.Timeout = model.Duration(50 * time.Millisecond)
	none := of(file, "")
	none.Command = []string{filepath.Join(dir, "no such program")}
	for name, s := range map[string]Secret{
		"it fails":          of(file, "echo s3cr3t; echo s3cr3t >&2; exit 3"),
		"it writes nothing": of(file, "echo"),
		"it writes a lot":   of(file, "head -c 70000 /dev/zero | tr '\\0' s3cr3t"),
		"it is slow":        slow,
		"no program":        none,
		"no directory":      of(filepath.Join(dir, "none", "file"), "echo s3cr3t"),
		"no variable":       {File: file, Env: "REWARDWATCH_TEST_NO_SUCH_SECRET"},
	} {
		err := Write(t.Context(), []Secret{s})
		if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
		if got := content(t, file); got != "before" {
			t.Errorf("%s: the file has %q", name, got)
		}
	}
}

// A secret that its manager replaces is soon in the file; while the manager fails, the file keeps the last one.
func TestSecretsAreRenewed(t *testing.T) {
	dir := t.TempDir()
	file, source := filepath.Join(dir, "file"), filepath.Join(dir, "source")
	set := func(text string) {
		t.Helper()
		next := source + ".next"
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, source)); err != nil {
			t.Fatal(err)
		}
	}
	ask := []Secret{of(file, "exec cat '"+source+"'")}
	set("first")
	if err := Write(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	var said safeBuffer
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	stale := NewStale()
	go func() { Run(ctx, ask, stale, zerolog.New(&said)); close(done) }()
	until := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	set("second")
	until("the file is not renewed", func() bool { return content(t, file) == "second" })
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	until("a failure is not logged", func() bool { return strings.Contains(said.String(), "failed to renew a secret") })
	until("a failure is not counted", func() bool { return testutil.ToFloat64(stale) == 1 })
	lines := strings.Count(said.String(), "\n")
	until("it does not fail again", func() bool { return strings.Count(said.String(), "\n") > lines+1 })
	if got := content(t, file); got != "second" || testutil.ToFloat64(stale) != 1 {
		t.Errorf("after failures the file has %q, and %g secrets are stale", got, testutil.ToFloat64(stale))
	}
	set("third")
	until("the file is not renewed after a failure", func() bool { return content(t, file) == "third" })
	until("the secret remains stale", func() bool { return testutil.ToFloat64(stale) == 0 })
	cancel()
	<-done
	if strings.Contains(said.String(), "second") || strings.Contains(said.String(), "third") {
		t.Errorf("the log has a secret: %s", said.String())
	}
}

// safeBuffer is a log that can be read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
