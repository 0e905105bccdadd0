package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// staged generates a pipeline and returns a function that runs one of its stages, with programs in place of the real
// ones: rewardwatch notes its arguments and ends with the next of the given exit codes of the gate, sleep takes no time,
// and each question for the time is a minute later.
func staged(t *testing.T, verdicts string, replaced ...string) (runs func(stage string, env ...string) (code int, calls string)) {
	t.Helper()
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t, replaced...).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{
		"rewardwatch": `echo "$*" >> "$CALLS"
[ "$1" = gate ] || exit 0
read -r code < "$VERDICTS" || exit 3
sed -i 1d "$VERDICTS"
exit "$code"`,
		"sleep": "exit 0",
		"date": `n=$(cat "$CALLS.time" 2>/dev/null || echo 0)
echo $((n + 60)) > "$CALLS.time"
[ "$1" = +%s ] && echo "$n" || echo 2026-11-25T00-00-00Z`,
		"python": `echo "python $*" >> "$CALLS"; [ "$2" != --break ]`,
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, body := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	calls, codes, work := filepath.Join(dir, "calls"), filepath.Join(dir, "verdicts"), filepath.Join(dir, "work")
	if err := os.WriteFile(codes, []byte(strings.ReplaceAll(verdicts, " ", "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "version"), []byte("v7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(stage string, env ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "pipeline", "stages", stage+".sh"))
		cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "CALLS=" + calls, "VERDICTS=" + codes, "WORK=" + work}, env...)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, _ := os.ReadFile(calls)
		return cmd.ProcessState.ExitCode(), string(text)
	}
}

// The gate asks until there is a verdict, or until its time is over.
func TestGateWaitsForAVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		verdicts  string
		undecided string
		code      int
		asked     int
	}{
		"as good":               {"0", Fail, 0, 1},
		"as good later":         {"3 3 2 0", Fail, 0, 4},
		"worse":                 {"3 1", Fail, 1, 2},
		"undecided":             {"", Fail, 1, 4},
		"undecided, and passes": {"", Pass, 0, 4},
	} {
		stage := staged(t, test.verdicts, "gate: {within: 4h, every: 5m}", "gate: {within: 4m, every: 1m, undecided: "+test.undecided+"}")
		code, calls := stage("gate", "REQUEST=rr_1")
		asked := strings.Count(calls, "gate cartpole v7 --server https://rewardwatch.example.com")
		if code != test.code || asked != test.asked {
			t.Errorf("%s: exit code %d after %d questions, want %d after %d\n%s", name, code, asked, test.code, test.asked, calls)
		}
		if reported := strings.Contains(calls, "retrain status rr_1 failed --error stage gate ended with exit code 1"); reported != (test.code != 0) {
			t.Errorf("%s: reported a failure: %v\n%s", name, reported, calls)
		}
	}
}

func TestStagesReportToTheService(t *testing.T) {
	stage := staged(t, "")
	if code, calls := stage("train", "REQUEST=rr_1", "VERSION=v8"); code != 0 || !strings.Contains(calls, "retrain status rr_1 started") || !strings.Contains(calls, "python pipeline/train.py") {
		t.Errorf("train: %d\n%s", code, calls)
	}
	if code, calls := stage("deploy", "REQUEST=rr_1", "REWARDWATCH_STATUS_TOKEN=x"); code != 0 || !strings.Contains(calls, "retrain status rr_1 succeeded --version v8 --by cartpole pipeline, a run by hand --server https://rewardwatch.example.com --token-file ") {
		t.Errorf("deploy: %d\n%s", code, calls)
	}
	stage = staged(t, "")
	if code, calls := stage("deploy"); code != 0 || strings.Contains(calls, "retrain status") {
		t.Errorf("without a request: %d\n%s", code, calls)
	}
	stage = staged(t, "", "deploy.py, --to, production]", "--break, --break]")
	if code, calls := stage("deploy", "REQUEST=rr_1"); code != 1 || !strings.Contains(calls, "python deploy.py --undo") || !strings.Contains(calls, "retrain status rr_1 failed") {
		t.Errorf("a deployment that fails: %d\n%s", code, calls)
	}
	stage = staged(t, "", "data:\n", "data:\n  export: true\n")
	if code, calls := stage("export"); code != 0 || strings.Contains(calls, "export") {
		t.Errorf("export without a request: %d\n%s", code, calls)
	}
	if code, calls := stage("export", "REQUEST=rr_1"); code != 0 || !strings.Contains(calls, "retrain export rr_1 --config pipeline/rewardwatch.yml --format parquet --out ") {
		t.Errorf("export: %d\n%s", code, calls)
	}
}
