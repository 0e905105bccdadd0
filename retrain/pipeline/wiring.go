package pipeline

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// wiring says what an artefact must have so that the stages run as planned: lines of the whole file, and lines of the
// block of each stage. A line may go on behind what is given, unless that ends with a line break. In it STAGE is the
// name of the stage.
type wiring struct {
	file  string // pattern of the path
	whole string
	open  string // first line of the block of a stage, which ends before that of the next one
	stage string
}

// wirings are those of all artefacts in which something depends on exact lines.
var wirings = []wiring{
	{
		file: ".github/workflows/retrain-*.yml",
		whole: "on:\n|  repository_dispatch:\n|    types: [retrain.requested]\n|  workflow_dispatch:\n|      request:\n        description: |        type: string\n        required: false\n|permissions:\n|  contents: read\n|concurrency:\n|" +
			"  group: retrain-|  cancel-in-progress: false\n|env:\n|  IMAGE: |  REQUEST: ${{ github.event.client_payload.data.id |  RUN: ${{ github.server_url }}|jobs:\n|  build:\n    name: |    runs-on: ubuntu|  packages: read\n|    permissions:\n      contents: read\n      packages: write\n    steps:\n      - uses: actions/checkout@|        with:\n          persist-credentials: false\n      - name: Build and push\n|    timeout-minutes: 60\n|    inputs:\n      request:\n|          printf '%s' \"$REGISTRY_PASSWORD\" \\| docker login \"${IMAGE%%/*}\" --username \"$REGISTRY_USER\" --password-stdin\n          docker build|" +
			"          docker build --tag \"$IMAGE\" --file pipeline/Dockerfile .\n|          docker push \"$IMAGE\"\n",
		open: "  STAGE:\n",
		stage: "    needs: [build|    runs-on: |    timeout-minutes: |    steps:\n      - uses: actions/checkout@|        with:\n          persist-credentials: false\n|        env:\n|    name: |" +
			"          REWARDWATCH_STATUS_TOKEN: ${{ secrets.REWARDWATCH_STATUS_TOKEN }}\n|          REGISTRY_USER: ${{ secrets.REGISTRY_USER |          REGISTRY_PASSWORD: ${{ secrets.REGISTRY_PASSWORD |        run: \\|\n          printf '%s' \"$REGISTRY_PASSWORD\" \\| docker login \"${IMAGE%%/*}\" --username \"$REGISTRY_USER\" --password-stdin\n          pipeline/run.sh STAGE\n|      - uses: actions/upload-artifact@|" +
			"        if: ${{ !|        with:\n          name: work\n          path: work\n          overwrite: true\n          if-no-files-found: error\n",
	},
	{
		file: ".gitlab-ci.yml",
		whole: "workflow:\n|  rules:\n|    - if: $REWARDWATCH_EVENT == \"retrain.requested\"\n|stages:\n|  - build\n|variables:\n|  IMAGE: |  REQUEST: $REWARDWATCH_REQUEST\n|  RUN: |  WORK: |" +
			"build:\n  stage: build\n  image: docker:|  services:\n    - docker:|  timeout: 1 hour\n  script:\n    - printf '%s' \"$CI_REGISTRY_PASSWORD\" \\| docker login \"$CI_REGISTRY\" --username \"$CI_REGISTRY_USER\" --password-stdin\n    - docker build --tag \"$IMAGE\" --file pipeline/Dockerfile .\n|    - docker push \"$IMAGE\"\n",
		open: "STAGE:\n",
		stage: "  stage: STAGE\n|  needs: [build|  image: $IMAGE\n|  resource_group: retrain-|  interruptible: false\n|  timeout: |  script:\n|    - pipeline/stages/STAGE.sh\n|  artifacts:\n|" +
			"    when: always\n|    paths:\n|      - work/\n|    expire_in: ",
	},
	{
		file: "pipeline/argo.yaml",
		whole: "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata:\n  name: retrain-|spec:\n|  serviceAccountName: |  entrypoint: retrain\n|  arguments:\n|    parameters:\n|      - name: request\n|      - name: tag\n|  securityContext:\n|    runAsNonRoot: true\n|    runAsUser: |    fsGroup: |" +
			"  podGC:\n    strategy: |  volumeClaimTemplates:\n    - metadata:\n        name: work\n      spec:\n        accessModes: [ReadWriteOnce]\n        resources:\n          requests:\n            storage: |  templates:\n|    - name: retrain\n|      dag:\n|        tasks:\n",
		open: "    - name: STAGE\n",
		stage: "      activeDeadlineSeconds: |      container:\n|        image: |        command: [/project/pipeline/stages/STAGE.sh]\n|        env:\n|          - name: REQUEST\n|            value: \"{{workflow.parameters.request}}\"\n|" +
			"          - name: RUN\n|            value: \"workflow {{workflow.name}}\"\n|          - name: REWARDWATCH_STATUS_TOKEN\n|            valueFrom:\n              secretKeyRef:\n                name: rewardwatch\n                key: status-token\n                optional: true\n|" +
			"                optional: true\n|        volumeMounts:\n|          - name: work\n|            mountPath: /work\n",
	},
	{
		file: "pipeline/kubernetes.yaml",
		whole: "apiVersion: batch/v1\n|kind: Job\nmetadata:\n  generateName: retrain-|  labels:\n    app.kubernetes.io/name: retrain-|spec:\n|  backoffLimit: 0\n|  activeDeadlineSeconds: |  ttlSecondsAfterFinished: |  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: retrain-|    spec:\n      restartPolicy: Never\n|      automountServiceAccountToken: false\n|" +
			"      securityContext:\n|        runAsNonRoot: true\n|        runAsUser: |        fsGroup: |      volumes:\n|        - name: work\n|          emptyDir:\n|            sizeLimit: |      initContainers:\n|      containers:\n",
		open: "        - name: STAGE\n",
		stage: "          image: |          command: [/project/pipeline/stages/STAGE.sh]\n|          env:\n|            - name: REQUEST\n|              value: \"__REQUEST__\"\n|            - name: RUN\n|" +
			"                  fieldPath: metadata.name\n|            - name: REWARDWATCH_STATUS_TOKEN\n|              valueFrom:\n                secretKeyRef:\n                  name: rewardwatch\n                  key: status-token\n                  optional: true\n|              valueFrom:\n                fieldRef:\n|" +
			"          volumeMounts:\n|            - name: work\n|              mountPath: /work\n",
	},
	{
		file:  "pipeline/kubeflow.yaml",
		whole: "schemaVersion: |sdkVersion: |pipelineInfo:\n|components:\n|  name: retrain-|  description: |deploymentSpec:\n  executors:\n|root:\n  inputDefinitions:\n    parameters:\n      request:\n        parameterType: STRING\n        isOptional: true\n        defaultValue: \"\"\n  dag:\n    tasks:\n|---\nplatforms:\n  kubernetes:\n    deploymentSpec:\n      executors:\n",
		open:  "        exec-STAGE:\n",
		stage: "          activeDeadlineSeconds: |          securityContext:\n|            runAsUser: |            runAsGroup: |            runAsNonRoot: true\n|          pvcMount:\n|            - mountPath: /work\n|              constant: retrain-|              pvcNameParameter:\n                runtimeValue:\n                  constant: retrain-|" +
			"          secretAsEnv:\n|            - secretName: rewardwatch\n              secretNameParameter:\n                runtimeValue:\n                  constant: rewardwatch\n              optional: true\n              keyToEnv:\n                - secretKey: status-token\n|                  envVar: REWARDWATCH_STATUS_TOKEN\n",
	},
	{
		file:  "pipeline/kubeflow.yaml",
		open:  "    exec-STAGE:\n",
		stage: "      container:\n|        image: |        command:\n|          - sh\n|          - -c\n|          - REQUEST=\"$1\" RUN=\"$2\" exec \"$0\"\n|          - /project/pipeline/stages/STAGE.sh\n|          - \"{{$.inputs.parameters['request']}}\"\n|          - \"{{$.pipeline_job_name}}\"\n",
	},
	{
		file:  "pipeline/kubeflow.yaml",
		open:  "      STAGE:\n",
		stage: "        taskInfo:\n          name: |        componentRef:\n          name: comp-STAGE\n        cachingOptions: {}\n|        inputs:\n          parameters:\n            request:\n              componentInputParameter: request\n",
	},
	{
		file: "pipeline/kubeflow.yaml", open: "  comp-STAGE:\n",
		stage: "    executorLabel: exec-STAGE\n|    inputDefinitions:\n|      parameters:\n|        request:\n|          parameterType: STRING\n",
	},
	{
		file:  "pipeline/Makefile",
		whole: "export IMAGE ?= |export REQUEST ?= $(REWARDWATCH_REQUEST)\n|export RUN ?= |COMPOSE := docker compose --file pipeline/compose.yaml\n|.PHONY: retrain build|retrain:|build:\n|\t$(COMPOSE) build\n|\tif [ -n \"$$REWARDWATCH_RESULT\" ]; then printf ",
		open:  "STAGE: build",
		stage: "\tmkdir -p work\n|\t$(COMPOSE) run --rm --user \"$$(id -u):$$(id -g)\"",
	},
	{
		file: "pipeline/compose.yaml",
		whole: "name: retrain-|services:\n  stage: &stage\n    image: ${IMAGE}\n    build:\n      context: ..\n      dockerfile: pipeline/Dockerfile\n    network_mode: host\n|    environment: &environment\n|      REQUEST:\n|      RUN:\n|      VERSION:\n|" +
			"      REWARDWATCH_STATUS_TOKEN:\n|      REWARDWATCH_TELEMETRY_TOKEN:\n|      REWARDWATCH_URL:\n|      REWARDWATCH_SERVICE:\n|    volumes:\n      - ../work:/work\n  train:\n|    environment: *environment\n|    deploy:\n      resources:\n        limits:\n          cpus: |          memory: |    environment: &environment\n      REQUEST:\n|  train:\n    image: ${IMAGE}\n    network_mode: host\n    environment: *environment\n    volumes:\n      - ../work:/work\n    deploy:\n|      REWARDWATCH_URL:\n",
	},
	{
		file: "pipeline/airflow_dag.py",
		whole: "\"\"\"Retrains |\"\"\"\n\nimport datetime\n|from airflow.providers.standard.operators.bash import BashOperator\n|from airflow.sdk import DAG\n|STAGES = [\n|]\n\nwith DAG(\n|    dag_id=\"retrain-|    schedule=|    catchup=False,\n|    max_active_runs=1,\n|    for stage, limit in STAGES:\n|        task = BashOperator(\n            task_id=stage,\n|            env={\n|            },\n            append_env=True,\n|    start_date=datetime.datetime(|import datetime\n|with DAG(\n|) as dag:\n    before = None\n|        if before is not None:\n            before >> task\n|" +
			"            bash_command='\"$PIPELINE_DIRECTORY\"/pipeline/run.sh ' + stage,\n|                \"REQUEST\": \"{{ ((dag_run.conf or {})|                \"RUN\": |            append_env=True,\n|            execution_timeout=limit,\n        )\n        if before is not None:\n|            before >> task\n|        before = task\n",
	},
	{
		file: "pipeline/Dockerfile",
		whole: "FROM golang:|RUN CGO_ENABLED=0 go install github.com/rewardwatch/rewardwatch/cmd/rewardwatch@|COPY --from=rewardwatch /go/bin/rewardwatch /usr/local/bin/rewardwatch\n|WORKDIR /project\n|COPY pipeline/requirements.txt pipeline/requirements.txt\n|" +
			"RUN pip install --no-cache-dir -r pipeline/requirements.txt\n|COPY . .\n|ENV HOME=/tmp WORK=/work|USER 1000:1000\n",
	},
	{file: "pipeline/Dockerfile.dockerignore", whole: ".git\n|work\n|**/.env*\n|**/.venv\n|**/__pycache__\n"},
	{
		file:  "pipeline/run.sh",
		whole: "#!/bin/sh\n|set -eu\n|cd \"$(dirname \"$0\")/..\"\n|mkdir -p work\n|case $1 in\n|train) resources=|*) resources= ;;\n|esac\n|secrets=\n|exec docker run --rm |  -e REQUEST -e RUN -e VERSION -e REWARDWATCH_SERVICE -e REWARDWATCH_STATUS_TOKEN |  \"${IMAGE:?set IMAGE to the image and its tag}\" \"/project/pipeline/stages/$1.sh\"\n",
	},
	{
		file: "pipeline/stages/*.sh",
		whole: "#!/bin/sh\n|set -eu\n|cd \"$(dirname \"$0\")/../..\"\n|WORK=${WORK:-$PWD/work}\n|REQUEST=${REQUEST:-}\n|case $REQUEST in\n|-* \\| *[!A-Za-z0-9_-]*)\n|  exit 2\n  ;;\nesac\n|RUN=${RUN:-|SERVICE=${REWARDWATCH_SERVICE:-|export WORK\n|child=\n|token=$(mktemp)\n|" +
			"printf '%s' \"${REWARDWATCH_STATUS_TOKEN:-}\" > \"$token\"\n|ask() {\n|  if [ -s \"$token\" ]; then\n|    rewardwatch \"$@\" --server \"$SERVICE\" --token-file \"$token\"\n|  else\n    rewardwatch \"$@\" --server \"$SERVICE\"\n  fi\n}\n|report() {\n|" +
			"  [ -z \"$REQUEST\" ] \\|\\| ask retrain status \"$REQUEST\" \"$@\" --by |}\n\nfinish() {\n|finish() {\n|  code=$?\n|  trap - EXIT\n|  [ \"$code\" -eq 0 ] \\|\\| report failed --error |  rm -f \"$token\" |  exit \"$code\"\n}\ntrap finish EXIT\n|run() {\n|  \"$@\" &\n|  child=$!\n  wait \"$child\"\n}\n|" +
			"stop() {\n  [ -z \"$child\" ] \\|\\| kill \"$child\" 2>/dev/null \\|\\| true\n  exit \"$1\"\n|}\ntrap 'stop 130' INT\ntrap 'stop 143' TERM\nmkdir -p \"$WORK\"\n",
	},
	{file: "pipeline/stages/train.sh", whole: "VERSION=|export VERSION\n|printf '%s\\n' \"$VERSION\" > \"$WORK/version\"\n|report started\n|run "},
	{file: "pipeline/stages/evaluate.sh", whole: "VERSION=$(cat \"$WORK/version\")\n|export VERSION\n|run "},
	{file: "pipeline/stages/shadow.sh", whole: "VERSION=$(cat \"$WORK/version\")\n|export VERSION\n|run "},
	{
		file: "pipeline/stages/gate.sh",
		whole: "VERSION=$(cat \"$WORK/version\")\n|deadline=$(($(date +%s) + |while true; do\n|  verdict=0\n|  ask gate |  case $verdict in\n|  0) exit 0 ;;\n|  1)\n    echo |    exit 1\n    ;;\n|  3) echo |  *) echo |  esac\n|  if [ \"$(date +%s)\" -ge \"$deadline\" ]; then\n|" +
			"    undecided='|    echo \"There was no verdict|    [ \"$undecided\" = pass ] && exit 0\n    exit 1\n  fi\n|  run sleep |done\n",
	},
	{file: "pipeline/stages/deploy.sh", whole: "VERSION=$(cat \"$WORK/version\")\n|export VERSION\n|deploy() {\n  run |report succeeded --version \"$VERSION\"\n"},
	{file: "pipeline/stages/export.sh", whole: "rm -f \"$WORK/experience.parquet\"|if [ -z \"$REQUEST\" ]; then\n|  exit 0\n|fi\n|run ask retrain export \"$REQUEST\" --config pipeline/rewardwatch.yml --format parquet --out \"$WORK/experience.parquet\"\n"},
	{
		file:  "pipeline/rewardwatch.yml",
		whole: "ingest:\n|policies:\n|  - match: |    signals: [|    baseline: {units: |    false_alarms: {budget: ",
	},
	{file: "pipeline/recipes/*.yaml", whole: "contract:\n|  objective: |  hypothesis: |  expected: |  owner: |config:\n|  project: |  steps: "},
}

// linesOf returns the lines of a wiring. A backslash before a bar makes it part of the line.
func linesOf(list string) []string {
	if list == "" {
		return nil
	}
	list = strings.ReplaceAll(list, `\|`, "\x00")
	lines := strings.Split(list, "|")
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "\x00", "|")
	}
	return lines
}

// miswired finds what of its wiring an artefact lacks.
func miswired(w *Work, a *Artefact) []fault {
	var out []fault
	for i := range wirings {
		x := &wirings[i]
		if ok, _ := path.Match(x.file, a.Path); !ok {
			continue
		}
		for _, line := range linesOf(x.whole) {
			if !hasLine(a.Text, line) {
				out = append(out, fault{1, "has no line " + strings.TrimSpace(line)})
			}
		}
		if x.open != "" {
			out = append(out, x.blocks(w, a)...)
		}
	}
	for _, line := range wiredByValues(w, a.Path) {
		if !hasLine(a.Text, line) {
			out = append(out, fault{1, "has no line " + strings.TrimSpace(line)})
		}
	}
	return append(out, misordered(w, a)...)
}

// wiredByValues are the lines that an artefact must have because of values of the file.
func wiredByValues(w *Work, file string) []string {
	f := &w.File
	list := ""
	switch file {
	case "pipeline/requirements.txt":
		list = strings.Join(f.Requirements, "\n|")
		if f.Training.Telemetry || f.Evaluation.Telemetry {
			list += "\n|rewardwatch @ https://"
		}
	case "pipeline/Dockerfile":
		list = "\nFROM " + f.Base + "\n"
	case ".gitlab-ci.yml":
		list = "stages:\n  - build\n  - " + strings.Join(names(w), "\n  - ") + "\n"
	case "pipeline/Makefile":
		list = "retrain: " + strings.Join(names(w), " ") + "\n\tif "
	case "pipeline/argo.yaml":
		if f.Schedule != "" {
			list = "---\napiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata:\n  name: retrain-|  schedules: [|  timezone: UTC\n  concurrencyPolicy: Forbid\n  workflowSpec:\n" +
				"    workflowTemplateRef:\n      name: retrain-|    arguments:\n      parameters:\n        - name: tag\n          value: "
		}
		list += "|        resources:\n          requests:\n            cpu: |            memory: |          limits:\n            memory: "
	case "pipeline/kubernetes.yaml":
		list = "          resources:\n            requests:\n              cpu: |            limits:\n              memory: " + f.Training.Memory + "\n|              memory: " + f.Training.Memory + "\n            limits:"
	case "pipeline/rewardwatch.yml":
		list = "  log: {directory: "
		if len(f.Data.Brokers) > 0 {
			list = "  kafka:\n    brokers: [|    topic: "
		}
		if f.Trigger.Target != "" {
			list += "|retrain:\n  recipes: pipeline/recipes\n  targets:\n    - name: pipeline\n|  triggers:\n    - on: incident\n      policies: [|      signals: [|      recipe: " +
				f.Project + "\n      target: pipeline\n      approval: "
		}
	case "pipeline/stages/deploy.sh":
		list = "}\ndeploy\nreport succeeded"
		if len(f.Rollback.Command) > 0 {
			list = "}\nrollback() {\n  run |}\n# A deployment |undo() {\n  trap - INT TERM\n  kill \"$child\" 2>/dev/null \\|\\| true\n  rollback \\|\\| true\n  exit \"$1\"\n}\n" +
				"trap 'undo 130' INT\ntrap 'undo 143' TERM\nif ! deploy; then\n|  rollback\n  exit 1\nfi\ntrap 'stop 130' INT\ntrap 'stop 143' TERM\nreport succeeded"
		}
	case "pipeline/MODEL_CARD.md":
		list = "\\| \\| \\|\n\\| --- \\| --- \\|\n\\| policy \\| |\\| owner \\| |\\| algorithm \\| |\\| environments \\| |\\| training steps \\| |\\| evaluation \\| |\\| accepted when \\| |\\| monitored by \\| |## Intended use and limits\n"
		if len(f.Simulation) > 0 {
			list += "|## Simulation\n\n\\| parameter \\| from \\| to \\|\n\\| --- \\| --- \\| --- \\|\n\\| "
		}
	}
	if i := slices.IndexFunc(w.Stages, func(s Stage) bool { return s.Script() == file }); i >= 0 {
		list += "|  [ \"$code\" -eq 0 ] \\|\\| report failed --error \"stage " + w.Stages[i].Name + " ended|echo \"$(date -u +%Y-%m-%dT%H:%M:%SZ) " + w.Stages[i].Name + "\" >> \"$WORK/stages.log\"\n"
	}
	if f.Training.Telemetry || f.Evaluation.Telemetry {
		list += tokenOf[file]
	}
	return slices.DeleteFunc(linesOf(list), func(line string) bool { return line == "" })
}

func names(w *Work) []string {
	out := make([]string, len(w.Stages))
	for i, s := range w.Stages {
		out[i] = s.Name
	}
	return out
}

// tokenOf is how a stage that sends telemetry gets its token.
var tokenOf = map[string]string{
	"pipeline/argo.yaml": "|          - name: REWARDWATCH_TELEMETRY_TOKEN\n            valueFrom:\n              secretKeyRef:\n                name: rewardwatch\n                key: telemetry-token\n                optional: true\n",
	"pipeline/kubernetes.yaml": "|            - name: REWARDWATCH_TELEMETRY_TOKEN\n              valueFrom:\n                secretKeyRef:\n                  name: rewardwatch\n                  key: telemetry-token\n" +
		"                  optional: true\n",
	"pipeline/kubeflow.yaml": "|                - secretKey: telemetry-token\n                  envVar: REWARDWATCH_TELEMETRY_TOKEN\n",
}

// blocks finds what the block of each stage lacks.
func (x *wiring) blocks(w *Work, a *Artefact) []fault {
	var out []fault
	at := 0
	for i, s := range w.Stages {
		open := "\n" + strings.ReplaceAll(x.open, "STAGE", s.Name)
		start := strings.Index(a.Text[at:], open)
		if start < 0 {
			out = append(out, fault{1, "has no stage " + s.Name + " in its place"})
			continue
		}
		start += at
		end := len(a.Text)
		if i+1 < len(w.Stages) {
			if next := strings.Index(a.Text[start+1:], "\n"+strings.ReplaceAll(x.open, "STAGE", w.Stages[i+1].Name)); next >= 0 {
				end = start + 1 + next
			}
		}
		at = start + 1
		for _, line := range linesOf(strings.ReplaceAll(x.stage, "STAGE", s.Name)) {
			if !hasLine(a.Text[start:end]+"\n", line) {
				out = append(out, fault{strings.Count(a.Text[:start], "\n") + 2, "the stage " + s.Name + " has no line " + strings.TrimSpace(line)})
			}
		}
	}
	return out
}

func hasLine(text, line string) bool {
	return strings.HasPrefix(text, line) || strings.Contains(text, "\n"+line)
}

// orders are how artefacts say which stages a stage needs.
var orders = []struct{ file, first, line string }{
	{".github/workflows/retrain-*.yml", "    needs: [build]\n", "    needs: [build, %s]\n"},
	{".gitlab-ci.yml", "  needs: [build]\n", "  needs: [build, %s]\n"},
	{"pipeline/argo.yaml", "", "            dependencies: [%s]\n"},
	{"pipeline/kubeflow.yaml", "", "        dependentTasks: [%s]\n"},
	{"pipeline/Makefile", "", ": build %s\n"},
}

// misordered finds stages that do not wait for those they need.
func misordered(w *Work, a *Artefact) []fault {
	var out []fault
	for _, o := range orders {
		if ok, _ := path.Match(o.file, a.Path); !ok {
			continue
		}
		for _, s := range w.Stages {
			want := o.first
			if len(s.Needs) > 0 {
				want = fmt.Sprintf(o.line, strings.Join(s.Needs, ", "))
			}
			if a.Path == "pipeline/argo.yaml" {
				want = "\n          - name: " + s.Name + "\n            template: " + s.Name + "\n" + want
			}
			if want != "" && !strings.Contains(a.Text, want) {
				out = append(out, fault{1, "the stage " + s.Name + " does not wait for what it needs"})
			}
		}
	}
	if a.Path == "pipeline/airflow_dag.py" {
		for _, s := range w.Stages {
			if !strings.Contains(a.Text, "\n    (\""+s.Name+"\", datetime.timedelta(minutes=") {
				out = append(out, fault{1, "has no stage " + s.Name})
			}
		}
	}
	return slices.Clip(out)
}
