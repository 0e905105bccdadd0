//go:build e2e

package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The scripts in other files are checked as well, because actionlint does that only for workflows.
func TestE2ECheckersFindNoFaultInReports(t *testing.T) {
	for target, r := range reporters(t, mustRun(t)) {
		for i, arg := range r.args {
			if arg != "-c" {
				continue
			}
			file := filepath.Join(t.TempDir(), target+".sh")
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"+r.args[i+1]), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, "shellcheck", file)
		}
	}
}

// dagRuns runs a DAG in Airflow for each request and broken stage, and prints the final state of each run and its
// tasks.
const dagRuns = `
import os, sys
from airflow.dag_processing.dagbag import DagBag

dag = next(iter(DagBag(sys.argv[1]).dags.values()))
for case in sys.argv[2:]:
    order, os.environ["BROKEN"] = case.split(":")
    run = dag.test(run_conf={"data": {"id": "rr_1", "order": order}})
    tasks = {t.task_id: str(t.state) for t in run.get_task_instances()}
    print("ended", case, str(run.state), *(tasks[s] for s in ("train", "evaluate", "gate", "deploy", "report")))
`

// In Airflow, a failed run reports its failure once, and is still marked as failed. A run that succeeds, or that is for
// another request, reports nothing.
func TestE2ECheckersRunTheDAG(t *testing.T) {
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	service, bin, home := newReported(t, 200), filepath.Join(dir, "pipeline"), t.TempDir()
	const stage = "#!/bin/sh\n[ \"$1\" != \"$BROKEN\" ] || exit 125\ncd \"$RETRAIN_CARTPOLE_DIRECTORY\" && work=work/runs/$(printf %s \"$RUN_ID\" | tr -c A-Za-z0-9._- _ | cut -c 1-100)-$(printf %s \"$RUN_ID\" | cksum | cut -d ' ' -f 1) && mkdir -p \"$work\" && echo \"$1, $RUN\" >> \"$work/succeeded.log\"\n"
	if err := os.WriteFile(filepath.Join(bin, "run.sh"), []byte(stage), 0o700); err != nil {
		t.Fatal(err)
	}
	airflows := func(program string, args ...string) string {
		t.Helper()
		c := exec.Command(airflow+"/"+program, args...)
		c.Env = append(os.Environ(), "AIRFLOW_HOME="+home, "AIRFLOW__CORE__DAGS_FOLDER="+bin, "AIRFLOW__CORE__LOAD_EXAMPLES=False", "RETRAIN_CARTPOLE_DIRECTORY="+dir, "RETRAIN_CARTPOLE_IMAGE=cartpole:v1", "REWARDWATCH_SERVICE="+service.URL)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	airflows("airflow", "db", "migrate")
	airflows("airflow", "dags", "reserialize")
	out := airflows("python", "-c", dagRuns, filepath.Join(bin, "airflow_dag.py"), "retrain:evaluate", "retrain:", "freeze:")
	got := strings.Join(regexp.MustCompile(`(?m)^ended .*`).FindAllString(out, -1), "\n")
	const want = "ended retrain:evaluate failed success failed upstream_failed upstream_failed failed\n" +
		"ended retrain: success success success success success skipped\nended freeze: success skipped skipped skipped skipped skipped"
	if got != want {
		t.Errorf("%s\n%s", got, out)
	}
	if reports := service.take(); strings.Count(reports, "POST") != 1 || !strings.Contains(reports, "/rr_1/status | application/json |  | failed | stage evaluate failed | cartpole pipeline, retrain-cartpole manual__") {
		t.Error(reports)
	}
}
