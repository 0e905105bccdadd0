package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rewardwatch/rewardwatch/retrain/pipeline/keywords"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/machines"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/pins"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/quote"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/strict"
	"github.com/rewardwatch/rewardwatch/retrain/pipeline/wired"
	"github.com/rewardwatch/rewardwatch/retrain/yamlfile"
)

// miswired finds lines that an artefact needs to run its stages as planned but lacks.
func miswired(w *Work, a *Artefact) []fault {
	var out []fault
	for _, m := range wired.Missing(a.Path, w.File.Algorithm.Library, a.Text, names(w)) {
		out = append(out, fault{m.Line, m.What})
	}
	for _, line := range wiredByValues(w, a.Path) {
		if !wired.HasLine(a.Text, line) {
			out = append(out, fault{1, "has no line " + strings.TrimSpace(line)})
		}
	}
	sending := 0
	for _, s := range w.Stages {
		if w.File.sends(s.Name) {
			sending++
		}
	}
	blocks := wired.Resources(a.Path, w.File.Training.CPU, w.File.Training.GPU, w.File.Training.Memory, len(w.Stages))
	for _, b := range append(blocks, wired.Repeated(a.Path, len(w.Stages), sending, strict.IsEnterprise(w.File.githubAPI()))...) {
		if strings.Count(a.Text, b.Text) != b.Times {
			out = append(out, fault{1, fmt.Sprintf("does not contain %d times%s", b.Times, b.Text)})
		}
	}
	for _, m := range wired.Misordered(a.Path, a.Text, names(w)) {
		out = append(out, fault{m.Line, m.What})
	}
	return out
}

// tuples returns the beginnings of the lines of a Python list of tuples whose first elements are names.
func tuples[T any](all []T, name func(T) string) string {
	list := ""
	for _, x := range all {
		list += "|    (" + strings.ReplaceAll(strconv.QuoteToASCII(name(x)), "|", `\|`) + ", "
	}
	return list
}

// wiredImage returns the required lines of the Dockerfile.
func wiredImage(f *File) string {
	list := "\nFROM " + f.Base + "\n"
	if len(f.Requirements) > 0 {
		list += "|COPY pipeline/requirements.txt pipeline/requirements.txt\n|RUN pip install --no-cache-dir -r pipeline/requirements.txt\n"
	}
	if strict.IsBare(f.Base) {
		list += "|RUN if [ -e /etc/ssl/certs/ca-certificates.crt ] \\|\\| [ \"$(id -u)\" -ne 0 ]; then :; \\\n    elif command -v apt-get; then |    elif command -v apk; then apk add --no-cache ca-certificates; fi\n"
	}
	packages, programs := installed(f)
	if len(packages) > 0 {
		list += "|RUN apt-get update && apt-get install --yes --no-install-recommends " + strings.Join(packages, " ") + " && rm -rf /var/lib/apt/lists/*\n"
	}
	if len(programs) > 0 {
		list += "|RUN missing() { echo \"$1, which a command runs, is missing: install it between the markers of pipeline/Dockerfile, or use another base.\" >&2; exit 1; }"
		for _, p := range programs {
			list += "; \\\n    command -v " + p + " \\|\\| missing " + p
		}
		list += "\n"
	}
	if len(pins.Builders(f.Requirements)) > 0 {
		list += "|ENV PIP_CONSTRAINT=/etc/pip-constraints.txt\n"
	}
	return list
}

// wiredLabels returns the lines with the labels of self-hosted runners.
func wiredLabels(f *File) string {
	list := ""
	for _, label := range slices.Concat(f.Training.Runner, f.Gate.Runner) {
		if word, err := quote.Word(label); err == nil && strict.IsOwnLabel(label) {
			list += "|    - " + word + "\n"
		}
	}
	return list
}

// wiredContainers returns the required lines of the image, and those for what its containers access on their machine.
func wiredContainers(f *File) map[string]string {
	memory, _ := strict.ComposeMemory(f.Training.Memory) // it never fails
	shared := "    shm_size: " + memory + " |"
	if !f.Data.Export || len(f.Data.Brokers) > 0 {
		return map[string]string{"pipeline/Dockerfile": wiredImage(f), "pipeline/compose.yaml": shared + "    volumes:\n      - ../work:/work\n  train:\n"}
	}
	return map[string]string{
		"pipeline/Dockerfile":   wiredImage(f),
		"pipeline/run.sh":       "[ \"$1\" != export ] \\|\\| resources=\"--mount ",
		"pipeline/compose.yaml": shared + "    volumes:\n      - ../work:/work\n      # |      - type: bind\n        source: /var/lib/rewardwatch/telemetry\n        target: /var/lib/rewardwatch/telemetry\n        read_only: true\n",
	}
}

// wiredByValues returns the lines that an artefact must contain because of values of the file.
func wiredByValues(w *Work, file string) []string {
	f := &w.File
	list := map[string]string{actionlint: wiredLabels(f)}[file]
	switch file {
	case "pipeline/requirements.txt":
		list = strings.Join(f.Requirements, "\n|")
		if f.Training.Telemetry || f.Evaluation.Telemetry {
			list += "\n|rewardwatch @ https://"
		}
	case "pipeline/evaluate.py", "pipeline/world.py", "pipeline/train.py":
		list = wiredPrograms(f, file)
	case "pipeline/Dockerfile", "pipeline/run.sh", "pipeline/compose.yaml":
		list = wiredContainers(f)[file]
	case ".gitlab-ci.yml":
		list = wiredGitLab(w)
	case "pipeline/Makefile":
		list = "ifndef HAS_LOCK\n# Fail if another run is using work/.\nretrain " + strings.Join(names(w), " ") + ":\n|retrain: " + strings.Join(names(w), " ") + "\n\tif |.PHONY: retrain build " + strings.Join(names(w), " ") + "\n"
	case "pipeline/airflow_dag.py":
		list = strings.ReplaceAll("X_DIRECTORY (path of the checkout), X_IMAGE (image and tag), and\n", "X_", quote.Variable(f.Project)+"_")
	case "pipeline/argo.yaml":
		if f.Schedule != "" {
			list = "---\napiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata:\n  name: retrain-" + f.Project + "\nspec:\n  schedules: [|  timezone: UTC\n  concurrencyPolicy: Forbid\n  workflowSpec:\n" +
				"    workflowTemplateRef:\n      name: retrain-|    arguments:\n      parameters:\n        - name: tag\n          value: "
		}
	case "pipeline/rewardwatch.yml":
		list = "  log: {directory: "
		if len(f.Data.Brokers) > 0 {
			list = "  kafka:\n    brokers: [|    topic: "
		}
		if f.Guards.Kind == yamlfile.Mapping {
			list += "|" + strings.ReplaceAll("    guards:\n"+quote.Tree("guards", f.Guards, 6, func(l quote.Line) string { return l.Text })+"\n", "|", `\|`)
		}
		if f.Trigger.Target != "" {
			list += "|retrain:\n  recipes: pipeline/recipes\n  targets:\n    - name: pipeline\n      " + startedBy[f.Trigger.Target] + "|      completes_within: |  triggers:\n    - on: incident\n      policies: [|      signals: [|      recipe: " +
				projectWord(f) + "\n      target: pipeline\n      approval: "
		}
	case "pipeline/stages/deploy.sh":
		list = wiredDeployment(f)
	case "pipeline/MODEL_CARD.md":
		list = wiredCard(f)
	}
	switch {
	case f.Training.Steps > 0 && strings.HasPrefix(file, "pipeline/recipes/"):
		list = "  steps: "
	case strings.HasPrefix(file, ".github/workflows/"):
		list = wiredLogin(f, f.Image, "          ") + wiredSteps(w)
	}
	if file == "pipeline/run.sh" {
		list += "|  [ \"$1\" != " + w.Stages[0].Name + " ] \\|\\| find work/runs "
	}
	list += wiredScript(w, file)
	list += wiredReport(w, file)
	if f.sends("train") || f.sends("evaluate") {
		list += wired.TokenOf[file]
	}
	if f.sends("train") && file == "pipeline/stages/train.sh" || f.sends("evaluate") && file == "pipeline/stages/evaluate.sh" {
		list += wired.TokenFile
	}
	return slices.DeleteFunc(wired.Lines(list), func(line string) bool { return strings.TrimSpace(line) == "" })
}

// wiredGitLab returns the required lines of the pipeline of GitLab.
func wiredGitLab(w *Work) string {
	f := &w.File
	list := wiredLogin(f, "", "  before_script:\n    # If the base image is private, set BASE_REGISTRY_USER and BASE_REGISTRY_PASSWORD as masked project variables.\n    - ") + "stages:\n  - build\n  - " + strings.Join(names(w), "\n  - ") + "\n"
	if name, err := quote.Name(f.Policy); err == nil {
		list += "|    - if: $REWARDWATCH_POLICY && $REWARDWATCH_POLICY != \"" + name + "\"\n      when: never\n"
	}
	return list
}

// wiredLogin returns the line that logs in to the registry of the base, after what begins it in a generated file.
func wiredLogin(f *File, image, begin string) string {
	if !f.otherBase(image) {
		return ""
	}
	registry, _ := machines.Registry(f.Base)
	return begin + "if [ -n \"$BASE_REGISTRY_USER\" ]; then printf '%s' \"$BASE_REGISTRY_PASSWORD\" \\| docker login " + registry + " --username \"$BASE_REGISTRY_USER\" --password-stdin; fi\n|"
}

// wiredScript returns the lines of a stage's script that depend on the stage.
func wiredScript(w *Work, file string) string {
	i := slices.IndexFunc(w.Stages, func(s Stage) bool { return s.Script() == file })
	if i < 0 {
		return ""
	}
	s, closed := w.Stages[i], ""
	if s.Last != "" {
		closed = ` [ -n "$closed" ] \|\|`
	}
	list := "|  [ \"$code\" -eq 0 ] \\|\\|" + closed + " report failed --error \"stage " + s.Name + " ended with exit code $code\"\n  if [ \"$code\" -eq 0 ]; then\n" +
		"    echo \"" + s.Name + ", $RUN\" >> \"$WORK/succeeded.log\"\n    printf '%s\\n' \"${VERSION:-}, $REQUEST, $RUN\" > \"$WORK/passed." + s.Name + "\"\n  fi\n" +
		"  rm -f \"$token\" \"$token.telemetry\"\n  exit \"$code\"\n}\ntrap finish EXIT\n" +
		"|echo \"$(date -u +%Y-%m-%dT%H:%M:%SZ) " + s.Name + "\" >> \"$WORK/stages.log\"\nrm -f \"$WORK/passed." + s.Name + "\"\n"
	if w.File.needsRequest() {
		list += "|if [ -z \"$REQUEST\" ]; then\n  echo \"Skipped: without a retrain request, there is no data to export and train on.\"\n  exit \"${SKIPPED:-0}\"\nfi\nSERVICE="
	}
	if !slices.Contains([]string{"export", "train", "evaluate"}, s.Name) {
		list += "|for before in " + strings.TrimPrefix(strings.Join(names(w)[:i], " "), "export ") + "; do\n"
	}
	for stage, run := range map[string]string{
		"train": calledWith(w.File.Training.Command, "python pipeline/train.py"), "evaluate": calledWith(w.File.Evaluation.Command, "python pipeline/evaluate.py"), "shadow": calledWith(w.File.Shadow.Command, ""),
	} {
		if s.Name == stage {
			list += "|run" + run + "\n"
		}
	}
	if w.File.stops(s.Name) {
		list += wired.Withdrawal
	}
	return list
}

// wiredSteps returns the beginnings of the steps that run the stages, and the lines that tell the last job which stage
// failed.
func wiredSteps(w *Work) string {
	schedule := ""
	if cron, err := quote.YAML(w.File.Schedule); err == nil && w.File.Schedule != "" {
		schedule = "  schedule:\n    - cron: " + cron + "\npermissions:\n|"
	}
	list := "          path: work\n          overwrite: true\n          include-hidden-files: true\n"
	if strict.IsEnterprise(w.File.githubAPI()) {
		list = ""
	}
	needs, stage, result := "|    needs: [build", "|          STAGE: ${{ needs.build.result != 'success' && 'build'", "|          RESULT: ${{ needs.build.result != 'success' && needs.build.result"
	for _, s := range w.Stages {
		list += "|      - name: " + s.Title + "\n        env:\n"
		needs += ", " + s.Name
		failed := " \\|\\| needs." + s.Name + ".result != 'success' && "
		stage += failed + "'" + s.Name + "'"
		result += failed + "needs." + s.Name + ".result"
	}
	return schedule + list + needs + "]\n" + stage + " }}\n" + result + " }}\n"
}

// wiredReport returns the lines with which the report of a failed run determines the stage.
func wiredReport(w *Work, file string) string {
	loop, claim := "for stage in "+strings.Join(names(w), " ")+"; do\n", "constant: retrain-"+w.File.Project+"\n"
	return map[string]string{
		"pipeline/report.sh": "|" + loop,
		"pipeline/argo.yaml": "|            " + loop,
		"pipeline/kubeflow.yaml": "|            " + loop + "|              " + claim + "              pvcNameParameter:\n                runtimeValue:\n                  " + claim +
			"        exec-" + w.Stages[0].Name + ":\n",
	}[file]
}

// wiredPrograms returns the lines that a Python file must contain because of values of the file.
func wiredPrograms(f *File, file string) string {
	switch {
	case file == "pipeline/evaluate.py":
		list := tuples(f.Evaluation.Constraints, func(c Constraint) string { return c.Metric })
		if f.Evaluation.Telemetry {
			list += "|    environment = world.watched(environment, |    world.EMITTER.close()\n"
		}
		return list
	case file == "pipeline/train.py" && f.Algorithm.Library == CleanRL:
		return "    " + strings.Join(keywords.Arguments(CleanRL), ": |    ") + ": "
	case file == "pipeline/train.py" && f.Algorithm.Library == StableBaselines3:
		return "    policy = " + strconv.QuoteToASCII(f.Algorithm.Policy) + "\n"
	case file == "pipeline/train.py":
		return ""
	}
	list := seen(f) + tuples(f.Simulation, func(x Parameter) string { return x.Name }) + tuples(f.Environments, func(e Environment) string { return e.ID })
	if f.Training.Telemetry {
		list += "|    return flat(watched(make(id, varied=True), "
	} else {
		list += "|def training(id, env):\n    \"\"\"Returns an environment for training.\"\"\"\n    return flat(make(id, varied=True))\n"
	}
	if f.Training.Telemetry || f.Evaluation.Telemetry {
		list += "|EMITTER = rewardwatch.Emitter(\n    url=os.environ.get(|    token_file=os.environ.get(|    if env:\n        names[\"env\"] = env\n    return rewardwatch.wrap(environment, EMITTER, policy=policy, "
	}
	return list
}

// seen returns the lines that determine how the agent observes the environment.
func seen(f *File) string {
	list := "|TAKEN = gymnasium.spaces.Box\n"
	if f.Algorithm.Library == StableBaselines3 && f.Algorithm.FrameStack == 1 {
		list = "|TAKEN = (\n    gymnasium.spaces.Box,\n    gymnasium.spaces.Discrete,\n    gymnasium.spaces.MultiBinary,\n    gymnasium.spaces.MultiDiscrete,\n)\n"
		if f.Algorithm.Policy == "MultiInputPolicy" {
			list = strings.Replace(list, "    gymnasium.spaces.Discrete", "    gymnasium.spaces.Dict,\n    gymnasium.spaces.Discrete", 1)
		}
	}
	list += "|        raise TypeError(f\"the observations of {id} are not numbers: define features above, or wrap the environment\")\n"
	if f.Algorithm.FrameStack > 1 {
		list += "    environment = Stacked(flat(environment))\n"
	}
	list += "    return Varied(environment) if varied and PARAMETERS else environment\n"
	if f.Algorithm.FrameStack > 1 {
		list += fmt.Sprintf("|FRAMES = %d  |        low, high = (numpy.concatenate([x] * FRAMES, self.axis) for x in (space.low, space.high))\n|        self.frames = collections.deque(maxlen=FRAMES)\n", f.Algorithm.FrameStack) +
			"|        self.frames.extend([numpy.zeros_like(self.env.observation_space.low)] * FRAMES)\n|        self.frames.append(observation)\n        return numpy.concatenate(self.frames, self.axis)\n"
	}
	if f.Algorithm.Atari {
		list += "|importlib.import_module(\"ale_py\") |    environment = AtariWrapper(environment, clip_reward=varied)\n    if not varied:\n        environment = Game(environment)\n" +
			"|        if terminated and self.unwrapped.ale.lives() > 0:\n            observation, terminated = self.env.reset()[0], False\n"
	}
	return list
}

// wiredCard returns the required lines of the model card.
func wiredCard(f *File) string {
	list := "\\| \\| \\|\n\\| --- \\| --- \\|\n\\| policy \\| |\\| owner \\| |\\| algorithm \\| |\\| environments \\| |\\| training steps \\| |\\| evaluation \\| |\\| gate \\| |\\| expected in production \\| |\\| monitored by \\| |## Intended use and limits\n"
	if f.Description != "" {
		list += "|" + strings.ReplaceAll(quote.Text(strings.TrimSpace(f.Description)), "|", `\|`) + "\n"
	}
	if len(f.Evaluation.Constraints) > 0 && len(f.Evaluation.Command) == 0 {
		list += "|\\| constraints \\| mean "
	}
	if len(f.Simulation) > 0 {
		list += "|## Simulation\n\n\\| parameter \\| from \\| to \\|\n\\| --- \\| --- \\| --- \\|\n\\| "
	}
	for _, p := range f.Simulation {
		list += "|\\| " + strings.ReplaceAll(quote.Text(p.Name), "|", `\|`) + " \\| "
	}
	return list
}

// calledWith returns the words of a command as a script calls it, or those of the generated program without one.
func calledWith(command []string, generated string) string {
	line := ""
	for _, word := range command {
		line += " " + quote.Shell(word)
	}
	if line == "" {
		line = " " + generated
	}
	return strings.ReplaceAll(line, "|", `\|`)
}

// wiredDeployment returns the lines that roll back a deployment.
func wiredDeployment(f *File) string {
	list := "deploy() {\n  run" + calledWith(f.Deploy.Command, "") + "\n}\ndeploy\nsucceeded\n"
	if len(f.Rollback.Command) > 0 {
		list = "deploy() {\n  run ${session:+\"$session\"}" + calledWith(f.Deploy.Command, "") + "\n}\n|rollback() {\n  run" + calledWith(f.Rollback.Command, "") + "\n}\n|session=\n! command -v setsid > /dev/null \\|\\| session=setsid\n|}\n# Roll back |" +
			"signal() {\n  kill -s \"$1\" -- \"-$!\" 2> /dev/null \\|\\| kill -s \"$1\" \"$!\" 2> /dev/null\n}\n|" +
			"halt() {\n  [ -n \"${!:-}\" ] \\|\\| return 0\n  for s in TERM 0 0 0 0 KILL 0 0; do\n    signal \"$s\" \\|\\| return 0\n    sleep 1\n  done\n}\n|" +
			"undo() {\n  trap - INT TERM\n  halt\n  rollback \\|\\| true\n  exit \"$1\"\n}\n" +
			"trap 'undo 130' INT\ntrap 'undo 143' TERM\nif ! deploy; then\n|  halt\n  rollback\n  exit 1\nfi\ntrap 'stop 130' INT\ntrap 'stop 143' TERM\nsucceeded\n"
	}
	return list
}

// projectWord returns the name of the project in YAML.
func projectWord(f *File) string {
	word, err := quote.Word(f.Project)
	if err != nil { // not reached: a string can always be encoded
		return f.Project
	}
	return word
}

func names(w *Work) []string {
	out := make([]string, len(w.Stages))
	for i, s := range w.Stages {
		out[i] = s.Name
	}
	return out
}

// startedBy are the beginnings of the configuration with which Rewardwatch starts each target.
var startedBy = map[string]string{
	GitHub: "github: {repository: ", GitLab: "gitlab: {project: ", Airflow: "airflow: {dag: ", Make: "command:\n|        run: [/bin/sh, -c, \"set -a; [ ! -f .env.retrain ] \\|\\| . ./.env.retrain; unset IMAGE REQUEST RUN VERSION; exec /usr/bin/make --file pipeline/Makefile retrain\"]\n        directory: ",
}
