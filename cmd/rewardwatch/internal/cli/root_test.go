package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rewardwatch/rewardwatch/alerts/rules"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/app"
	"github.com/rewardwatch/rewardwatch/cmd/rewardwatch/internal/terminal"
	"github.com/rewardwatch/rewardwatch/dashboards"
	"github.com/rewardwatch/rewardwatch/detectors/metrics"
)

// commandLine runs one command line like main, and returns its output and its exit code.
func commandLine(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	code = execute(t.Context(), &terminal.Console{In: strings.NewReader(""), Out: &out, Err: &err}, args)
	return out.String(), err.String(), code
}

func TestCommandLine(t *testing.T) {
	const good, bad = "../config/testdata/checkpoint.good.yml", "../config/testdata/checkpoint.bad.yml"
	const problems = bad + ":1:25: checkpoint.directory: must not be empty\n" + bad + ":1:36: checkpoint.every: must be between 1s and 1h\n"
	tests := map[string]struct {
		args           []string
		code           int
		stdout, stderr string // complete
	}{
		"unknown verb":       {[]string{"watch"}, 2, "", "rewardwatch: unknown command \"watch\" for \"rewardwatch\"\n"},
		"mistyped verb":      {[]string{"incidnt"}, 2, "", "rewardwatch: unknown command \"incidnt\" for \"rewardwatch\" (did you mean incident?)\n"},
		"mistyped subverb":   {[]string{"retrain", "aprove"}, 2, "", "rewardwatch: unknown command \"aprove\" for \"rewardwatch retrain\" (did you mean approve?)\n"},
		"verb with a flag":   {[]string{"incidents", "--server", "http://127.0.0.1:1"}, 2, "", "rewardwatch: unknown command \"incidents\" for \"rewardwatch\" (did you mean incident?)\n"},
		"verb of a subverb":  {[]string{"mute"}, 2, "", "rewardwatch: unknown command \"mute\" for \"rewardwatch\" (did you mean incident mute?)\n"},
		"elsewhere":          {[]string{"retrain", "unmute"}, 2, "", "rewardwatch: unknown command \"unmute\" for \"rewardwatch retrain\" (did you mean incident unmute?)\n"},
		"mistyped leaf":      {[]string{"aprove"}, 2, "", "rewardwatch: unknown command \"aprove\" for \"rewardwatch\" (did you mean retrain approve?)\n"},
		"several":            {[]string{"diff"}, 2, "", "rewardwatch: unknown command \"diff\" for \"rewardwatch\" (did you mean baseline diff or pipeline diff or retrain diff?)\n"},
		"unknown shell":      {[]string{"completion", "nushell"}, 2, "", "rewardwatch: unknown command \"nushell\" for \"rewardwatch completion\"\n"},
		"unknown help":       {[]string{"help", "retrain", "aprove"}, 2, "", "rewardwatch: unknown command \"aprove\" for \"rewardwatch retrain\" (did you mean approve?)\n"},
		"subverb with one":   {[]string{"retrain", "aprove", "rr_1", "--why", "x"}, 2, "", "rewardwatch: unknown command \"aprove\" for \"rewardwatch retrain\" (did you mean approve?)\n"},
		"mistyped flag":      {[]string{"version", "--outptu", "json"}, 2, "", "rewardwatch: unknown flag: --outptu (did you mean --output?)\n"},
		"file as a flag":     {[]string{"validate", "--config", "x"}, 2, "", "rewardwatch: unknown flag: --config; usage: rewardwatch validate [flags] FILE\n"},
		"unknown flag":       {[]string{"version", "--fast"}, 2, "", "rewardwatch: unknown flag: --fast; usage: rewardwatch version [flags]\n"},
		"unknown output":     {[]string{"version", "--output", "xml"}, 2, "", "rewardwatch: invalid argument \"xml\" for \"--output\" flag: must be text or json\n"},
		"unknown level":      {[]string{"version", "--log-level", "loud"}, 2, "", "rewardwatch: invalid argument \"loud\" for \"--log-level\" flag: must be debug, info, warn or error\n"},
		"too few arguments":  {[]string{"validate"}, 2, "", "rewardwatch: 0 arguments given; usage: rewardwatch validate [flags] FILE\n"},
		"validate good":      {[]string{"validate", good}, 0, "ok\n", ""},
		"validate good JSON": {[]string{"validate", good, "--output", "json"}, 0, `{"file":"` + good + `","ok":true,"errors":[],"warnings":[]}` + "\n", ""},
		"validate bad":       {[]string{"validate", bad}, 2, problems, ""},
		"validate bad JSON": {
			[]string{"--output", "json", "validate", bad}, 2, `{"file":"` + bad + `","ok":false,"errors":[` +
				`{"file":"` + bad + `","line":1,"column":25,"path":"checkpoint.directory","message":"must not be empty","text":"` + bad + `:1:25: checkpoint.directory: must not be empty"},` +
				`{"file":"` + bad + `","line":1,"column":36,"path":"checkpoint.every","message":"must be between 1s and 1h","text":"` + bad + `:1:36: checkpoint.every: must be between 1s and 1h"}],"warnings":[]}` + "\n", "",
		},
		"validate nothing": {[]string{"validate", "none.yml"}, 2, "", "rewardwatch: read the configuration: open none.yml: no such file or directory\n"},
		"rules nowhere":    {[]string{"rules"}, 2, "", "rewardwatch: required flag(s) \"directory\" not set\n"},
		"rules bad config": {[]string{"rules", "-o", "never-made", "--config", bad}, 2, "", problems},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := commandLine(t, tt.args...)
			if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
				t.Errorf("exit %d\nstdout %q\nstderr %q\nwant %d\n%q\n%q", code, stdout, stderr, tt.code, tt.stdout, tt.stderr)
			}
		})
	}
}

func TestHelpAndCompletionAreResults(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help", "validate"}, {"completion", "bash"}, {"completion", "fish"}} {
		stdout, stderr, code := commandLine(t, args...)
		if code != exitFine || !strings.Contains(stdout, "rewardwatch") || stderr != "" {
			t.Errorf("%q: exit %d with %d bytes on stdout, stderr %q", args, code, len(stdout), stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	stdout, _, code := commandLine(t, "version", "--output", "json")
	var b app.BuildInfo
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != exitFine {
		t.Fatalf("exit %d, %v", code, err)
	}
	if b.Version == "" || !strings.HasPrefix(b.Go, "go1.") || !strings.Contains(b.Platform, "/") {
		t.Errorf("got %+v", b)
	}
	text, _, _ := commandLine(t, "version")
	if !strings.HasPrefix(text, "rewardwatch "+b.Version+"\nrevision ") {
		t.Errorf("got %q", text)
	}
}

func TestVerbsThatWriteFiles(t *testing.T) {
	const config = "../config/testdata/group_by.good.yml"
	tests := map[string]struct {
		verb  string
		files []string
	}{
		"rules":      {"rules", []string{rules.RulesFile, rules.RulesTestFile}},
		"dashboards": {"dashboards", []string{"fleet.json", "policy.json", "retraining.json", "service.json", dashboards.ConfigMapFile}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plain, grouped := filepath.Join(t.TempDir(), "a", "b"), t.TempDir()
			stdout, stderr, code := commandLine(t, tt.verb, "-o", plain)
			want := ""
			for _, file := range tt.files {
				want += filepath.Join(plain, file) + "\n"
			}
			if code != exitFine || stdout != want || stderr != "" {
				t.Fatalf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if _, stderr, code := commandLine(t, tt.verb, "-o", grouped, "--config", config); code != exitFine {
				t.Fatalf("exit %d, stderr %q", code, stderr)
			}
			before, after := readAll(t, plain, tt.files), readAll(t, grouped, tt.files)
			if strings.Contains(before, "label_region") || !strings.Contains(after, "label_region") {
				t.Error("the labels of group_by are not followed")
			}
		})
	}
}

func TestRulesLeaveOutWhatIsPushed(t *testing.T) {
	all, rest := t.TempDir(), t.TempDir()
	if _, stderr, code := commandLine(t, "rules", "-o", all); code != exitFine {
		t.Fatal(stderr)
	}
	if _, stderr, code := commandLine(t, "rules", "-o", rest, "--config", "../config/testdata/alertmanager.good.yml"); code != exitFine {
		t.Fatal(stderr)
	}
	files := []string{rules.RulesFile}
	if before, after := readAll(t, all, files), readAll(t, rest, files); !strings.Contains(before, metrics.MetricStreamState) || len(after) >= len(before) {
		t.Errorf("%d bytes of rules with push, %d without", len(after), len(before))
	}
}

func readAll(t *testing.T, dir string, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// The help text of a verb fits a small terminal. Flags may be longer, and so may commands to be copied, which come from
// cobra.
func TestHelpFitsATerminal(t *testing.T) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			each(c)
		}
		for line := range strings.Lines(cmd.Long) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth && !strings.HasPrefix(line, "\trewardwatch completion ") {
				t.Errorf("%s: a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	}
	each(newRootCommand(&terminal.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
}
