package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rewardwatch/rewardwatch/alerts"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/testkit"
)

// examplesDir contains the examples, each in a separate directory.
const examplesDir = "../../../../docs/examples"

// useExamples copies the examples to docs/examples of a new working directory, and adds rewardwatch to the PATH.
func useExamples(t *testing.T) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "docs", "examples"), os.DirFS(examplesDir)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec %q \"$@\"\n", asService, self)
	if err := os.WriteFile(filepath.Join(bin, "rewardwatch"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Chdir(dir)
}

// runPage runs the commands of a page and returns the page with their output. replaced holds pairs of text in the page
// and its replacement.
func runPage(t *testing.T, page string, replaced ...string) string {
	t.Helper()
	var b strings.Builder
	console, dir, real := false, "", strings.NewReplacer(replaced...)
	for line := range strings.Lines(page) {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case !console:
			b.WriteString(line)
			console, dir = line == "```console\n", "."
		case is:
			b.WriteString(line)
			if to, changes := strings.CutPrefix(command, "cd "); changes {
				dir = strings.TrimSpace(to)
			} else {
				b.WriteString(shell(t, dir, real.Replace(command)))
			}
		case line == "```\n":
			b.WriteString(line)
			console = false
		}
	}
	return b.String()
}

// shell runs a command, which may find drift, and returns its output.
func shell(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || exit.ExitCode() != exitDrift) {
		t.Fatalf("%s: %v\n%s", strings.TrimSpace(command), err, out)
	}
	return string(out)
}

// example is a directory of docs/examples.
type example struct {
	name   string
	files  []string // of telemetry
	policy string
	change int64    // number of the episode, decision or block of the change
	near   int64    // maximum distance between it and onsets
	alarms []string // signals with their horizon, in the order of their alarms
	cause  alerts.Cause
	unsure string // horizon of the incident without a cause, because its reward falls before its clicks do
}

// The README of each example shows the output of its commands and the current configuration, and the alarms are those
// of the change. Other tests run the same verbs under the race detector, where these take minutes.
func TestSimExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU")
	}
	for _, e := range []example{
		{
			name: "late-clicks", files: []string{"decisions.ndjson", "clicks.ndjson"}, policy: "home-feed", change: 6000, near: 50,
			alarms: []string{"outcome.click@5m", "reward@5m", "reward@1m", "outcome.click@1m", "outcome.click", "reward"},
			cause:  alerts.CauseEnvironment, unsure: "1m",
		},
		{
			name: "cartpole", files: []string{"telemetry.ndjson.zst"}, policy: "cartpole", change: 436, near: 20,
			alarms: []string{"return"}, cause: alerts.CauseEnvironment,
		},
		{
			name: "llm-agent", files: []string{"agent-logs.ndjson"}, policy: "support-agent", change: 900, near: 5,
			alarms: []string{"reward"}, cause: alerts.CauseRewardFunction,
		},
		{
			name: "autoscaler", files: []string{"decisions.ndjson"}, policy: "scaler", change: 2524, near: 50,
			alarms: []string{"law.dynamics", "action", "reward", "observation.queue"}, cause: alerts.CauseEnvironment,
		},
	} {
		t.Run(e.name, func(t *testing.T) {
			readme, err := filepath.Abs(filepath.Join(examplesDir, e.name, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			page := testkit.Read(t, readme)
			useExamples(t)
			t.Chdir(filepath.Join("docs", "examples", e.name))
			testkit.SameAsFile(t, readme, runPage(t, page))
			if cfg := testkit.Read(t, "rewardwatch.yml"); !strings.Contains(page, "```yaml\n"+cfg+"```\n") {
				t.Errorf("%s does not show rewardwatch.yml", readme)
			}
			e.check(t)
		})
	}
}

// check replays the telemetry of an example.
func (e example) check(t *testing.T) {
	t.Helper()
	code, out := verb(t, append([]string{"replay", "--output", "json", "--config", "rewardwatch.yml"}, e.files...)...)
	if code != exitDrift {
		t.Fatalf("exit %d\n%s", code, out)
	}
	r := parseReplay(t, out)
	var alarms []string
	for _, a := range r.alarms {
		alarms = append(alarms, strings.TrimSuffix(a.Signal+"@"+a.Group["horizon"], "@"))
		if a.Policy != e.policy || a.State != "firing" || a.Unit < e.change || max(a.OnsetUnit-e.change, e.change-a.OnsetUnit) > e.near {
			t.Errorf("%s %s of %s since %d, found at %d; the change is at %d", a.State, a.Signal, a.Policy, a.OnsetUnit, a.Unit, e.change)
		}
	}
	if !slices.Equal(alarms, e.alarms) || len(r.faults) > 0 {
		t.Errorf("alarms of %v and %d faults, want %v and none", alarms, len(r.faults), e.alarms)
	}
	for _, i := range r.summary.Incidents {
		want := e.cause
		if e.unsure != "" && i.Group["horizon"] == e.unsure {
			want = alerts.CauseUnknown
		}
		if i.Cause != want {
			t.Errorf("the cause of the incident of %v is %s, not %s", i.Group, i.Cause, want)
		}
	}
}
