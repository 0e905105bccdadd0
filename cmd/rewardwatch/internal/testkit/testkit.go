// Package testkit provides helpers that the tests of several packages share.
package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/ingest"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/configuration.md")

// SameAsFile compares text with a golden file, or rewrites the file with -update.
func SameAsFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run `go test -update` in its package and look at the difference.\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

// patience is the time limit for work that takes seconds on an idle machine. Only a failing test waits that long.
const patience = 10 * time.Minute

// Eventually polls until done returns true. Otherwise the test fails and names what it waited for.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s", patience, what)
		case <-poll.C:
		}
	}
}

// Damage flips a bit in the middle of a file, and returns a function that repairs the file.
func Damage(t *testing.T, file string) (mend func()) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	write := func(b []byte) {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(damaged)
	return func() { write(whole) }
}

// WriteConfig writes a configuration file and returns its path.
func WriteConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rewardwatch.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Read returns the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// DecisionOf returns a decision made by alice.
func DecisionOf(kind alerts.DecisionKind, until time.Time) alerts.Decision {
	return alerts.Decision{Kind: kind, By: "alice", Why: "known", At: time.Now(), Until: until}
}

// Indented returns JSON with one field per line.
func Indented(t *testing.T, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Size returns the size of a memory benchmark from an environment variable, or a default.
func Size(name string, without int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return without
}

// WriteFile writes a file that only its owner can read, and returns its path.
func WriteFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// HostileNames returns names that a format might handle incorrectly.
func HostileNames() []string {
	return []string{
		`*`, `a"b`, `it's`, "line\nbreak", "tab\tcr\r", `back\slash`, `[a-`, `{x: y}`, `- a`, `# no comment`, `a # b`, `: `, `%x`, `&a`, `*a`,
		`!tag`, `null`, `~`, `1e3`, `true`, ` space `, "\u2028", "\u00a0", "\x1b[2J", "日本語", "🤖", "e\u0301", "\u202eevil", "\ufeff", "a/b?",
		`\*`, `\u0041`, strings.Repeat("x", ingest.MaxString), "---", "...", "|", ">", "@", "`",
	}
}
