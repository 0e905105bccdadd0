package wired

import (
	"fmt"
	"path"
	"strings"
)

// orders are the lines with which generated files declare the dependency of a stage on the one before it.
var orders = []struct{ file, first, line string }{
	{".github/workflows/retrain-*.yml", "    needs: [build]\n", "    needs: [build, %s]\n"},
	{".gitlab-ci.yml", "  needs: [build]\n", "  needs: [build, %s]\n"},
	{"pipeline/argo.yaml", "", "            dependencies: [%s]\n"},
	{"pipeline/kubeflow.yaml", "", "          dependentTasks: [%s]\n"},
	{"pipeline/Makefile", "", ": build %s\n"},
}

// Misordered returns the stages of a generated file that do not wait for the preceding stage.
func Misordered(file, text string, stages []string) []Lack {
	var out []Lack
	for _, o := range orders {
		if ok, _ := path.Match(o.file, file); !ok {
			continue
		}
		for i, s := range stages {
			want := o.first
			if i > 0 {
				want = fmt.Sprintf(o.line, stages[i-1])
			}
			if file == "pipeline/argo.yaml" {
				want = "\n          - name: " + s + "\n            template: " + s + "\n" + want
			}
			if want != "" && !strings.Contains(text, want) {
				out = append(out, Lack{1, "the stage " + s + " does not wait for its dependencies"})
			}
		}
	}
	if file == "pipeline/airflow_dag.py" {
		for _, s := range stages {
			if !strings.Contains(text, "\n    (\""+s+"\", datetime.timedelta(minutes=") {
				out = append(out, Lack{1, "has no stage " + s})
			}
		}
	}
	return out
}
