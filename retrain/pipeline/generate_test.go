package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestStagesFollowTheFile(t *testing.T) {
	for name, test := range map[string]struct {
		replaced []string
		want     string
	}{
		"the example":   {nil, "train evaluate gate deploy"},
		"everything":    {[]string{"data:\n", "shadow: {command: [serve]}\ndata:\n  export: true\n"}, "export train evaluate shadow gate deploy"},
		"no deployment": {undeployed, "train evaluate gate keep"},
		"no gate":       {[]string{"gate: {within: 4h, every: 5m}", "gate: {skip: true}"}, "train evaluate deploy"},
	} {
		w := mustRun(t, test.replaced...)
		var names []string
		for _, s := range w.Stages {
			names = append(names, s.Name)
			text := artefact(t, w, s.Script())
			if !strings.Contains(text, s.Title) {
				t.Errorf("%s: the script of %s does not say what it does", name, s.Name)
			}
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: stages %q, want %q", name, got, test.want)
		}
	}
}

func TestCommandsReplaceTheGeneratedScripts(t *testing.T) {
	w := mustRun(t, "library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}", "library: custom",
		"simulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n", "",
		"steps: 100000,", "command: [python, my train.py],", "telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}", "command: [python, test.py]")
	for _, a := range w.Artefacts {
		if strings.HasSuffix(a.Path, "train.py") || strings.HasSuffix(a.Path, "evaluate.py") || strings.HasSuffix(a.Path, "world.py") {
			t.Errorf("%s is generated, but nothing runs it", a.Path)
		}
	}
	if text := artefact(t, w, "pipeline/stages/train.sh"); !strings.Contains(text, "'python' 'my train.py'\n") {
		t.Error(text)
	}
}

// A file overrides the file that it extends: scalars and lists are replaced, and mappings are merged.
func TestFilesExtendOneAnother(t *testing.T) {
	dir := t.TempDir()
	parent, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"base.yaml":  string(parent),
		"child.yaml": "extends: base.yaml\nproject: pole\ntargets: [make]\ntraining: {cpu: 7}\ntrigger: {target: make, directory: /srv}\n",
		"loop.yaml":  "extends: loop.yaml\n",
		"bad.yaml":   "extends: base.yaml\ntraining: {cpu: 0.5}\n",
		"none.yaml":  "extends: nothing.yaml\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Run(filepath.Join(dir, "child.yaml"), "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := w.File
	if f.Project != "pole" || f.Training.CPU != 7 || f.Training.Memory != "4Gi" || !reflect.DeepEqual(f.Targets, []string{"make"}) {
		t.Errorf("%+v", f)
	}
	if at := w.place("training.memory"); filepath.Base(at.File) != "base.yaml" || at.Line == 0 {
		t.Errorf("the memory comes from %v", at)
	}
	if at := w.place("training.cpu"); filepath.Base(at.File) != "child.yaml" || at.Line != 4 {
		t.Errorf("the processors come from %v", at)
	}
	for name, want := range map[string]string{"loop.yaml": "more than 8 files", "bad.yaml": "bad.yaml:2:", "none.yaml": "none.yaml:1:10: extends: cannot be read: "} {
		if _, err := Run(filepath.Join(dir, name), "", Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// The lines of a value can be found from the file and from the artefacts.
func TestExplainNamesTheLinesOfTheFile(t *testing.T) {
	w := mustRun(t)
	var train *Artefact
	for i := range w.Artefacts {
		if w.Artefacts[i].Path == "pipeline/train.py" {
			train = &w.Artefacts[i]
		}
	}
	text, _ := os.ReadFile(example)
	lineOf := func(part string) int { return strings.Count(strings.Split(string(text), part)[0], "\n") + 1 }
	steps := 0
	for _, e := range Explain(train, false) {
		if strings.Contains(e.Text, "model.learn(100000)") {
			steps++
			if len(e.Origins) != 1 || e.Origins[0].Path != "training.steps" || e.Origins[0].Place.Line != lineOf("steps: 100000") {
				t.Errorf("%+v", e)
			}
		}
	}
	if steps != 1 {
		t.Errorf("%d lines have the steps", steps)
	}
	all := Explain(train, true)
	if len(all) != strings.Count(train.Text, "\n") {
		t.Errorf("%d lines, want all", len(all))
	}
	made := Made(w, w.Path, lineOf("owner:"))
	if len(made) != 2 { // the recipe and the model card
		t.Errorf("the owner made %+v", made)
	}
	if at := w.place("gate.undecided"); at.Line != 0 {
		t.Errorf("a default is at %v", at)
	}
}

// The telemetry token is passed to the stages that send telemetry.
func TestStagesThatSendTelemetryGetItsToken(t *testing.T) {
	for name, test := range map[string]struct {
		replaced        []string
		train, evaluate bool
	}{
		"none":       {[]string{"telemetry: true", "telemetry: false", "gate: {within", "shadow: {command: [serve]}\ngate: {within"}, false, false},
		"default":    {[]string{"telemetry: true", "episodes: 6"}, false, true},
		"no gate":    {[]string{"telemetry: true", "episodes: 6", "gate: {within: 4h, every: 5m}", "gate: {skip: true}"}, false, false},
		"shadow":     {[]string{"telemetry: true", "episodes: 6", "gate: {within", "shadow: {command: [serve]}\ngate: {within"}, false, false},
		"evaluation": {nil, false, true},
		"both":       {append([]string{"steps: 100000", "telemetry: true, steps: 10000"}, cleanRL...), true, true},
	} {
		w := mustRun(t, test.replaced...)
		for stage, want := range map[string]bool{"train": test.train, "evaluate": test.evaluate} {
			if got := strings.Contains(artefact(t, w, "pipeline/stages/"+stage+".sh"), "export REWARDWATCH_TOKEN_FILE"); got != want {
				t.Errorf("%s: %s gets the token: %v", name, stage, got)
			}
		}
		if got := strings.Contains(artefact(t, w, "pipeline/world.py"), `"cartpole" + "-training"`); got != test.train {
			t.Errorf("%s: the training sends telemetry: %v", name, got)
		}
		if got := strings.Contains(artefact(t, w, "pipeline/requirements.txt"), "\nrewardwatch @ "); got != (test.train || test.evaluate) {
			t.Errorf("%s: the emitter is installed: %v", name, got)
		}
	}
}

// A path in a command is relative to the project, whatever it looks like.
func TestCommandsMayNameFilesOfTheProject(t *testing.T) {
	w := mustRun(t, "deploy.py, --to", "pipeline/deploy.py, my_pipeline/stages/x.sh", "description: Balances a pole on a cart.", "description: FROM here to there")
	if text := artefact(t, w, "pipeline/stages/deploy.sh"); !strings.Contains(text, "'pipeline/deploy.py'") {
		t.Error(text)
	}
}

// Only the evaluation sends telemetry, and the image contains no credentials.
func TestSecretsReachWhatNeedsThem(t *testing.T) {
	w := mustRun(t)
	for file, want := range map[string]int{".github/workflows/retrain-cartpole.yml": 1, "pipeline/argo.yaml": 1, "pipeline/kubernetes.yaml": 1, "pipeline/kubeflow.yaml": 1} {
		if n := strings.Count(artefact(t, w, file), " REWARDWATCH_TELEMETRY_TOKEN"); n != want && n != 2*want { // GitHub has it twice on a line
			t.Errorf("%s: the token of the telemetry is there %d times", file, n)
		}
	}
	workflow := artefact(t, w, ".github/workflows/retrain-cartpole.yml")
	if strings.Count(workflow, "persist-credentials: false") != strings.Count(workflow, "actions/checkout@") || strings.Count(workflow, "packages: write") != 1 {
		t.Error(workflow)
	}
	if text := artefact(t, w, "pipeline/Dockerfile.dockerignore"); !strings.Contains(text, "\n.git\nwork\n") {
		t.Error(text)
	}
}

// Paths of templates are relative to the file that sets them, also if another file extends it.
func TestTemplatesAreRelativeToTheirFile(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"team/base.yaml":           string(text) + "templates: [own]\n",
		"team/own/extra.yaml.tmpl": "# " + header + "\na: 1\n",
		"file.yaml":                "extends: team/base.yaml\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Run(filepath.Join(dir, "file.yaml"), "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	artefact(t, w, "extra.yaml")
}

// Each hyperparameter is explained by its own line.
func TestArgumentsAreExplainedOneByOne(t *testing.T) {
	w := mustRun(t, "{n_steps: 256, learning_rate: 3e-4}", "\n    n_steps: 256\n    learning_rate: 3e-4")
	line := w.place("algorithm.hyperparameters.learning_rate").Line
	if made := Made(w, w.Path, line); len(made) != 1 || !strings.Contains(made[0].Text, "learning_rate=0.0003, n_steps=256") {
		t.Errorf("line %d made %+v", line, made)
	}
}

func TestWritingKeepsWhatAPersonWrote(t *testing.T) {
	w, dir := mustRun(t), t.TempDir()
	generate := func() ([]Change, error) {
		changes, err := Changes(w, dir)
		if err == nil {
			err = Write(changes, dir)
		}
		return changes, err
	}
	if _, err := generate(); err != nil {
		t.Fatal(err)
	}
	train := filepath.Join(dir, "pipeline", "train.py")
	edit := func(old, now string) {
		t.Helper()
		text, err := os.ReadFile(train)
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%v: no %q in %s", err, old, text)
		}
		if err := os.WriteFile(train, []byte(strings.Replace(string(text), old, now, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("    # rewardwatch:keep policy\n", "    # rewardwatch:keep policy\n    policy = \"CnnPolicy\"\n")
	edit("model.learn(100000)", "model.learn(5)")
	changes, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(train)
	if !strings.Contains(string(text), "policy\n    policy = \"CnnPolicy\"\n    # rewardwatch:end") || !strings.Contains(string(text), "model.learn(100000)") {
		t.Errorf("%s", text)
	}
	changed := 0
	for i := range changes {
		if changes[i].Changed() {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d files changed, want 1", changed)
	}
	if info, err := os.Stat(filepath.Join(dir, "pipeline", "stages", "train.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v: the script cannot be run: %v", err, info.Mode())
	}

	edit("keep policy", "keep gone")
	if _, err := generate(); err == nil || !strings.Contains(err.Error(), `the new file has no keep marker "gone"`) {
		t.Errorf("a kept part would be lost: %v", err)
	}
	if err := os.WriteFile(train, []byte("print('mine')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := generate(); err == nil || !strings.Contains(err.Error(), "was not generated") {
		t.Errorf("a file of a person would be overwritten: %v", err)
	}
}

// Files are not written through symbolic links that lead out of the repository.
func TestWritingStaysInTheDirectory(t *testing.T) {
	w, dir, outside := mustRun(t), t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "pipeline")); err != nil {
		t.Fatal(err)
	}
	changes, err := Changes(w, dir)
	if err == nil {
		err = Write(changes, dir)
	}
	if err == nil {
		t.Error("files were written through a link")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("written outside: %v", entries)
	}
}

// A stage receives only its own secrets.
func TestStagesHaveSecretsOfTheirOwn(t *testing.T) {
	w := mustRun(t, "data:\n", "shadow: {command: [serve], secrets: [SHADOW_KEY]}\ndata:\n", "deploy.py, --to, production]", "deploy.py]\n  secrets: [FLEET_KEY, FLEET_USER]")
	for file, parts := range map[string][2]string{
		".github/workflows/retrain-cartpole.yml": {"\n  %s:\n", "\n          %s: ${{ secrets.%s }}"},
		"pipeline/argo.yaml":                     {"\n    - name: %s\n", "\n          - name: %s\n"},
		"pipeline/kubernetes.yaml":               {"\n        - name: %s\n", "\n            - name: %s\n"},
		"pipeline/kubeflow.yaml":                 {"\n        exec-%s:\n", "\n                  envVar: %s\n"},
		"pipeline/Makefile":                      {"\n%s: build", " -e %s"},
		"pipeline/run.sh":                        {"\n%s) secrets=", "-e %s"},
	} {
		text := artefact(t, w, file)
		for secret, stage := range map[string]string{"SHADOW_KEY": "shadow", "FLEET_KEY": "deploy", "FLEET_USER": "deploy"} {
			_, of, found := strings.Cut(text, fmt.Sprintf(parts[0], stage))
			want := strings.ReplaceAll(parts[1], "%s", secret)
			if !found || !strings.Contains(of, want) || strings.Count(text, want) != 1 {
				t.Errorf("%s: the secret %s is not that of %s alone", file, secret, stage)
			}
			if next := "\ngate"; stage == "shadow" && file == "pipeline/Makefile" {
				if before, _, _ := strings.Cut(of, next); !strings.Contains(before, want) {
					t.Errorf("%s: the secret is of another stage than %s", file, stage)
				}
			}
		}
	}
	if text := artefact(t, w, ".gitlab-ci.yml"); !strings.Contains(text, "  environment: retrain-cartpole/deploy\n") || strings.Count(text, "  environment: ") != 2 {
		t.Error(text)
	}
}

// Files that are no longer generated are removed, unless a person wrote them or edited their kept parts.
func TestWhatIsNotGeneratedAnyMoreIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := Write(newFiles(mustRun(t).Artefacts), dir); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "pipeline", "README.md")
	if err := os.WriteFile(own, []byte("# Ours\n\n\n\n\n\nThe rest is "+header+".\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := mustRun(t, "gate: {within: 4h, every: 5m}", "gate: {skip: true}", "kubeflow, airflow, make]", "kubeflow, airflow]")
	changes, err := Changes(w, dir)
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	for i := range changes {
		if changes[i].Removed {
			removed = append(removed, changes[i].Path)
		}
	}
	if got := strings.Join(removed, " "); got != "pipeline/Makefile pipeline/compose.yaml pipeline/stages/gate.sh" {
		t.Errorf("removed %s", got)
	}
	if err := Write(changes, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pipeline", "stages", "gate.sh")); !os.IsNotExist(err) {
		t.Error("the script of the gate is there")
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
	custom := mustRun(t, "library: stable-baselines3\n  name: PPO\n  hyperparameters: {n_steps: 256, learning_rate: 3e-4}", "library: custom",
		"simulation:\n  - {name: gravity, low: 9.3, high: 10.3}\n  - {name: length, low: 0.45, high: 0.55}\n", "",
		"steps: 100000,", "command: [make],", "telemetry: true\n  constraints:\n    - {metric: return, at_least: 300}", "command: [make]")
	for _, library := range []*Work{custom, mustRun(t, cleanRL...)} { // the templates' own lines between markers were not written by a person
		if _, err := Changes(library, dir); err != nil {
			t.Error(err)
		}
	}
	world := filepath.Join(dir, "pipeline", "world.py")
	text, err := os.ReadFile(world)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(world, []byte(strings.Replace(string(text), "features = None", "features = ours", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Changes(custom, dir); err == nil || !strings.Contains(err.Error(), "world.py:1:1: is no longer generated, but contains lines between keep markers") {
		t.Errorf("lines of a person would be lost: %v", err)
	}
}

// Without Kafka, the service stores telemetry that it receives over HTTP.
func TestWithoutBrokersThereIsALog(t *testing.T) {
	text := artefact(t, mustRun(t, "data:\n  brokers: [\"kafka-1:9092\"]\n", ""), "pipeline/rewardwatch.yml")
	if !strings.Contains(text, "\ningest:\n  log: {directory: /var/lib/rewardwatch/telemetry}\npolicies:") {
		t.Error(text)
	}
}

// No image has a moving tag, and no job runs without a time limit.
func TestJobsEndAndImagesStay(t *testing.T) {
	w := mustRun(t)
	for _, a := range w.Artefacts {
		if strings.Contains(a.Text, "latest") {
			t.Errorf("%s has a moving tag", a.Path)
		}
	}
	if text := artefact(t, w, "pipeline/kubernetes.yaml"); !strings.Contains(text, "\n  activeDeadlineSeconds: 66600\n") { // 2h, 4h30m, and twice 6h
		t.Error(text)
	}
}

// The image can build old versions of Gym. Other images are unaffected.
func TestOldGymCanBeBuilt(t *testing.T) {
	for requirement, builds := range map[string]bool{"gym==0.21.0": true, "gym[atari]==0.17.3": true, "gym==0.26.2": false, "gym-minigrid==0.21.0": false} {
		w := mustRun(t, "  - scipy==1.17.1\n", "  - scipy==1.17.1\n  - "+requirement+"\n")
		text := artefact(t, w, "pipeline/Dockerfile")
		const line = "RUN printf '%s\\n' setuptools==65.5.1 wheel==0.38.4 > /etc/pip-constraints.txt\nENV PIP_CONSTRAINT=/etc/pip-constraints.txt\n"
		if strings.Contains(text, line) != builds || strings.Contains(text, "PIP_CONSTRAINT") != builds {
			t.Errorf("%s: %s", requirement, text)
		}
	}
}

// The templates are correct: their output needs no correction, except for certain values of the file.
func TestNothingIsCorrected(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for i, file := range append(files, example) {
		if testing.Short() && i%10 != 0 || strings.HasSuffix(file, "/long-names.yaml") { // its description ends with a space
			continue
		}
		w, err := Run(file, "", Options{Release: "v0.1.0"})
		if err != nil {
			t.Error(err)
			continue
		}
		if last := fmt.Sprint(w.Trace); !strings.Contains(last, ", 0 corrected") {
			t.Errorf("%s: %s", file, last)
		}
	}
}
