package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A run of the DAG for another request than a retraining, such as one that freezes the policy, skips its stages.
func TestOtherOrdersSkipStagesOfAirflow(t *testing.T) {
	var dag string
	for _, a := range mustRun(t).Artefacts {
		if strings.HasSuffix(a.Path, "airflow_dag.py") {
			dag = a.Text
		}
	}
	command := regexp.MustCompile(`bash_command='([^']*)' \+ stage`).FindStringSubmatch(dag)
	if command == nil || !strings.Contains(dag, "skip_on_exit_code=99") || !strings.Contains(dag, `"ORDER": "{{ ((dag_run.conf or {}).get('data') or {}).get('order', '') }}"`) {
		t.Fatal(dag)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "pipeline", "run.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho ran \"$1\" \"$IMAGE\"\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	for order, want := range map[string]struct {
		code int
		out  string
	}{"": {3, "ran train cartpole:v1\n"}, "retrain": {3, "ran train cartpole:v1\n"}, "freeze": {99, ""}, "rollback": {99, ""}, "a b": {99, ""}} {
		c := exec.CommandContext(t.Context(), "bash", "-c", command[1]+"train") //nolint:gosec // it is generated
		c.Env = append(os.Environ(), "RETRAIN_CARTPOLE_DIRECTORY="+dir, "RETRAIN_CARTPOLE_IMAGE=cartpole:v1", "ORDER="+order)
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != want.code || string(out) != want.out {
			t.Errorf("%q: %d, %q, want %v", order, code, out, want)
		}
	}
}
